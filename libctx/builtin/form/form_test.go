package form

import (
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin"
	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var sample = Form{
	Operands: []string{"path", "start"}, Needed: 1, Numbers: []string{"start", "lines"}, Texts: []string{"after"}, Switches: []string{"all"},
	Negations: []string{"ignore"},
}

func TestForm(t *testing.T) {
	for _, c := range []struct {
		words string
		want  string // "" means refused
	}{
		{"", `{}`},
		{"a", `{"path":"a"}`},
		{"a --all", `{"all":true,"path":"a"}`},
		{"--all a --lines 3", `{"all":true,"lines":3,"path":"a"}`},
		{"--lines=3 a", `{"lines":3,"path":"a"}`},
		{"a --after=", `{"after":"","path":"a"}`},
		{"--after --all a", `{"after":"--all","path":"a"}`},
		{"-- --all", `{"path":"--all"}`},
		{"-", `{"path":"-"}`},
		{"./-x", `{"path":"./-x"}`},
		{"a --", `{"path":"a"}`},
		{"a 7", `{"path":"a","start":7}`},
		{"a b", ""},
		{"-x", ""},
		{"--none a", ""},
		{"--all=1", ""},
		{"a b c", ""},
		{"--lines", ""},
		{"--lines x", ""},
		{"--lines 99999999999", ""},
		{"--=x", ""},
		{"---all", ""},
		{"\xff", ""},
		{`{"path":"b","x":1}`, `{"path":"b","x":1}`},
		{`{"path":`, `{"path":`},
		{`{"path":"a","path":"b"}`, `{"path":"a","path":"b"}`},
		{`{}`, `{}`},
		{`{odd}`, `{"path":"{odd}"}`},
		{`-- {}`, `{"path":"{}"}`},
		{`{} 7`, `{"path":"{}","start":7}`},
	} {
		words := strings.Fields(c.words)
		got, err := sample.Object(words)
		if string(got) != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q makes %s, %v", c.words, got, err)
		}
		if err != nil && !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%q: %v", c.words, err)
		}
	}
	if got, err := (Form{Rest: "cmd"}).Object([]string{"echo", "--all", "--", " b"}); string(got) != `{"cmd":"echo --all --  b"}` {
		t.Errorf("rest: %s, %v", got, err)
	}
}

func TestUsage(t *testing.T) {
	for want, f := range map[string]Form{
		"t": {}, "t WORDS…": {Rest: "cmd"}, "t ARGS…": {Argv: true},
		"t PATH [START] [--all] [--no-ignore] [--lines N] [--after AFTER]": sample,
		"t A [B [C]]": {Operands: []string{"a", "b", "c"}, Needed: 1},
	} {
		if got := f.Usage("t"); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// Every member that a form sets is one of the tool's schema, and every required
// one that is a text can be set.
func TestFormsFitSchemas(t *testing.T) {
	for _, tool := range builtin.Tools() {
		f, ok := Of(tool.Name)
		if ok != (tool.Name != "tsh") {
			t.Errorf("%s has a form: %v", tool.Name, ok)
		}
		var schema struct {
			Properties map[string]struct {
				Type string `json:"type"`
			} `json:"properties"`
			Required []string `json:"required"`
		}
		if err := json.Unmarshal([]byte(tool.Schema), &schema); err != nil {
			t.Fatal(err)
		}
		kinds := map[string][]string{"integer": f.Numbers, "boolean": append(f.Switches, f.Negations...), "": f.Texts}
		for kind, names := range kinds {
			for _, name := range names {
				p, ok := schema.Properties[name]
				if !ok || kind != "" && p.Type != kind {
					t.Errorf("%s --%s is %q in the schema", tool.Name, name, p.Type)
				}
			}
		}
		if f.Rest == "" && !f.Argv && ok && strings.Join(f.Operands[:f.Needed], " ") != strings.Join(schema.Required, " ") {
			t.Errorf("%s: the first %d of %v are not %v", tool.Name, f.Needed, f.Operands, schema.Required)
		}
	}
	if _, ok := Of("no.such"); ok {
		t.Error("a form of a tool that is not there")
	}
}

// FuzzObject: whatever words are, they are refused or make one object, of a text
// member each word at most once.
func FuzzObject(f *testing.F) {
	for _, words := range []string{"a", "--all a", "--lines=3 a", "-- --all", `{"path":"a"}`, "{odd}", "{} {}", "--after", "\xff", "{\"a"} {
		f.Add("fs.read", words)
		f.Add("shell.exec", words)
		f.Add("bash", words)
	}
	f.Fuzz(func(t *testing.T, name, line string) {
		tool, ok := Of(libctx.Tool(name))
		if !ok {
			return
		}
		words := strings.Fields(line)
		raw, err := tool.Object(words)
		switch {
		case err != nil && !errdefs.Is(err, errdefs.Invalid):
			t.Fatal(err)
		case err != nil || len(words) == 1 && IsObject(words[0]):
			return
		}
		var members map[string]jsontext.Value
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Fatalf("%q makes %s: %v", words, raw, err)
		}
	})
}
