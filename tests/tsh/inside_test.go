// Package tsh drives the program tsh on terminals, in sandboxes that show an agent's
// view as a launcher of terminals does.
package tsh

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/view"
	"cortexfs.org/tests/internal/screen"
	"cortexfs.org/tests/internal/world"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == hold {
		os.Exit(holding(os.Args[2:]))
	}
	world.Main(m)
}

const (
	prompt = "coder tsh>"
	enter  = "\r"
	ctrlC  = "\x03"
	ctrlD  = "\x04"
	ctrlZ  = "\x1a"
)

// room is a world with the agent coder, and what its sandbox shows.
type room struct {
	*world.World
	args []string // of bwrap
}

// tools are scripts that agents may call, each with its effect.
var tools = map[string]string{
	"say":    `echo "$# words:"; for w in "$@"; do echo "<$w>"; done`,
	"part":   `printf 'no end'`,
	"fail":   `exit "$1"`,
	"die":    `kill -s "$1" $$`,
	"copy":   `echo copying; exec cat`,
	"pair":   `read -r a; read -r b; echo "got $a, $b"`,
	"asks":   `stty -echo; printf 'secret? '; read -r x; stty echo; echo; echo "it is $x"`,
	"modes":  `stty -a | grep -o -- '-\?icanon'`,
	"raw":    `stty raw; echo "raw now"; kill -s STOP $$; stty -a | grep -o -- '-\?icanon'; exit 4`,
	"told":   `trap 'echo heard HUP >>told; exit 0' HUP; trap 'echo heard INT >>told; exit 9' INT; echo waiting; (: >ready; exec sleep 1000) & while :; do wait; done`,
	"groups": `ps -o pid= -o pgid= -o tpgid= -p $$ | (read -r pid pgid tpgid; [ "$pid" = "$pgid" ] && [ "$pgid" = "$tpgid" ] && echo a group in front)`,
	"mine":   `cat /proc/$$/status | grep -E '^Sig(Blk|Ign)'`,
}

// new makes the room. The agent may use the tools that are named, and tsh.
func enterable(t testing.TB, names ...string) *room {
	t.Helper()
	w := world.New(t)
	place := w.Root + "/tool/"
	for name, text := range tools {
		w.Write(place+name, "#!/bin/sh\n"+text+"\n")
		must(t, os.Chmod(place+name, 0o755))
		w.Mkdir(place+name+".d", 0o755)
		w.Write(place+name+".d/effect", "host_process\n")
	}
	args := []string{"agent", "new", "coder", "--model", "debug/echo"}
	for _, name := range names {
		args = append(args, "--tool", name)
	}
	w.MustCtx(args...)
	a, err := view.Load(w.Layout, "coder")
	must(t, err)
	prepared, err := a.Prepare(w.Layout, false)
	must(t, err)
	t.Cleanup(prepared.Release)
	home := w.Layout.AgentHome(a.Owner.UID, "coder")
	must(t, os.MkdirAll(home, 0o700))
	r := &room{World: w, args: []string{"--unshare-user", "--unshare-pid", "--die-with-parent", "--clearenv", "--ro-bind", "/usr", "/usr"}}
	for _, dir := range []string{"/bin", "/lib", "/lib64", "/sbin"} {
		r.args = append(r.args, "--ro-bind-try", dir, dir)
	}
	r.args = append(r.args, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--ro-bind", prepared.Dir, "/ctx",
		"--ro-bind", w.Layout.Control("coder"), "/ctx/agent/coder.d",
		"--ro-bind", filepath.Join(w.Bin, "ctxtool"), "/ctx/bin/ctxtool", "--ro-bind", filepath.Join(w.Bin, "tsh"), "/ctx/bin/tsh",
		"--bind", home, "/home/agent", "--bind", w.Workspace, "/workspace", "--chdir", "/workspace")
	for _, kv := range a.TerminalEnviron() {
		name, value, _ := strings.Cut(kv, "=")
		r.args = append(r.args, "--setenv", name, value)
	}
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// command is a program inside.
func (r *room) command(words ...string) *exec.Cmd {
	cmd := exec.Command("bwrap", append(append(append([]string{}, r.args...), "--"), words...)...)
	cmd.Env = []string{}
	return cmd
}

// start is tsh on a terminal.
func (r *room) start(columns, rows int) *screen.Screen {
	r.T.Helper()
	s := screen.Start(r.T, r.command("/ctx/bin/tsh"), columns, rows)
	s.Last(prompt)
	return s
}

// control changes a control file of the agent.
func (r *room) control(file, text string) {
	r.T.Helper()
	must(r.T, os.WriteFile(filepath.Join(r.Layout.Control("coder"), file), []byte(text), 0o644))
}

// does types a command and waits until the prompt is there again below what the
// command printed; status is the exit code that the prompt shows, "" for 0.
func does(s *screen.Screen, line, out, status string) {
	s.Type(line + enter)
	end := prompt
	if status != "" {
		end = "coder tsh " + status + ">"
	}
	want := "> " + line + "\n" + out
	if out != "" {
		want += "\n"
	}
	want += end
	s.Await(want, func(all string) bool { return strings.HasSuffix(all, want) })
}

// leave ends an idle shell.
func leave(t testing.TB, s *screen.Screen) {
	t.Helper()
	s.Type("exit 0" + enter)
	if code := s.Exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
