package chat

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/screen"
	"cortexfs.org/tests/internal/world"
)

// TestDefaults: agent.sh runs ctx, and does nothing else.
func TestDefaults(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/ctx", []byte("#!/bin/sh\nprintf '<%s>' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"coder":                "agent chat coder --session default",
		"coder fix the  tests": "agent send coder --session default fix the  tests",
		"coder -":              "agent send coder --session default -",
		"coder --help me":      "agent send coder --session default -- --help me",
		"--watch coder":        "agent watch coder --session default",
		"--attach coder":       "agent attach coder --session default",
		"":                     "exit 2",
		"--watch":              "exit 2",
		"--nope coder":         "exit 2",
	} {
		var words []string
		if args != "" {
			words = strings.Split(args, " ")
		}
		cmd := exec.Command("../../agent.sh", words...)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
		out, err := cmd.Output()
		got := string(out)
		if err != nil {
			got = fmt.Sprintf("exit %d", cmd.ProcessState.ExitCode())
			want = "<" + want + ">"
			got = "<" + got + ">"
		} else {
			want = "<" + strings.ReplaceAll(want, " ", "><") + ">"
		}
		if got != want {
			t.Errorf("agent.sh %s: %s, want %s", args, got, want)
		}
	}
}

// TestPipe: from a pipe every line is a message, answers alone are on standard
// output, and the end of the last run is that of the command.
func TestPipe(t *testing.T) {
	w := modelled(t, "debug/tools", "fs.read")
	in := func(text string, args ...string) world.Result {
		cmd := w.Command("ctx", append([]string{"agent", "chat", "m"}, args...)...)
		cmd.Stdin = strings.NewReader(text)
		return w.Run(cmd)
	}
	r := in("run: fs.read README.md\nnothing\\\nmore\n\n/show 1\n")
	if r.Code != 0 || !strings.HasPrefix(r.Out, "fs.read: one\ntwo\nthree\n") || !strings.Contains(r.Out, "There was nothing to run.\none\ntwo\nthree\n") {
		t.Errorf("exit %d\n%s", r.Code, r.Out)
	}
	if !strings.Contains(r.Err, "tool 1 fs.read README.md … ") || strings.Contains(r.Out+r.Err, "\x1b") || strings.Contains(r.Out+r.Err, "❯") {
		t.Errorf("%q", r.Err)
	}
	if r := in("hello\n/nope\n"); r.Code != 2 || !strings.Contains(r.Err, "there is no /nope") {
		t.Errorf("exit %d\n%s", r.Code, r.Err)
	}
	if r := in("bad \xff\n"); r.Code != 2 || !strings.Contains(r.Err, "not UTF-8") {
		t.Errorf("exit %d\n%s", r.Code, r.Err)
	}
	if r := in(""); r.Code != 0 || r.Out+r.Err != "" {
		t.Errorf("exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
	// Only a chat that is told to moves the current session.
	if out := w.MustCtx("agent", "sessions", "m", "--json"); !strings.Contains(out, `"session":"default","current":true`) {
		t.Error(out)
	}
	if r := in("hello\n/session third\nhello\n", "--session", "second"); r.Code != 0 {
		t.Errorf("exit %d\n%s", r.Code, r.Err)
	}
	out := w.MustCtx("agent", "sessions", "m", "--json")
	for _, want := range []string{`"session":"second","current":false`, `"session":"third","current":true`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	w.MustCtx("agent", "send", "m", "--session", "second", "hello")
	if current := w.Read(w.Session("m", "index") + "/current"); current != "third\n" {
		t.Errorf("send made %q the current session", current)
	}
}

// TestPipedOutput: a person types, and the answers go elsewhere.
func TestPipedOutput(t *testing.T) {
	w := modelled(t, "debug/echo")
	cmd := w.Command("sh", "-c", `"$0" agent chat m | cat`, w.Bin+"/ctx")
	cmd.Path, cmd.Args[0] = "/bin/sh", "sh"
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	s := screen.Start(t, cmd, 80, 24)
	s.Type("**hello**\n")
	s.Await("the message and its echo", func(text string) bool { return strings.Count(text, "**hello**") == 2 })
	s.Type(ctrlD)
	over(t, s, 0)
}
