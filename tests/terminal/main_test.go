// Package terminal tests terminals as people have them: the suite's real programs,
// real programs inside, clients on terminals that an independent emulator draws.
package terminal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/screen"
	"cortexfs.org/tests/internal/world"
)

func TestMain(m *testing.M) { world.Main(m) }

const (
	enter  = "\r"
	ctrlC  = "\x03"
	ctrlZ  = "\x1a"
	leave  = "\x1ed" // what clients take for themselves
	prompt = "coder tsh>"
)

// lab is a world with the agent coder.
type lab struct{ *world.World }

// newLab makes one. The agent may use bash, and the tools that are named.
func newLab(t *testing.T, tools ...string) *lab {
	t.Helper()
	l := &lab{world.NewUser(t)}
	args := []string{"agent", "new", "coder", "--model", "debug/tools", "--tool", "bash"}
	for _, tool := range tools {
		args = append(args, "--tool", tool)
	}
	l.MustCtx(args...)
	return l
}

// newOwn is newLab of the present user, who may connect to terminals by hand.
func newOwn(t *testing.T) *lab {
	t.Helper()
	l := &lab{world.New(t)}
	l.MustCtx("agent", "new", "coder", "--model", "debug/tools", "--tool", "bash")
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// room is a terminal of the agent.
type room struct {
	*lab
	t       testing.TB
	session string
	pid     int // of the launcher
	socket  string
	done    int // scripts
}

// start starts the terminal of a session.
func (l *lab) start(t testing.TB, session string, flags ...string) *room {
	t.Helper()
	r := l.Ctx(append([]string{"--json", "agent", "start", "--supervisor", "direct", "--session", session, "coder"}, flags...)...)
	var said struct {
		PID    int
		Socket string
	}
	if err := json.Unmarshal([]byte(r.Out), &said); r.Code != 0 || err != nil {
		t.Fatalf("start: exit %d: %s%s", r.Code, r.Out, r.Err)
	}
	return &room{lab: l, t: t, session: session, pid: said.PID, socket: said.Socket}
}

// client runs ctx agent attach or watch on a terminal of that size.
func (r *room) client(verb string, columns, rows int, flags ...string) *screen.Screen {
	r.t.Helper()
	cmd := r.Command("ctx", append([]string{"agent", verb, "--session", r.session, "coder"}, flags...)...)
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	return screen.Start(r.t, cmd, columns, rows)
}

// attach joins, and waits for the picture.
func (r *room) attach(columns, rows int) *screen.Screen {
	r.t.Helper()
	s := r.client("attach", columns, rows)
	s.Wrote("\x1b[?2026l")
	return s
}

// join is attach while the shell waits for a command.
func (r *room) join(columns, rows int) *screen.Screen {
	r.t.Helper()
	s := r.client("attach", columns, rows)
	ready(s)
	return s
}

// ready waits until the shell waits for a command.
func ready(s *screen.Screen) {
	s.Await("the prompt", func(all string) bool {
		last := all[strings.LastIndexByte(all, '\n')+1:]
		return strings.HasPrefix(last, "coder tsh") && strings.HasSuffix(last, ">")
	})
}

// script puts a script into the workspace and returns the command that runs it.
func (l *lab) script(name, text string) string {
	l.T.Helper()
	l.Write(filepath.Join(l.Workspace, name), text)
	return "bash " + name
}

// detach leaves, and checks that the terminal is as it was before.
func detach(t testing.TB, s *screen.Screen) {
	t.Helper()
	s.Type(leave)
	if code := s.Exit(); code != 0 {
		t.Errorf("detach: exit %d", code)
	}
	clean(t, s)
}

// clean checks that nothing of what ran inside is left on a terminal.
func clean(t testing.TB, s *screen.Screen) {
	t.Helper()
	s.Looks("a terminal as before", func(l screen.Look) bool { return l.Modes == "7 25" && !l.Alternate && l.Column == 0 })
	if !s.Cooked() {
		t.Error("left raw")
	}
}

// state is what ctx terminal status says.
func (r *room) state() (state string, pid int) {
	r.t.Helper()
	var s struct {
		State string
		PID   int
	}
	must(r.t, json.Unmarshal([]byte(r.MustCtx("terminal", "status", "--json", "coder/"+r.session)), &s))
	return s.State, s.PID
}

// inside is the process of that program in the terminals of the world, which is
// the only one.
func (l *lab) inside(t testing.TB, program string) int {
	t.Helper()
	var found []int
	for _, pid := range l.Inside() {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if words := strings.Split(string(line), "\x00"); filepath.Base(words[0]) == program {
			found = append(found, pid)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s: processes %v", program, found)
	}
	return found[0]
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
