package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/toolshell/command"
	"cortexfs.org/tsh/internal/config"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree makes a tree with the built-in tools and returns its root.
func tree(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, name := range []libctx.Tool{"fs.list", "fs.read", "fs.stat", "shell.exec", "tsh"} {
		tool, ok := builtin.Find(name)
		if !ok {
			t.Fatalf("no tool %s", name)
		}
		for file, text := range tool.Files() {
			p := filepath.Join(root, "tool", string(tool.Name))
			mode := os.FileMode(0o755)
			if file != "" {
				p, mode = filepath.Join(p+".d", file), 0o644
			}
			must(t, os.MkdirAll(filepath.Dir(p), 0o755))
			must(t, os.WriteFile(p, text, mode))
		}
	}
	return root
}

func place(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), mode))
}

func conf(root string) config.Shell {
	return config.Shell{Paths: paths.Env{CTXRoot: root, Home: root, UID: 4711}}
}

func tsh(conf config.Shell, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = Run(args, conf, Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

func TestBuiltins(t *testing.T) {
	root := tree(t)
	help := (&toolshell.Shell{Topics: toolshell.Topics()}).Run([]string{"help"}).Text
	file := func(name string) string { return filepath.Join(root, "tool", name) }
	place(t, file("plain"), "", 0o644)
	for _, c := range []struct {
		args []string
		code int
		out  string
		errs string // a part
	}{
		{[]string{"which", "fs.read"}, 0, file("fs.read") + "\n", ""},
		{[]string{"which", "fs.read", "none", "fs.stat"}, 1, file("fs.read") + "\n" + file("fs.stat") + "\n", "tsh: none: no such tool on CTX_PATH\n"},
		{[]string{"which", "plain"}, 1, "", file("plain") + " is not executable"},
		{[]string{"which", "fs.read.d"}, 2, "", "tool name"},
		{[]string{"which", "../x"}, 2, "", "tool name"},
		{[]string{"which", "sh"}, 1, "", "no such tool"},
		{[]string{"which", "--root", "/nowhere", "fs.read"}, 1, "", "no such tool"},
		{[]string{"which", "fs.read", "--root=" + root}, 0, file("fs.read") + "\n", ""},
		{[]string{"which", "fs.read", "-r", root}, 0, file("fs.read") + "\n", ""},
		{[]string{"--root", "/nowhere", "which", "fs.read"}, 1, "", "no such tool"},
		{[]string{"which"}, 2, "", "tsh: which: a name is missing\nhint: usage: which NAME…\n"},
		{[]string{"which", "--none"}, 2, "", "none"},
		{[]string{"which", "--", "--none"}, 2, "", "tool name"},
		{[]string{"type", "which", "fs.read"}, 0, "which is a tsh builtin\nfs.read is " + file("fs.read") + "\n", ""},
		{[]string{"command", "-v", "fs.read"}, 0, file("fs.read") + "\n", ""},
		{[]string{"command", "fs.read", "-v"}, 0, file("fs.read") + "\n", ""},
		{[]string{"command", "-v", "which"}, 0, "which\n", ""},
		{[]string{"command", "fs.read"}, 2, "", "command -v"},
		{[]string{"tools"}, 0, "fs.\nshell.\ntsh\n", ""},
		{[]string{"--list"}, 0, "fs.\nshell.\ntsh\n", ""},
		{[]string{"tools", "fs"}, 0, "fs.list\nfs.read\nfs.stat\n", ""},
		{[]string{"tools", "fs."}, 0, "fs.list\nfs.read\nfs.stat\n", ""},
		{[]string{"tools", "none"}, 0, "", ""},
		{[]string{"tools", "a", "b"}, 2, "", "too many"},
		{[]string{"help", "a", "b"}, 2, "", "too many"},
		{[]string{"help", "none"}, 1, "", "no such tool"},
		{[]string{"none"}, 1, "", "no such tool"},
		{[]string{"--none"}, 2, "", "none"},
		{[]string{"sh", "-c", "echo no"}, 1, "", "no such tool"},
		{[]string{"fs.read", "--root", "x", "--help"}, 69, "", "identity of an agent"},
		{[]string{"shell.exec", "which", "sh"}, 69, "", "hint: ctx agent tsh AGENT -- shell.exec …\n"},
		{[]string{"-h"}, 0, flagsHelp + help, ""},
		{[]string{"--help"}, 0, flagsHelp + help, ""},
		{[]string{"help"}, 0, help, ""},
		{[]string{"which", "--help"}, 0, "which NAME…\nprint the files that tools are\n", ""},
		{[]string{"help", "which"}, 0, "which NAME…\nprint the files that tools are\n", ""},
		{[]string{"loads"}, 0, "", ""},
		{[]string{"load", "fs.read"}, 69, "", "hint: ctx agent tsh AGENT -- load TOOL\n"},
		{[]string{"exit"}, 0, "", ""},
		{[]string{"exit", "7"}, 7, "", "-"},
		{[]string{"exit", "x"}, 2, "", "no code"},
		{[]string{"unpin"}, 2, "", "hint: usage: unpin TOOL…\n"},
		{nil, 0, "", ""},
	} {
		code, out, errs := tsh(conf(root), c.args...)
		silent := code == 0 || c.errs == "-" // exit with a code says nothing
		if code != c.code || out != c.out || !silent && !strings.Contains(errs, c.errs) || (errs == "") != silent {
			t.Errorf("%q: %d %q %q", c.args, code, out, errs)
		}
	}
	if code, out, errs := tsh(conf(root), "--version"); code != 0 || !strings.HasPrefix(out, "tsh ") || errs != "" {
		t.Errorf("%d %q %q", code, out, errs)
	}
}

func TestLongList(t *testing.T) {
	root := tree(t)
	place(t, filepath.Join(root, "tool", "odd"), "", 0o755)
	place(t, filepath.Join(root, "tool", "odd.d", "description"), "tab\there \x1b[31m\u202e\nsecond line\n", 0o644)
	code, out, errs := tsh(conf(root), "tools", "-l")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || errs != "" || len(lines) != 6 {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	for _, line := range lines {
		f := strings.Split(line, "\t")
		if len(f) != 3 || f[1] != filepath.Join(root, "tool", f[0]) || f[2] == "" {
			t.Errorf("%q", line)
		}
	}
	if !strings.Contains(out, `tab here \x1b[31m\u202e`+"\n") {
		t.Errorf("%q", out)
	}
	if code, out, _ := tsh(conf(root), "tools", "--json", "shell"); code != 0 || !strings.HasPrefix(out, `{"tool":"shell.exec","path":"`) || strings.Count(out, "\n") != 1 {
		t.Errorf("%d %q", code, out)
	}
}

func TestHelpOfTool(t *testing.T) {
	root := tree(t)
	code, out, _ := tsh(conf(root), "help", "fs.read")
	for _, want := range []string{"fs.read\n" + root, "Read a text file.", "  path (string, required)  ", "  lines (integer)  ", "\nexamples\n  fs.read "} {
		if !strings.Contains(out, want) {
			t.Errorf("%d: no %q in %s", code, want, out)
		}
	}
	place(t, filepath.Join(root, "tool", "bare"), "", 0o755)
	place(t, filepath.Join(root, "tool", "odd"), "", 0o755)
	place(t, filepath.Join(root, "tool", "odd.d", "schema"), "[1,2", 0o644)
	for _, name := range []string{"bare", "odd"} {
		if code, out, errs := tsh(conf(root), "help", name); code != 0 || errs != "" || !strings.HasPrefix(out, name+"\n") {
			t.Errorf("%s: %d %q %q", name, code, out, errs)
		}
	}
}

func TestSearchOrder(t *testing.T) {
	root := tree(t)
	own := filepath.Join(root, "home", "4711")
	for _, dir := range []string{"rc", "env"} {
		place(t, filepath.Join(root, dir, "here"), "", 0o755)
	}
	place(t, filepath.Join(own, "tool", "mine"), "", 0o755)
	which := func(c config.Shell, name, want string) {
		t.Helper()
		code, out, errs := tsh(c, "which", name)
		if want == "" && code == 0 || want != "" && out != filepath.Join(root, want)+"\n" {
			t.Errorf("%s: %d %q %q", name, code, out, errs)
		}
	}
	c := conf(root)
	which(c, "mine", "home/4711/tool/mine")
	which(c, "here", "")
	c.Path = "/ctx/env"
	which(c, "here", "env/here")
	which(c, "mine", "")
	place(t, filepath.Join(own, ".tshrc"), "# mine\n\nCTX_PATH=/ctx/rc\n", 0o644)
	which(c, "here", "rc/here")
	c.Agent = "coder"
	which(c, "here", "env/here")
	if code, _, errs := tsh(c, "here"); code != 69 || !strings.Contains(errs, "ctx agent tsh coder -- here") {
		t.Errorf("%d %q", code, errs)
	}
	c.Path = ""
	which(c, "here", "")

	// CTX_HOME names the start file's directory, as seen inside.
	c = conf(root)
	c.Home = "/ctx/other"
	place(t, filepath.Join(root, "other", ".tshrc"), "CTX_PATH=/ctx/env", 0o644)
	which(c, "here", "env/here")
	for _, text := range []string{"export CTX_PATH=/ctx/env\n", "CTX_PATH=$(id)\n", "CTX_PATH=/a\nCTX_PATH=/b\n", "echo hi\n", "CTX_PATH=\n"} {
		place(t, filepath.Join(root, "other", ".tshrc"), text, 0o644)
		if code, _, errs := tsh(c, "which", "here"); code != 2 || !strings.Contains(errs, ".tshrc") {
			t.Errorf("%q: %d %q", text, code, errs)
		}
	}
	must(t, os.Remove(filepath.Join(root, "other", ".tshrc")))
	must(t, os.Symlink(filepath.Join(own, ".tshrc"), filepath.Join(root, "other", ".tshrc")))
	if code, _, _ := tsh(c, "which", "here"); code == 0 {
		t.Error("a start file that is a link was followed")
	}
}

// The loop: a line is a command, the last code is the program's, loaded tools
// live as long as it does.
func TestInteractive(t *testing.T) {
	root := tree(t)
	loop := func(in string, terminal bool) (int, string, string) {
		var o, e bytes.Buffer
		code := Run(nil, conf(root), Streams{In: strings.NewReader(in), Out: &o, Err: &e, InTerminal: terminal})
		return code, o.String(), e.String()
	}
	read := filepath.Join(root, "tool", "fs.read")
	for _, c := range []struct {
		in   string
		code int
		out  string
		errs string
	}{
		{"", 0, "", ""},
		{"\n  \n# remark\n", 0, "", ""},
		{"which fs.read\r\ntools fs", 0, read + "\nfs.list\nfs.read\nfs.stat\n", ""},
		{"which none\n", 1, "", "no such tool"},
		{"which none\nwhich 'fs.read'\n", 0, read + "\n", "no such tool"},
		{"which\n", 2, "", "hint: usage"},
		{"'\nexit 3\nwhich fs.read\n", 3, "", "not closed"},
		{"quit\nwhich fs.read\n", 0, "", ""},
		{"fs.read x\n", 69, "", "identity of an agent"},
		{"ls\n", 1, "", "no such tool"},
		{"load fs.read\nload fs.stat\nunload fs.stat\nloads\n", 0, "", ""},
		{"which " + strings.Repeat("a", 1<<20) + "\nwhich fs.read\n", 0, read + "\n", "longer than"},
		{strings.Repeat("a", 1<<20) + "b", 2, "", "longer than"},
	} {
		code, out, errs := loop(c.in, false)
		if code != c.code || c.out != "" && out != c.out || !strings.Contains(errs, c.errs) || c.errs == "" && errs != "" {
			t.Errorf("%.60q: %d %q %q", c.in, code, out, errs)
		}
	}
	_, out, _ := loop("load fs.read\nload fs.stat\nunload fs.stat\nloads\n", false)
	if !strings.Contains(out, "unloaded fs.stat\t"+filepath.Join(root, "tool", "fs.stat")+"\nfs.read\t"+read+"\tmetadata\tRead a text file.") {
		t.Errorf("%q", out)
	}
	if code, out, errs := loop("which fs.read\n", true); code != 0 || out != read+"\n" || errs != "tsh> tsh> \n" {
		t.Errorf("%d %q %q", code, out, errs)
	}
	place(t, filepath.Join(root, "tool", "tsh.d", "config"), "max_loaded_tools=1\n", 0o644)
	if _, out, _ := loop("load fs.read fs.stat\n", false); !strings.HasSuffix(out, "\nevicted fs.read\t"+read+"\n") {
		t.Errorf("%q", out)
	}
	place(t, filepath.Join(root, "tool", "tsh.d", "config"), "#\nmax_loaded_tools=x\n", 0o644)
	if code, _, errs := loop("load fs.read\n", false); code != 2 || !strings.Contains(errs, "config: line 2") {
		t.Errorf("%d %q", code, errs)
	}
}

// With an agent's identity and no session that could be seen, nothing is loaded
// and nothing can be.
func TestInAgent(t *testing.T) {
	root := tree(t)
	c := conf(root)
	c.Agent, c.Path, c.Session = "coder", "/ctx/tool", "s"
	for _, line := range []string{"load fs.read", "pin fs.read", "fs.read x"} {
		if code, out, errs := tsh(c, strings.Fields(line)...); code != 69 || out != "" || !strings.Contains(errs, "host") {
			t.Errorf("%s: %d %q %q", line, code, out, errs)
		}
	}
	for _, session := range []string{"s", "", "..", "a/b"} {
		c.Session = session
		if code, out, errs := tsh(c, "loads"); code != 0 || out+errs != "" {
			t.Errorf("%q: %d %q %q", session, code, out, errs)
		}
	}
}

func TestHostPATHIsNeverUsed(t *testing.T) {
	root := tree(t)
	decoys := t.TempDir()
	names := []string{"decoy", "fs.none", "sh"}
	for _, b := range command.Builtins() {
		names = append(names, b.Name)
	}
	for _, tool := range builtin.Tools() {
		names = append(names, string(tool.Name))
	}
	for _, name := range names {
		place(t, filepath.Join(decoys, name), "#!/bin/sh\necho DECOY >&2\necho DECOY\n", 0o755)
	}
	t.Setenv("PATH", decoys+":"+os.Getenv("PATH"))
	t.Chdir(decoys)
	for _, args := range [][]string{{"which", "decoy"}, {"type", "decoy"}, {"command", "-v", "decoy"}, {"help", "decoy"}, {"decoy"}, {"ls"}} {
		if code, out, _ := tsh(conf(root), args...); code != 1 || out != "" {
			t.Errorf("%q: %d %q", args, code, out)
		}
	}
	for _, name := range names {
		for _, args := range [][]string{{name}, {name, "fs.read"}, {"which", name}, {"help", name}} {
			if _, out, errs := tsh(conf(root), args...); strings.Contains(out+errs, "DECOY") || strings.Contains(out, decoys) {
				t.Errorf("%q: %q %q", args, out, errs)
			}
		}
	}
}

func TestArrange(t *testing.T) {
	for in, want := range map[string]string{
		"which a --root x":        "--root x -- which a",
		"tools fs -l":             "-- tools fs -l",
		"--root x tools -l":       "--root x -- tools -l",
		"tools -l --root=x fs":    "--root=x -- tools -l fs",
		"which -- --root":         "-- which -- --root",
		"fs.read --root x":        "-- fs.read --root x",
		"-r x fs.read which -l":   "-r x -- fs.read which -l",
		"command a -v":            "-- command a -v",
		"which --root":            "--root -- which",
		"-- which":                "-- which",
		"-- fs.read --root":       "-- fs.read --root",
		"which a which":           "-- which a which",
		"help which --version -h": "--version -- help which -h",
		"-h":                      "-h",
		"--list fs":               "--list -- fs",
		"--list tools":            "--list -- tools",
	} {
		if got := arrange(strings.Fields(in)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s becomes %q", in, got)
		}
	}
}
