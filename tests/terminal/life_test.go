package terminal

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKilled: whatever of a terminal is killed, its clients hear of an end, its
// state says what happened, and the next start works.
func TestKilled(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct {
		program string // "" is the launcher
		state   string
	}{
		{"ctxterm", "error"}, {"tsh", "exited"}, {"", "error"}, {"ctxterm", "error"},
	} {
		r := l.start(t, "default")
		s := r.attach(80, 24)
		pid := r.pid
		if c.program != "" {
			pid = l.inside(t, c.program)
		}
		l.Kill(pid)
		code := s.Exit()
		clean(t, s)
		if want := map[string]int{"tsh": 137}[c.program]; want != 0 && code != want || want == 0 && code != 69 {
			t.Errorf("%q killed: attach exits %d", c.program, code)
		}
		l.Await(l.Session("coder", "default")+"/terminal/terminal-coder-default", func() bool {
			_, now := r.state()
			return now == 0
		})
		if state, _ := r.state(); state != c.state {
			t.Errorf("%q killed: state %s", c.program, state)
		}
	}
}

// TestSignalledStart: a start that is ended leaves nothing, or a terminal that is
// known as running; never one that nobody knows of.
func TestSignalledStart(t *testing.T) {
	l := newLab(t)
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGINT} {
		cmd := l.Command("ctx", "agent", "start", "--supervisor", "direct", "coder")
		var said strings.Builder
		cmd.Stderr = &said
		must(t, cmd.Start())
		l.Await(l.Layout.Locks, func() bool { return exists(l.Layout.TerminalLock("coder", "default")) })
		must(t, cmd.Process.Signal(sig))
		err := cmd.Wait()
		if err == nil {
			l.MustCtx("agent", "stop", "coder") // it was ready before
			continue
		}
		if code := cmd.ProcessState.ExitCode(); code != 130 || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("%v: exit %d: %s", sig, code, said.String())
		}
		if left, err := os.ReadDir(l.Session("coder", "default") + "/terminal"); err == nil && len(left) > 0 {
			t.Errorf("%v: left %v", sig, left)
		}
	}
}
