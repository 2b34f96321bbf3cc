package control

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// canonicalTexts holds, for every file, texts that are accepted and canonical.
var canonicalTexts = map[string]map[string][]string{
	"agent": {
		"abi":                {"sdk-envelope-v1\n"},
		"approval":           {"auto\n", "ask\n"},
		"cwd":                {"/workspace\n", "/\n", "/workspace/a b\n", "/ü\n"},
		"effects":            {"unsafe-host\n", "controlled\n", "controlled-bash-approval\n"},
		"effort":             {"auto\n", "low\n", "medium\n", "high\n", "xhigh\n"},
		"env":                {"", "A=\n", "PATH=/x\nB=a=b \"$C\" \n_x1=\t\n"},
		"gid":                {"0\n", "1000\n", "4294967294\n"},
		"groups":             {"", "0\n", "20\n1000\n"},
		"label":              {"user_u:agent_r:coder_t:s0\n"},
		"life":               {"owned\n", "temp\n"},
		"log":                {"", "anything\r\nat all", "x\n"},
		"meta.json":          {"{}\n", "{\"a\": [1, null],\n \"b\": {}}\n", " {} \n"},
		"model":              {"main\n", "openai/gpt-5\n"},
		"mount":              {"", "/ctx\t/ctx\tro\t-\n/srv\t/srv\trw\tbind,noexec\n"},
		"owner":              {"1000\n"},
		"parent":             {"", "agent:a\n", "agent:a session:default run:01J\n"},
		"path":               {"", "/ctx/tool\n", "/ctx/tool\n/ctx/home/1000/tool\n"},
		"perm":               {"---\n", "--x\n", "-w-\n", "-wx\n", "r--\n", "r-x\n", "rw-\n", "rwx\n"},
		"pid":                {"", "1\n", "2147483647\n"},
		"policy":             {"", "allow a_t tool:tsh execute\nallow a_t model:p/m use\n"},
		"prompt.template.md": {"", "{{agent}}\r\n", "no end"},
		"protect":            {"", ".git\nsub/secrets.txt\n..a\n"},
		"result_bytes":       {"1\n", "51200\n", "262144\n"},
		"root":               {"/ctx\n"},
		"status":             {"start\n", "ready\n", "busy\n", "idle\n", "stopping\n", "dead\n"},
		"system.md":          {"", "You are.\n\n\ttab\x1b[0m", strings.Repeat("x", libctx.MaxControlFile)},
		"timeout":            {"1ns\n", "500ms\n", "1.5s\n", "30s\n", "2m\n", "1m30s\n", "10m\n", "1h\n", "59m59s\n"},
		"tools":              {"", "fs.read\n", "fs.read\nfs.list\n"},
		"uid":                {"1000\n"},
		"window":             {"auto\n", "1\n", "200000\n", "4294967295\n"},
	},
	"tool": {
		"cap":         {"", "read\nfiles\n"},
		"description": {"Reads a file.\n", "Reads.\n\n\tMore about it.\n"},
		"effect":      {"pure\n", "workspace_read\n", "unknown\n"},
		"log":         {""},
		"mode":        {"cli\n", "json\n"},
		"name":        {"fs.read\n"},
		"parallel":    {"0\n", "1\n"},
		"policy":      {"", "allow a_t tool:fs.read execute\n"},
		"replay":      {"safe\n", "unsafe\n"},
		"schema":      {"{}\n", "{\"type\": \"object\",\n \"properties\": {\"path\": {\"type\": \"string\"}}}\n"},
		"status":      {"ready\n"},
	},
	"model": modelTexts,
}

// refusedText is a text that is refused, with the line and the token the error
// must name.
type refusedText struct {
	file, text string
	line       int
	token      string
}

// refusedTexts holds, for every file, texts that are refused.
var refusedTexts = map[string][]refusedText{
	"agent": {
		{"abi", "argv-v1\n", 1, "argv-v1"},
		{"approval", "Ask\n", 1, "Ask"},
		{"approval", "auto \n", 1, "auto "},
		{"cwd", "workspace\n", 1, "workspace"},
		{"cwd", "/a/../b\n", 1, "/a/../b"},
		{"cwd", "/a/\n", 1, "/a/"},
		{"cwd", "/a\tb\n", 1, "/a\tb"},
		{"cwd", "/a\u2028b\n", 1, "/a\u2028b"},
		{"effects", "none\n", 1, "none"},
		{"effort", "max\n", 1, "max"},
		{"env", "A=1\nB\n", 2, "B"},
		{"env", "1A=x\n", 1, "1A"},
		{"env", "=x\n", 1, "=x"},
		{"env", "A-B=x\n", 1, "A-B"},
		{"env", "A=1\n\n", 2, ""},
		{"env", "A=1\nB=2\nA=3\n", 3, "A"},
		{"env", "A=\x1b[1m\n", 1, "A"},
		{"env", "# note\n", 1, "# note"},
		{"env", "export A=1\n", 1, "export A"},
		{"gid", "-1\n", 1, "-1"},
		{"gid", "4294967295\n", 1, "4294967295"},
		{"groups", "1\n01\n", 2, "01"},
		{"groups", "1\n1\n", 2, "1"},
		{"label", "a:b:c\n", 1, "a:b:c"},
		{"label", "user_u:agent_r:a b:s0\n", 1, "a b"},
		{"label", "user_u:agent_r::s0\n", 1, "user_u:agent_r::s0"},
		{"life", "detached\n", 1, "detached"},
		{"meta.json", "[]\n", 0, ""},
		{"meta.json", "{\"a\":1,\n\"a\":2}\n", 2, "/a"},
		{"meta.json", "{} {}\n", 1, ""},
		{"meta.json", "{\n\"a\":", 2, "\"a\":"},
		{"meta.json", "{\"a\":1e999999999}\n", 1, "1e999999999"},
		{"meta.json", "\n", 1, ""},
		{"model", "a/b/c\n", 1, "b/c"},
		{"model", "/x\n", 1, "/x"},
		{"mount", "/ctx /ctx ro -\n", 1, "/ctx /ctx ro -"},
		{"mount", "/ctx\t/ctx\tro\t-\n/x\t/etc\tro\t-\n", 2, "/etc"},
		{"owner", "root\n", 1, "root"},
		{"owner", "99999999999999999999\n", 1, "99999999999999999999"},
		{"parent", "a\n", 1, "a"},
		{"parent", "agent:a session:b\n", 1, "agent:a session:b"},
		{"parent", "agent:a session:index run:1\n", 1, "index"},
		{"parent", "\n", 1, ""},
		{"path", "ctx/tool\n", 1, "ctx/tool"},
		{"path", "/a::/b\n", 1, "/a::/b"},
		{"path", "/a:b\n", 1, "b"},
		{"path", "/a\n/b:/c\n", 2, "/b:/c"},
		{"path", "/a:/a\n", 1, "/a"},
		{"perm", "rwz\n", 1, "rwz"},
		{"perm", "xwr\n", 1, "xwr"},
		{"perm", "7\n", 1, "7"},
		{"pid", "0\n", 1, "0"},
		{"pid", "\n", 1, ""},
		{"policy", "allow a_t tool:tsh execute\n# note\n", 2, "#"},
		{"policy", "allow a_t tool:tsh run\n", 1, "run"},
		{"protect", "../x\n", 1, "../x"},
		{"protect", "a/../../x\n", 1, "a/../../x"},
		{"protect", "/etc\n", 1, "/etc"},
		{"protect", ".\n", 1, "."},
		{"protect", "./a\n", 1, "./a"},
		{"result_bytes", "0\n", 1, "0"},
		{"result_bytes", "262145\n", 1, "262145"},
		{"result_bytes", "50k\n", 1, "50k"},
		{"root", "/\n", 1, "/"},
		{"status", "running\n", 1, "running"},
		{"timeout", "0\n", 1, "0"},
		{"timeout", "-1s\n", 1, "-1s"},
		{"timeout", "1h0m1s\n", 1, "1h0m1s"},
		{"timeout", "120\n", 1, "120"},
		{"tools", "tsh\n", 1, "tsh"},
		{"tools", "fs.read\nfs.read\n", 2, "fs.read"},
		{"tools", "fs.read\n\nfs.list\n", 2, ""},
		{"tools", "../x\n", 1, "../x"},
		{"uid", "1000\n1000\n", 2, "1000"},
		{"uid", " 1000\n", 1, " 1000"},
		{"uid", "0x10\n", 1, "0x10"},
		{"window", "0\n", 1, "0"},
		{"window", "+1\n", 1, "+1"},
		{"window", "4294967296\n", 1, "4294967296"},
		{"window", "007\n", 1, "007"},
		{"window", "AUTO\n", 1, "AUTO"},
		{"window", "", 1, ""},
		{"nonsense", "x\n", 0, "nonsense"},
		{"hooks", "x\n", 0, "hooks"},
	},
	"tool": {
		{"cap", "a b\n", 1, "a b"},
		{"description", "", 1, ""},
		{"description", " \nx\n", 1, ""},
		{"description", "a\nb\x1b[1m\n", 2, "b\x1b[1m"},
		{"effect", "read\n", 1, "read"},
		{"mode", "native\n", 1, "native"},
		{"name", "a/b\n", 1, "a/b"},
		{"parallel", "yes\n", 1, "yes"},
		{"replay", "true\n", 1, "true"},
		{"schema", "true\n", 0, ""},
		{"schema", "{\"type\": \"nonsense\"}\n", 0, "/type"},
		{"schema", "{\"$ref\": \"https://example.org/x\"}\n", 0, "https://example.org/x"},
		{"schema", "{\"$ref\": \"file:///etc/passwd\"}\n", 0, "file:///etc/passwd"},
		{"schema", "{\"type\": \"object\"}", 1, "{\"type\": \"object\"}"},
		{"perm", "rwx\n", 0, "perm"},
	},
	"model": refusedModelTexts,
}

// kinds are what has control files.
var kinds = []string{"agent", "tool", "model"}

func checker(of string) func(string, []byte) error {
	return map[string]func(string, []byte) error{"agent": CheckAgent, "tool": CheckTool, "model": CheckModel}[of]
}

func canonicaler(of string) func(string, []byte) ([]byte, error) {
	return map[string]func(string, []byte) ([]byte, error){"agent": CanonicalAgent, "tool": CanonicalTool, "model": CanonicalModel}[of]
}

func filesOf(of string) []string {
	return map[string]func() []string{"agent": AgentFiles, "tool": ToolFiles, "model": ModelFiles}[of]()
}

func TestCanonicalTexts(t *testing.T) {
	for of, files := range canonicalTexts {
		names := filesOf(of)
		for _, file := range names {
			texts, ok := files[file]
			if !ok {
				t.Errorf("%s %s: no texts", of, file)
			}
			for _, text := range texts {
				if err := checker(of)(file, []byte(text)); err != nil {
					t.Errorf("%s %s: %.60q: %v", of, file, text, err)
					continue
				}
				if again, err := canonicaler(of)(file, []byte(text)); err != nil || string(again) != text {
					t.Errorf("%s %s: %.60q is written as %.60q, %v", of, file, text, again, err)
				}
			}
		}
		if len(files) != len(names) {
			t.Errorf("%s: texts for %d files, known are %d", of, len(files), len(names))
		}
	}
}

func TestRefusedTexts(t *testing.T) {
	for of, cases := range refusedTexts {
		for _, c := range cases {
			err := checker(of)(c.file, []byte(c.text))
			var e *Error
			switch {
			case !errors.As(err, &e) || errdefs.KindOf(err) != errdefs.Invalid:
				t.Errorf("%s %s: %q: %v", of, c.file, c.text, err)
			case e.Line != c.line || e.Token != c.token:
				t.Errorf("%s %s: %q: line %d token %q, want %d %q (%v)", of, c.file, c.text, e.Line, e.Token, c.line, c.token, err)
			case slices.Contains(filesOf(of), c.file) && e.File != c.file:
				t.Errorf("%s: %q: names file %q", c.file, c.text, e.File)
			case strings.ContainsAny(err.Error(), "\n\r\x1b") || len(err.Error()) > 400:
				t.Errorf("%s: message is not one short line: %q", c.file, err)
			}
		}
	}
}

// What no file of lines may be, whatever its grammar.
func TestRefusedEverywhere(t *testing.T) {
	free := []string{"system.md", "prompt.template.md", "log"}
	for of, files := range canonicalTexts {
		for file, texts := range files {
			text := texts[len(texts)-1]
			if text == "" {
				continue
			}
			bad := map[string]string{
				"NUL":           "\x00" + text,
				"invalid UTF-8": text[:len(text)-1] + "\xff\n",
				"too large":     text + strings.Repeat("\n", libctx.MaxControlFile),
			}
			if !slices.Contains(free, file) {
				bad["CRLF"] = strings.ReplaceAll(text, "\n", "\r\n")
				bad["no LF"] = strings.TrimSuffix(text, "\n")
				bad["byte order mark"] = "\ufeff" + text
			}
			for what, text := range bad {
				var e *Error
				if err := checker(of)(file, []byte(text)); !errors.As(err, &e) || e.File != file {
					t.Errorf("%s %s: %s: %v", of, file, what, err)
				}
			}
		}
	}
	for _, file := range []string{"abi", "cwd", "window", "perm", "uid", "model", "timeout", "label"} {
		text := canonicalTexts["agent"][file][0]
		for _, bad := range []string{text + text, text + "\n", "\n" + text, " " + text, ""} {
			if err := CheckAgent(file, []byte(bad)); err == nil {
				t.Errorf("%s: %q accepted", file, bad)
			}
		}
	}
}

func TestCanonicalOfValuesAsPeopleGiveThem(t *testing.T) {
	for _, c := range []struct{ file, given, want string }{
		{"perm", "rwx", "rwx\n"},
		{"path", "/ctx/tool:/ctx/home/1000/tool", "/ctx/tool\n/ctx/home/1000/tool\n"},
		{"path", "/ctx/tool", "/ctx/tool\n"},
		{"timeout", "90s", "1m30s\n"},
		{"timeout", "60m", "1h\n"},
		{"policy", "  allow\ta_t  tool:tsh execute\n\n", "allow a_t tool:tsh execute\n"},
		{"env", "A=1\nB=2", "A=1\nB=2\n"},
		{"tools", "", ""},
		{"system.md", "text", "text"},
		{"pid", "", ""},
	} {
		got, err := CanonicalAgent(c.file, []byte(c.given))
		if err != nil || string(got) != c.want {
			t.Errorf("%s %q: %q, %v", c.file, c.given, got, err)
		}
		if err := CheckAgent(c.file, got); err != nil {
			t.Errorf("%s %q: %v", c.file, got, err)
		}
	}
	if _, err := CanonicalAgent("perm", []byte("rw")); err == nil {
		t.Error("a wrong value was made canonical")
	}
	if got, err := CanonicalTool("mode", []byte("json")); err != nil || string(got) != "json\n" {
		t.Errorf("mode: %q, %v", got, err)
	}
}

func TestCheckPath(t *testing.T) {
	for path, text := range map[string]string{
		"/r/agent/coder.d/perm":                            "rwx\n",
		"/r/agent/coder.d/system.md":                       "hello",
		"/r/tool/fs.read.d/effect":                         "workspace_read\n",
		"/r/home/1000/tool/x.d/schema":                     "{}\n",
		"/r/tool/tsh.d/config":                             "# few\nmax_loaded_tools=3\n",
		"/r/home/1000/.tshrc":                              "# mine\n\nCTX_PATH=/ctx/tool:/ctx/home/1000/tool",
		"/r/agent/coder.d/../coder.d/./prompt.template.md": "",
	} {
		if err := CheckPath(path, []byte(text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, text := range map[string]string{
		"/r/agent/coder.d/effect": "pure\n", // a tool's file
		"/r/tool/x.d/perm":        "rwx\n",
		"/r/agent/coder/perm":     "rwx\n",
		"/r/agent/-x.d/perm":      "rwx\n",
		"/r/other/x.d/perm":       "rwx\n",
		"perm":                    "rwx\n",
		"/":                       "",
		"/h/.tshrc":               "PATH=/x\n",
		"/r/tool/tsh.d/config":    "max_loaded_tools=0\n",
		"/r/tool/other.d/config":  "max_loaded_tools=3\n",
	} {
		if err := CheckPath(path, []byte(text)); errdefs.KindOf(err) != errdefs.Invalid {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestTshrc(t *testing.T) {
	path, set, err := ParseTshrc([]byte("# a\n\nCTX_PATH=/a:/b\n"))
	if err != nil || !set || !slices.Equal(path, []string{"/a", "/b"}) {
		t.Errorf("%q %v %v", path, set, err)
	}
	if _, set, err := ParseTshrc(nil); set || err != nil {
		t.Errorf("empty: %v %v", set, err)
	}
	for text, line := range map[string]int{
		"export CTX_PATH=/a\n":        1,
		"CTX_PATH=/a\nCTX_PATH=/b\n":  2,
		"CTX_PATH=\n":                 1,
		"CTX_PATH=/a:\n":              1,
		"\nCTX_PATH=$HOME/tool\n":     2,
		"CTX_PATH=/a\r\n":             1,
		"#\n rm -rf /\n":              2,
		"CTX_PATH=/a:/b:relative\n":   1,
		"CTX_PATH=\"/ctx/tool\"\n":    1,
		"\n\nCTX_PATH=/a\x00/b\n":     3,
		"CTX_PATH=/a\n\nCTX_HOME=/\n": 3,
	} {
		var e *Error
		if _, _, err := ParseTshrc([]byte(text)); !errors.As(err, &e) || e.Line != line || e.File != ".tshrc" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestListsAreBounded(t *testing.T) {
	var b bytes.Buffer
	for i := range libctx.MaxListLines + 1 {
		b.WriteString(strconv.Itoa(i) + "\n")
	}
	if err := CheckAgent("groups", b.Bytes()); err == nil {
		t.Error("a list of any length was accepted")
	}
}

// FuzzFiles: what a grammar accepts, it writes so that it accepts it again, and
// writing that once more changes nothing. For all but the three grammars that
// read more than they write, the text itself is what is written.
func FuzzFiles(f *testing.F) {
	n := 0
	for of, files := range canonicalTexts {
		for file, texts := range files {
			for _, text := range texts {
				f.Add(byte(slices.Index(kinds, of)), file, []byte(text))
				n++
			}
		}
	}
	for of, cases := range refusedTexts {
		for _, c := range cases {
			f.Add(byte(slices.Index(kinds, of)), c.file, []byte(c.text))
			n++
		}
	}
	if n < 100 {
		f.Fatalf("only %d seeds", n)
	}
	f.Fuzz(func(t *testing.T, kind byte, file string, text []byte) {
		of := kinds[int(kind)%len(kinds)]
		before := bytes.Clone(text)
		if err := checker(of)(file, text); err != nil {
			if errdefs.KindOf(err) != errdefs.Invalid || strings.ContainsAny(err.Error(), "\n\r\x1b\x00") {
				t.Fatalf("%q", err)
			}
			return
		}
		once, err := canonicaler(of)(file, text)
		if err != nil {
			t.Fatalf("%q was accepted, then refused: %v", text, err)
		}
		wide := file == "path" || file == "timeout" || file == "policy"
		if !wide && !bytes.Equal(once, text) {
			t.Fatalf("%q is written as %q", text, once)
		}
		if err := checker(of)(file, once); err != nil {
			t.Fatalf("%q is written as %q, which is refused: %v", text, once, err)
		}
		twice, err := canonicaler(of)(file, once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q, %q, %v", once, twice, err)
		}
		if !bytes.Equal(before, text) {
			t.Fatal("the text was changed")
		}
	})
}

func FuzzTshrc(f *testing.F) {
	for _, s := range []string{"", "CTX_PATH=/a:/b\n", "# x\n\nCTX_PATH=/ctx/tool", "CTX_PATH=/a\nCTX_PATH=/b\n", "export X=1\n", "CTX_PATH=/a\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path, set, err := ParseTshrc(text)
		if err != nil {
			return
		}
		if set != (len(path) > 0) {
			t.Fatalf("%q: %q, %v", text, path, set)
		}
		for _, p := range path {
			if p[0] != '/' || strings.ContainsAny(p, ":\n\r\x00") {
				t.Fatalf("%q gives directory %q", text, p)
			}
		}
	})
}
