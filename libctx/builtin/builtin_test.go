package builtin

import (
	"bytes"
	"os/exec"
	"sort"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin/about"
	"cortexfs.org/libctx/builtin/form"
	"cortexfs.org/libctx/control"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func program(name libctx.Tool) string {
	if name == "tsh" {
		return "tsh"
	}
	return "ctxtool"
}

// Every file must be what the tree accepts, in its canonical form.
func TestFilesAreCanonicalControls(t *testing.T) {
	for _, tool := range Tools() {
		for file, text := range tool.Files() {
			if file == "" {
				if want := "#!/ctx/bin/" + program(tool.Name) + "\n" + string(tool.Name) + "\n"; string(text) != want {
					t.Errorf("%s: the file is %q", tool.Name, text)
				}
				continue
			}
			if got, err := control.CanonicalTool(file, text); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s.d/%s: %q is canonically %q, %v", tool.Name, file, text, got, err)
			}
		}
	}
}

func TestToolsAreSortedAndNamed(t *testing.T) {
	tools := Tools()
	if !sort.SliceIsSorted(tools, func(i, j int) bool { return tools[i].Name < tools[j].Name }) {
		t.Error("not sorted")
	}
	for _, tool := range tools {
		if _, err := libctx.ParseTool(string(tool.Name)); err != nil {
			t.Error(err)
		}
		if found, ok := Find(tool.Name); !ok || found.Schema != tool.Schema {
			t.Errorf("Find(%s) = %v", tool.Name, ok)
		}
	}
	if _, ok := Find("no.such"); ok {
		t.Error("found a tool that is not there")
	}
}

func TestPermissionsFollowEffects(t *testing.T) {
	want := map[libctx.Tool]string{
		"agent.update": "-w-", // which admission does not ask for: it changes nothing but its own agent
		"fs.read":      "r--", "fs.list": "r--", "fs.stat": "r--", "fs.search": "r--", "fs.write": "-w-", "fs.replace": "-w-",
		"shell.exec": "--x", "bash": "--x", "tmux": "--x", "zellij": "--x", "tsh": "---", "tsh.config": "---",
	}
	if len(want) != len(Tools()) {
		t.Errorf("%d tools, %d permissions", len(Tools()), len(want))
	}
	for name, perm := range want {
		tool, _ := Find(name)
		if got := tool.Effect.Perm().String(); got != perm {
			t.Errorf("%s needs %s, not %s", name, got, perm)
		}
		if readOnly := perm == "r--"; tool.Replay != readOnly || tool.Parallel != readOnly {
			t.Errorf("%s: replay %v, parallel %v", name, tool.Replay, tool.Parallel)
		}
	}
}

// The examples are calls of the tool itself, and what they make fits its schema.
func TestExamples(t *testing.T) {
	for _, tool := range Tools() {
		for line := range strings.Lines(about.Examples(tool.Name) + "\n") {
			words, err := exec.Command("/bin/sh", "-c", `printf '%s\n' `+line).Output()
			name, rest, _ := strings.Cut(strings.TrimSuffix(string(words), "\n"), "\n")
			if err != nil || name != string(tool.Name) {
				t.Errorf("%s has the example %q: %v", tool.Name, line, err)
			}
			args := []string{}
			if rest != "" {
				args = strings.Split(rest, "\n")
			}
			f, ok := form.Of(tool.Name)
			if !ok {
				continue
			}
			object, err := f.Object(args)
			if err == nil {
				err = validate(t, tool, string(object))
			}
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// validate checks arguments against the schema of a tool.
func validate(t *testing.T, tool Tool, args string) error {
	t.Helper()
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(tool.Schema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource("schema", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("schema")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(args))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(value)
}

// An agent that is shown one schema must not be refused by another.
func TestSchemas(t *testing.T) {
	for _, c := range []struct {
		tool libctx.Tool
		args string
		ok   bool
	}{
		{"fs.read", `{"path":"a"}`, true},
		{"fs.read", `{"path":"a","start":1,"lines":2,"numbers":true}`, true},
		{"fs.read", `{"path":"a","start":1,"column":2001}`, true},
		{"fs.read", `{"path":"a","column":0}`, false},
		{"fs.read", `{}`, false},
		{"fs.read", `{"path":""}`, false},
		{"fs.read", `{"path":"a","start":0}`, false},
		{"fs.read", `{"path":"a","start":1.5}`, false},
		{"fs.read", `{"path":"a","offset":1}`, false},
		{"fs.read", `{"path":null}`, false},
		{"fs.list", `{}`, true},
		{"fs.list", `{"path":"a","recursive":true,"depth":64,"limit":10000,"after":"a/b"}`, true},
		{"fs.list", `{"depth":65}`, false},
		{"fs.list", `{"limit":10001}`, false},
		{"fs.stat", `{"path":"a"}`, true},
		{"fs.stat", `{}`, false},
		{"fs.search", `{"pattern":"x"}`, true},
		{"fs.search", `{"pattern":"x","path":"a","mode":"regex","glob":"*.go","case":"smart","context":100,"hidden":true,"ignore":false,"limit":10000}`, true},
		{"fs.search", `{"pattern":""}`, false},
		{"fs.search", `{"pattern":"x","mode":"glob"}`, false},
		{"fs.search", `{"pattern":"x","context":101}`, false},
		{"fs.write", `{"path":"a","content":""}`, true},
		{"fs.write", `{"path":"a"}`, false},
		{"fs.write", `{"path":"a","content":"","expected_hash":"` + strings.Repeat("0a", 32) + `"}`, true},
		{"fs.write", `{"path":"a","content":"","expected_hash":"` + strings.Repeat("0A", 32) + `"}`, false},
		{"fs.write", `{"path":"a","content":"","expected_hash":""}`, false},
		{"fs.replace", `{"path":"a","old":"x","new":""}`, true},
		{"fs.replace", `{"path":"a","old":"","new":"x"}`, false},
		{"fs.replace", `{"path":"a","old":"x","new":"y","all":1}`, false},
		{"bash", `{"script":"true"}`, true},
		{"bash", `{"args":["-c","true"]}`, true},
		{"bash", `{"script":"true","args":["a"],"timeout_ms":1}`, true},
		{"bash", `{"timeout_ms":1}`, false},
		{"tmux", `{}`, true},
		{"tmux", `{"args":["ls"],"timeout_ms":1}`, true},
		{"zellij", `{"args":["a",1]}`, false},
		{"zellij", `{"script":"true"}`, false},
		{"shell.exec", `{"cmd":"true","timeout_ms":3600000}`, true},
		{"shell.exec", `{"cmd":"true","timeout_ms":3600001}`, false},
		{"shell.exec", `{"cmd":""}`, false},
		{"agent.update", `{"control":"system.md","content":""}`, true},
		{"agent.update", `{"control":"prompt.template.md","content":"x"}`, true},
		{"agent.update", `{"control":"policy","content":"x"}`, false},
		{"agent.update", `{"control":"system.md"}`, false},
		{"agent.update", `{"control":"system.md","content":"` + strings.Repeat("x", 8193) + `"}`, false},
		{"agent.update", `{"control":"system.md","content":"x","agent":"other"}`, false},
		{"tsh", `{"args":["tools"]}`, true},
		{"tsh", `{"args":[]}`, false},
		{"tsh", `{"args":[` + strings.TrimSuffix(strings.Repeat(`"a",`, 65), ",") + `]}`, false},
	} {
		tool, _ := Find(c.tool)
		if err := validate(t, tool, c.args); (err == nil) != c.ok {
			t.Errorf("%s %s: %v", c.tool, c.args, err)
		}
	}
}
