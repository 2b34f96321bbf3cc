package terminal

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// TestEnds: all that a program prints arrives before its exit code does, wherever
// somebody looks on.
func TestEnds(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for name, c := range map[string]struct {
		end  string
		code int
	}{
		"code": {"exit 7", 7}, "zero": {"exit 0", 0}, "none": {"exit", 0},
	} {
		r := l.start(t, name)
		s := r.join(80, 24)
		small := r.client("watch", 60, 10)
		small.Wrote("\x1b[?2026l")
		p := r.pipe()
		connected(s, p)
		s.Type("bash -c 'seq 20000; exit 3'" + enter + c.end + enter)
		ended := "[coder/" + name + " ended: exit code " + strconv.Itoa(c.code) + "]"
		if code := s.Exit(); code != c.code {
			t.Errorf("%s: attach: exit code %d", name, code)
		}
		s.See("\n20000\ncoder tsh 3> " + c.end + "\n")
		s.See(ended)
		clean(t, s)
		if code := small.Exit(); code != 0 {
			t.Errorf("%s: watch: exit code %d", name, code)
		}
		small.See("\n20000\ncoder tsh 3> " + c.end + "\n")
		<-p.over
		if text := p.text(); !strings.Contains(text, "\r\n19999\r\n20000\r\n") || p.cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("%s: pipe: %d, %.300q", name, p.cmd.ProcessState.ExitCode(), text)
		}
		r.over("exited")
	}
}

// over checks that nothing of the terminal is left but its resource.
func (r *room) over(state string) {
	r.t.Helper()
	r.AwaitGone("the launcher", func() []int {
		return slices.DeleteFunc(r.Processes(), func(pid int) bool { return pid != r.pid })
	})
	if s, pid := r.state(); s != state || pid != 0 {
		r.t.Errorf("%s: the state is %s, of process %d", r.session, s, pid)
	}
	for _, path := range []string{r.socket, r.Layout.TerminalLink(uint32(r.UID), "coder", "x"), filepath.Join(filepath.Dir(r.socket), "main.lock")} {
		path = strings.Replace(path, "/x/", "/"+r.session+"/", 1)
		if exists(path) {
			r.t.Errorf("%s is left", path)
		}
	}
	if g := r.client("attach", 80, 24); g.Exit() != 69 {
		r.t.Errorf("attach: %s", g.Text())
	}
}

// TestKills: whatever is killed, the terminal is over, that is said, and the next
// start works and leaves nothing.
func TestKills(t *testing.T) {
	for name, c := range map[string]struct {
		pid   func(*room) int
		code  int
		state string
	}{
		"ctxterm":     {func(r *room) int { return r.inside(r.t, "ctxterm") }, 69, "error"},
		"the program": {func(r *room) int { return r.inside(r.t, "tsh") }, 137, "exited"},
		"launcher":    {func(r *room) int { return r.pid }, 69, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			r := l.start(t, "default")
			s := r.join(80, 24)
			s.Type("bash -c 'setsid sleep 1000 & echo started; sleep 1000'" + enter)
			s.See("\nstarted")
			l.Kill(c.pid(r))
			if code := s.Exit(); code != c.code {
				t.Errorf("attach: exit code %d", code)
			}
			clean(t, s)
			l.AwaitGone("what ran inside", l.Inside)
			if name == "launcher" { // nobody is there to remove it
				if state, pid := r.state(); state != c.state || pid != 0 || !exists(r.socket) {
					t.Errorf("%s, process %d", state, pid)
				}
			} else {
				r.over(c.state)
			}
			if ps := l.MustCtx("agent", "ps"); strings.Contains(ps, "default") {
				t.Errorf("ps: %s", ps)
			}
			if got := l.Ctx("agent", "stop", "coder"); got.Code != 0 {
				t.Errorf("stop: %+v", got)
			}
			r = l.start(t, "default")
			detach(t, r.join(80, 24))
			if got := l.Ctx("agent", "start", "--supervisor", "direct", "coder"); got.Code != 1 || !strings.Contains(got.Err, "runs already") {
				t.Errorf("start again: %+v", got)
			}
			detach(t, r.join(80, 24))
			l.MustCtx("agent", "stop", "coder")
			r.over("exited")
		})
	}
}

// TestDaemons: a terminal does not care about the agent's server and the activator.
func TestDaemons(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	r := l.start(t, "default")
	s := r.join(80, 24)
	killed := 0
	for _, pid := range l.Processes() {
		if line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); pid != r.pid && strings.HasPrefix(string(line), l.Bin+"/ctxd\x00") {
			l.Kill(pid)
			killed++
		}
	}
	if killed == 0 {
		t.Error("no daemon runs")
	}
	s.Type("bash -c 'echo $((6*7))'" + enter)
	s.See("\n42\n" + prompt)
	detach(t, s)
	if state, pid := r.state(); state != "running" || pid != r.pid {
		t.Errorf("%s, process %d", state, pid)
	}
	s = r.attach(80, 24)
	s.See("\n42\n" + prompt)
	if got := l.Ctx("agent", "stop", "coder"); got.Code != 0 || !strings.Contains(got.Err, "coder/default: stopped") {
		t.Errorf("stop: %+v", got)
	}
	if code := s.Exit(); code != 129 {
		t.Errorf("exit code %d", code)
	}
	r.over("exited")
}

// TestRace: of several starts at once one goes on.
func TestRace(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const starts = 4
	results := make(chan world.Result, starts)
	for range starts {
		go func() { results <- l.Ctx("agent", "start", "--supervisor", "direct", "coder") }()
	}
	won := 0
	for range starts {
		switch r := <-results; {
		case r.Code == 0:
			won++
		case r.Code != 1 || !strings.Contains(r.Err, "runs already") && !strings.Contains(r.Err, "running"):
			t.Errorf("%+v", r)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d starts went on", won, starts)
	}
	if got := l.Ctx("agent", "stop", "coder"); got.Code != 0 || strings.Count(got.Err, ": stopped") != 1 {
		t.Errorf("stop: %+v", got)
	}
}

// TestClosedOutput: a program that closes its side of the terminal has it still.
func TestClosedOutput(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	must(t, unix.Mkfifo(l.Workspace+"/gate", 0o666))
	must(t, os.Chmod(l.Workspace+"/gate", 0o666))
	r := l.start(t, "default")
	s := r.join(80, 24)
	s.Type(l.script("closes.sh", "tty=$(tty); echo closing; exec <&- >&- 2>&-; : >closed; read -r x <gate; exec >$tty; echo back") + enter)
	l.AwaitExists(l.Workspace + "/closed")
	detach(t, s)
	s = r.attach(70, 20)
	s.See("\nclosing")
	must(t, os.WriteFile(l.Workspace+"/gate", []byte("\n"), 0))
	s.See("\nclosing\nback\n" + prompt)
	detach(t, s)
}

// TestPlaces: where the socket is found, and what is said where it is not.
func TestPlaces(t *testing.T) {
	t.Parallel()
	w := world.Empty(t)
	w.Runtime = w.Dir + "/" + strings.Repeat("a-long-name/", 10)
	must(t, os.MkdirAll(w.Runtime, 0o700))
	w.MustCtx("init")
	w.MustCtx("agent", "new", "coder", "--model", "debug/tools", "--tool", "bash")
	r := (&lab{w}).start(t, "default")
	if os.Geteuid() != 0 && len(r.socket) <= 107 {
		t.Errorf("%s is not long", r.socket)
	}
	detach(t, r.join(80, 24))
	link := w.Session("coder", "default") + "/terminal/main.sock"
	to, err := os.Readlink(link)
	if err != nil || to != r.socket {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	must(t, os.Remove(link))
	detach(t, r.join(80, 24))
	must(t, os.Symlink("/nowhere", link))
	detach(t, r.join(80, 24))
	must(t, os.Rename(r.socket, r.socket+".away"))
	s := r.client("attach", 80, 24)
	if code := s.Exit(); code != 69 {
		t.Errorf("exit code %d", code)
	}
	s.See("nothing listens")
	must(t, os.Rename(r.socket+".away", r.socket))
	detach(t, r.join(80, 24))
	w.MustCtx("agent", "stop", "coder")
}

// TestAnotherRuntimeDirectory: who has another XDG_RUNTIME_DIR, as after su or in
// cron, has the same terminals: they are listed, shown and stopped by the link and
// the receipt, and none is started beside one that lives.
func TestAnotherRuntimeDirectory(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	r := l.start(t, "default")
	elsewhere := *l.World
	elsewhere.Runtime = l.Dir + "/elsewhere"
	elsewhere.Mkdir(elsewhere.Runtime, 0o700)
	e := &room{lab: &lab{&elsewhere}, t: t, session: "default", pid: r.pid, socket: r.socket}
	if state, pid := e.state(); state != "running" || pid != r.pid {
		t.Errorf("%s, process %d", state, pid)
	}
	if got := e.Ctx("agent", "start", "--supervisor", "direct", "coder"); got.Code != 1 || !strings.Contains(got.Err, "runs already") {
		t.Errorf("a second start: %+v", got)
	}
	detach(t, e.join(80, 24))
	detach(t, r.join(80, 24))
	if got := e.Ctx("agent", "stop", "coder"); got.Code != 0 || strings.Count(got.Err, ": stopped") != 1 {
		t.Errorf("%+v", got)
	}
	r.over("exited")
	if exists(r.socket) {
		t.Error("the socket is there")
	}
}
