package multicall

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin"
	"cortexfs.org/libctx/builtin/about"
	"cortexfs.org/libctx/builtin/program"
	"cortexfs.org/libctx/capwire"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/toolwire"
	"cortexfs.org/libctx/wire"
	"cortexfs.org/tsh/internal/config"
	"cortexfs.org/tsh/internal/tool"
)

type outcome struct {
	code     int
	out, err string
}

// ctxtool runs the program in the current directory; stdin "-" is a terminal.
func ctxtool(t *testing.T, conf config.Tool, stdin string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(t.Context(), args, conf, Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs, InTerminal: stdin == "-"})
	return outcome{code, out.String(), errs.String()}
}

func place(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"f": "one\ntwo\n", "{odd}": "odd\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range builtin.Tools() {
		if err := os.WriteFile(string(tool.Name), tool.Files()[""], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	must(t, os.WriteFile("broken", []byte("#!/ctx/bin/ctxtool\nfs.read\nmore\n"), 0o755))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hash is the note about the content of f.
const hash = "[sha256 c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8]\n"

func TestForPeople(t *testing.T) {
	place(t)
	whole, part := outcome{0, "one\ntwo\n", hash + "[lines 1-2 of 2]\n"}, outcome{0, "one\n", hash + "[lines 1-1 of 2; next: start=2]\n"}
	for _, c := range []struct {
		stdin string
		args  []string
		want  outcome
	}{
		{"", []string{"fs.read", `{"path":"f"}`}, whole},
		{"", []string{"fs.read", "f"}, whole},
		{`{"path":"f"}` + "\n", []string{"fs.read"}, whole},
		{`{"args":["f"]}` + "\n", []string{"fs.read"}, whole},
		{"ignored", []string{"fs.read", "f", "--lines", "1"}, part},
		{"", []string{"./fs.read", "f", "1", "1"}, part},
		{"", []string{"./fs.read", `{"path":"f","lines":1}`}, part},
		{"", []string{"fs.read", "{odd}"}, outcome{0, "odd\n", "*"}},
		{"", []string{"fs.read", "none"}, outcome{1, "", "ctxtool: none: no such file or directory\n"}},
		{"", []string{"fs.read"}, outcome{2, "", "ctxtool: path is missing or empty\n"}},
		{"-", []string{"fs.read"}, outcome{2, "", "ctxtool: path is missing or empty\n"}},
		{"", []string{"fs.read", "f", "--none"}, outcome{2, "", "ctxtool: arguments: unknown flag \"--none\"\nhint: flags are --column --lines --numbers --start; words after -- are never flags\n"}},
		{"", []string{"fs.write", `{"path":"f","content":"x","content":"y"}`}, outcome{2, "", "ctxtool: arguments: invalid JSON: member \"content\": is there twice\n"}},
		{"", []string{"fs.write", `{"path":"f","content":"\ud800"}`}, outcome{2, "", "ctxtool: arguments: invalid JSON: member \"content\": holds half of a UTF-16 surrogate pair, an escape that means no character\n"}},
		{"", []string{"bash", `{"script":"echo $1","args":["x"]}`}, outcome{0, "x\n", "*"}},
		{"hello", []string{"fs.read"}, outcome{2, "", "ctxtool: arguments: not a JSON object\n"}},
		{"", []string{"fs.none"}, outcome{2, "", "ctxtool: \"fs.none\": no such tool\nhint: ctxtool lists the tools\n"}},
		{"", []string{"tsh"}, outcome{2, "", "ctxtool: \"tsh\": no such tool\nhint: ctxtool lists the tools\n"}},
		{"", []string{"./broken"}, outcome{2, "", "ctxtool: tool file \"./broken\": is not an interpreter line and a name\n"}},
		{"", []string{"./missing"}, outcome{1, "", "ctxtool: tool file: open ./missing: no such file or directory\n"}},
		{"", []string{"shell.exec", "{ echo group; }"}, outcome{0, "group\n", "*"}},
		{"", []string{"shell.exec", "echo", "out;", "exit", "7"}, outcome{1, "out\n", "*"}},
		{strings.Repeat(" ", libctx.MaxToolArguments+1), []string{"fs.read"}, outcome{2, "", "*"}},
	} {
		got := ctxtool(t, config.Tool{}, c.stdin, c.args...)
		if c.want.err == "*" {
			got.err = "*"
		}
		if got != c.want {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
	for _, args := range [][]string{nil, {"--help"}, {"help"}, {"--version"}, {"fs.read", "--help"}, {"fs.read", "-h"}, {"help", "fs.read"}} {
		if got := ctxtool(t, config.Tool{}, "", args...); got.code != 0 || got.out == "" || got.err != "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := ctxtool(t, config.Tool{}, "-"); !strings.Contains(got.out, "\nfs.stat ") || !strings.Contains(got.out, "\nshell.exec ") {
		t.Errorf("list: %s", got.out)
	}
}

func TestForTheHost(t *testing.T) {
	place(t)
	run := libctx.NewRun()
	conf := config.Tool{JSON: true, Run: string(run), Environ: []string{"PATH=/usr/bin:/bin"}}
	for _, c := range []struct {
		stdin   string
		args    []string
		content string
		code    errdefs.Kind
	}{
		{`{"args":["{\"path\":\"f\",\"lines\":1}"]}`, []string{"fs.read"}, "one\n" + hash + "[lines 1-1 of 2; next: start=2]", ""},
		{`{"path":"f","path":"g"}`, []string{"fs.read"}, `arguments: invalid JSON: member "path": is there twice`, errdefs.Invalid},
		{`{"path":"f","lines":1}` + "\n", []string{"./fs.read"}, "one\n" + hash + "[lines 1-1 of 2; next: start=2]", ""},
		{`{"args":["f"]}` + "\n", []string{"fs.read"}, "one\ntwo\n" + hash + "[lines 1-2 of 2]", ""},
		{"", []string{"fs.read", "f"}, "one\ntwo\n" + hash + "[lines 1-2 of 2]", ""},
		{`{"path":"none"}`, []string{"fs.read"}, "none: no such file or directory", errdefs.NotFound},
		{`{"path":"."}`, []string{"fs.read"}, ".: is a directory (list it with fs.list)", errdefs.Invalid},
		{`{"path":"f"`, []string{"fs.read"}, "arguments: invalid JSON: *", errdefs.Invalid},
		{`{"cmd":"echo out; exit 7"}`, []string{"shell.exec"}, "out\n[exit 7, *", errdefs.IO},
		{`{"cmd":"echo out"}`, []string{"shell.exec"}, "out\n[exit 0, *", ""},
		{`{"args":["--help"]}`, []string{"fs.stat"}, `arguments: unknown flag "--help" (it has no flags; words after -- are never flags)`, errdefs.Invalid},
	} {
		got := ctxtool(t, conf, c.stdin, c.args...)
		r, err := toolwire.Read([]byte(got.out), run)
		live := ""
		if c.args[0] == "shell.exec" {
			live = "out\n" // what is left of a call if this process is killed
		}
		if err != nil || got.code != 0 || got.err != live {
			t.Errorf("%s: %+v, %v", c.stdin, got, err)
			continue
		}
		want, open := strings.CutSuffix(c.content, "*")
		if content := r.Content(); content != want && !(open && strings.HasPrefix(content, want)) {
			t.Errorf("%s: %q", c.stdin, content)
		}
		if failed := r.Failed != nil; failed != (c.code != "") || failed && r.Failed.Code != c.code {
			t.Errorf("%s: %+v", c.stdin, r.Failed)
		}
		if shell := c.args[0] == "shell.exec"; (r.ExitCode != nil) != shell {
			t.Errorf("%s: exit code %v", c.stdin, r.ExitCode)
		}
	}
	// A word that is no tool is no call: the frames would have no name.
	if got := ctxtool(t, conf, "{}", "fs.none"); got.code != 2 || got.out != "" {
		t.Errorf("%+v", got)
	}
}

// Every built-in tool that ctxtool interprets is there, and no other.
func TestTable(t *testing.T) {
	table := map[libctx.Tool]bool{}
	for _, tool := range Tools(config.Tool{}, nil) {
		table[tool.Name] = true
	}
	for _, tool := range builtin.Tools() {
		if served := filepath.Base(tool.Interpreter) == "ctxtool"; served != table[tool.Name] {
			t.Errorf("%s: interpreter %s, in the table %v", tool.Name, tool.Interpreter, table[tool.Name])
		}
		delete(table, tool.Name)
	}
	if len(table) != 0 {
		t.Errorf("without a definition: %v", table)
	}
}

// Every example of every tool does what it says, as it is typed behind ctxtool.
func TestExamples(t *testing.T) {
	lines := func(n int, text string) string { return strings.Repeat(text+"\n", n) }
	files := map[string]string{
		"README.md": "read me\n", "build.sh": "echo built $1\n", "one.txt": "1\n", "a.txt": "colour and colour\n", "config.ini": "port = 80\n",
		"src/main.go": lines(200, "func main // TODO"), "logs/2026-05-01.txt": "", "logs/2026-05-02.txt": "", "docs/a.md": "Timeout\n",
		"main.go": "func a() {\n\treturn nil\n}\n\nfunc b() {\n", "data.json": strings.Repeat("x", 3000), "Makefile": "test:\n\t@echo tested\n",
	}
	for _, name := range builtin.Tools() {
		if !program.Offered(name.Name) {
			if got := ctxtool(t, config.Tool{}, "", string(name.Name), "x"); got.code != 69 || !strings.Contains(got.err, "is not installed") {
				t.Errorf("%+v", got)
			}
			continue
		}
		for line := range strings.Lines(about.Examples(name.Name) + "\n") {
			if name.Name == "tsh" {
				continue // of another program
			}
			t.Chdir(t.TempDir())
			for name, text := range files {
				must(t, os.MkdirAll(filepath.Dir(name), 0o755))
				must(t, os.WriteFile(name, []byte(text), 0o644))
			}
			must(t, os.MkdirAll("tree/tool/tsh.d", 0o755))
			cwd, err := os.Getwd()
			must(t, err)
			conf := config.Tool{Environ: []string{"PATH=/usr/bin:/bin"}}
			conf.Shell.Paths.CTXRoot = cwd + "/tree"
			conf.Self = config.Self{Socket: "self", Agent: "coder", Session: "default", Run: string(libctx.NewRun())}
			if name.Name == "agent.update" {
				daemon(t, conf.Self.Socket)
			}
			words, err := exec.Command("/bin/sh", "-c", `printf '%s\0' `+line).Output()
			must(t, err)
			args := strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")
			if got := ctxtool(t, conf, "", args...); got.code != 0 || got.out == "" || strings.Contains(got.err, "[no match") {
				t.Errorf("%s%+v", line, got)
			}
			help := ctxtool(t, conf, "", string(name.Name), "--help")
			if !strings.Contains(help.out, "\n  ctxtool "+line) {
				t.Errorf("%s --help does not show %s", name.Name, line)
			}
		}
	}
}

// daemon does all that one request wants.
func daemon(t *testing.T, socket string) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	must(t, err)
	go func() {
		defer l.Close()
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		line, _ := wire.NewLines(c, libctx.MaxCapFrame).Next()
		q, err := capwire.Decode(line)
		if err != nil {
			t.Error(err)
		}
		reply, _ := capwire.Reply{Type: capwire.Updated, ID: q.ID}.Encode()
		c.Write(reply)
	}()
}

// What a tool wrote before it failed does not hide why it did.
func TestFailureIsTold(t *testing.T) {
	failed := errdefs.New(errdefs.IO, "d: it broke").WithHint("mend it")
	out := new(tool.Output)
	out.WriteString("half")
	out.Notef("a note")
	var std, errs bytes.Buffer
	streams := Streams{Out: &std, Err: &errs}
	if code := (&plain{streams}).present(out, failed); code != 1 || std.String() != "half" || !strings.Contains(errs.String(), "[a note]\nctxtool: d: it broke\nhint: mend it\n") {
		t.Errorf("%d %q %q", code, std.String(), errs.String())
	}
	std.Reset()
	newFrames(streams, "", "fs.list").present(out, failed)
	if r, err := toolwire.Read(std.Bytes(), ""); err != nil || r.Content() != "half\n[a note]\nd: it broke (mend it)" {
		t.Errorf("%q, %v", r.Content(), err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

func TestOutputThatCanNotBeWritten(t *testing.T) {
	place(t)
	for _, conf := range []config.Tool{{}, {JSON: true}} {
		var errs bytes.Buffer
		if code := Main(t.Context(), []string{"fs.read", "f"}, conf, Streams{In: strings.NewReader(""), Out: broken{}, Err: &errs}); code == 0 || errs.Len() == 0 {
			t.Errorf("json %v: exit %d, %q", conf.JSON, code, errs.String())
		}
	}
}

func TestTerminalGetsInertText(t *testing.T) {
	place(t)
	must(t, os.WriteFile("esc", []byte("a\x1b[31mb\rc\u202ed\u009be"), 0o644))
	var out, errs bytes.Buffer
	code := Main(t.Context(), []string{"fs.read", "esc"}, config.Tool{}, Streams{Out: &out, Err: &errs, OutTerminal: true})
	if want := `a\x1b[31mb\rc\u202ed\u009be` + "\n"; code != 0 || out.String() != want {
		t.Errorf("%d %q %q", code, out.String(), errs.String())
	}
}
