package tsh

import (
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin/program"
	"cortexfs.org/tests/internal/world"
)

// run runs tsh without a terminal.
func (r *room) run(input string, words ...string) world.Result {
	r.T.Helper()
	cmd := r.command(append([]string{"/ctx/bin/tsh"}, words...)...)
	cmd.Stdin = strings.NewReader(input)
	return r.Run(cmd)
}

// Without a terminal a command is the tool, with the input and the code it has, and
// lines run one after another.
func TestWithoutATerminal(t *testing.T) {
	r := enterable(t, "say", "copy", "fail", "die", "bash")
	none := "tsh: ls: no such tool (tool_not_found)\nhint: tools lists what there is\n"
	for _, c := range []struct {
		input string
		words []string
		want  world.Result
	}{
		{"", []string{"say", "a b", "--root", "x"}, world.Result{Out: "3 words:\n<a b>\n<--root>\n<x>\n"}},
		{"input\n", []string{"copy"}, world.Result{Out: "copying\ninput\n"}},
		{"", []string{"fail", "9"}, world.Result{Code: 9}},
		{"", []string{"ls"}, world.Result{Err: none, Code: 127}},
		{"", []string{"bash", "-c", "echo $0 $1", "x", "y"}, world.Result{Out: "x y\n", Err: "*"}},
		{"say a\ncopy\nls\nsay b & \nsay 'c'\n", nil, world.Result{
			Out: "1 words:\n<a>\ncopying\n1 words:\n<c>\n", Err: none + "tsh: only a terminal has jobs in the background\n"}},
		{"fail 4\n", nil, world.Result{Code: 4}},
		{"die KILL\n", nil, world.Result{Code: 137}},
		{"say b &\n", nil, world.Result{Err: "tsh: only a terminal has jobs in the background\n", Code: 2}},
		{"fail 4\nexit 3\nsay no\n", nil, world.Result{Code: 3}},
		{"", []string{"tools"}, world.Result{Out: "bash\ncopy\ndie\nfail\nsay\ntsh\n"}},
		{"", []string{"which", "say", "fs.read"}, world.Result{Out: "/ctx/tool/say\n", Err: "tsh: fs.read: no such tool (tool_not_found)\nhint: tools lists what there is\n", Code: 1}},
	} {
		got := r.run(c.input, c.words...)
		if c.want.Err == "*" {
			got.Err = "*"
		}
		if got != c.want {
			t.Errorf("%q %q: %+v", c.input, c.words, got)
		}
	}
	// Within a run calls are the host's.
	cmd := r.command("/usr/bin/env", "CTX_RUN_ID=r", "/ctx/bin/tsh", "say")
	if got := r.Run(cmd); got.Code != 69 || !strings.Contains(got.Err, "through the agent's host") {
		t.Errorf("%+v", got)
	}
}

// bash is the program itself: with the terminal, the agent's home, and the programs
// of the system.
func TestBash(t *testing.T) {
	r := enterable(t, "bash", "say")
	s := r.start(100, 40)
	s.Type("bash" + enter)
	s.Await("the prompt of bash", func(all string) bool { return strings.HasSuffix(all, "$") || strings.HasSuffix(all, "#") })
	for line, want := range map[string]string{
		"pwd; echo $((40+2)) $HOME $SHLVL":      "/workspace\n42 /home/agent 1\n",
		"ls":                                    "README.md\n",
		"env | grep -c ^CTX_; env | grep PATH=": "5\nCTX_PATH=/ctx/tool:",
		"git --version":                         "git version ",
		"test -t 0 && test -t 1 && test -t 2; echo terminal $?": "terminal 0\n",
	} {
		before := len(s.Raw())
		s.Type(line + enter)
		s.WroteAfter(before, strings.ReplaceAll(want, "\n", "\r\n"))
	}
	// It has jobs of its own.
	s.Type("sh -c 'echo asleep $((1+1)); exec sleep 1000'" + enter)
	s.See("\nasleep 2")
	s.Type(ctrlZ)
	s.See("Stopped")
	s.Type("exit 3" + enter)
	s.See("There are stopped jobs.")
	s.Type("exit 3" + enter)
	s.Last("coder tsh 3>")
	if text := r.Read(filepath.Join(r.Layout.AgentHome(uint32(r.UID), "coder"), ".bash_history")); !strings.Contains(text, "exec sleep 1000'\n") {
		t.Errorf("%q", text)
	}
	s.Type("bash -c 'echo \"$0 $1\"; exit 5' a 'b  c'" + enter)
	s.Await("its words and its code", func(all string) bool { return strings.HasSuffix(all, "\na b  c\ncoder tsh 5>") })
	s.Type("bash --version" + enter)
	s.See("GNU bash")
	leave(t, s)
}

// What is typed ahead is for whoever has the terminal when it comes.
func TestTypedAhead(t *testing.T) {
	r := enterable(t, "bash", "say", "pair")
	s := r.start(80, 40)
	s.Type("pair" + enter + "for the" + enter + "tool" + enter + "bash --norc" + enter + "echo $((40+2))" + enter + "exit 6" + enter + "say a" + enter + "exit 8" + enter)
	s.See("> exit 8")
	if code := s.Exit(); code != 8 {
		t.Errorf("exit code %d", code)
	}
	all := s.Text()
	if !strings.Contains(all, "\n42\n") || !strings.Contains(all, "got for the, tool\n") || !strings.Contains(all, "coder tsh 6> say a\n1 words:\n<a>\n") {
		t.Errorf("%s", all)
	}
}

// tmux and zellij are there where the programs are; else the tool says so.
func TestMultiplexers(t *testing.T) {
	w := world.New(t)
	for _, name := range []libctx.Tool{"tmux", "zellij"} {
		offered := program.Offered(name)
		if made := strings.Contains("\n"+w.MustCtx("tool", "ls"), "\n"+string(name)+"\t"); made != offered {
			t.Errorf("%s: made %v, there %v", name, made, offered)
		}
		got := w.Run(w.Command("ctxtool", string(name), "--version"))
		if !offered && (got.Code != 69 || !strings.Contains(got.Err, string(name)+" is not installed")) {
			t.Errorf("%+v", got)
		}
	}
	if !program.Offered("tmux") {
		return // the rest is about tmux itself
	}
	r := enterable(t, "tmux")
	s := r.start(100, 30)
	s.Type("tmux -f /dev/null new -s work" + enter)
	s.See("[work]")
	s.Type("echo in$((1+1))side; tty" + enter)
	s.See("in2side\n/dev/pts/")
	s.Type("\x02d") // detaches
	s.See("[detached (from session work)]")
	s.Last(prompt)
	does(s, "tmux ls -F '#S'", "work", "")
	s.Type("tmux attach" + enter)
	s.See("in2side")
	s.Type("exit" + enter)
	s.See("[exited]")
	s.Last(prompt)
	leave(t, s)
}
