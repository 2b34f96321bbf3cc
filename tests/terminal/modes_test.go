package terminal

import (
	"slices"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/screen"
	"golang.org/x/sys/unix"
)

// demanding turns on whatever a person would miss on their own terminal, and waits.
const demanding = `stty -echo
printf '\033[?1049h\033[?1h\033[?1002h\033[?1006h\033[?1004h\033[?2004h\033[?25l\033[>1u\033[5 q\033[H\033[1;31mpicture'
read -r x`

// TestModes: however a client ends, the modes that the program had on are off
// afterwards, and a client that comes later has them on.
func TestModes(t *testing.T) {
	const lost, killed = 69, 137
	for name, c := range map[string]struct {
		end   func(*room, *screen.Screen)
		code  int
		lives bool
	}{
		"the key":                   {func(_ *room, s *screen.Screen) { s.Type(leave) }, 0, true},
		"SIGTERM":                   {func(_ *room, s *screen.Screen) { s.Signal(unix.SIGTERM) }, 130, true},
		"SIGHUP":                    {func(_ *room, s *screen.Screen) { s.Signal(unix.SIGHUP) }, 130, true},
		"SIGINT":                    {func(_ *room, s *screen.Screen) { s.Signal(unix.SIGINT) }, 130, true},
		"the shell is killed":       {func(r *room, _ *screen.Screen) { r.Kill(r.inside(r.t, "tsh")) }, killed, false},
		"ctxterm is killed":         {func(r *room, _ *screen.Screen) { r.Kill(r.inside(r.t, "ctxterm")) }, lost, false},
		"the launcher is killed":    {func(r *room, _ *screen.Screen) { r.Kill(r.pid) }, lost, false},
		"the agent is stopped":      {func(r *room, _ *screen.Screen) { r.MustCtx("agent", "stop", "coder") }, 129, false},
		"a watcher leaves by a key": {func(_ *room, s *screen.Screen) { s.Type("q") }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			r := l.start(t, "default")
			script := l.script("modes.sh", demanding)
			on := func(s *screen.Screen) {
				t.Helper()
				s.Looks("the modes of the program", func(l screen.Look) bool {
					return l.Modes == "1 7 1002 1004 1006 2004" && l.Alternate && len(l.Lines) == 1 && strings.HasSuffix(l.Lines[0], "picture")
				})
			}
			s := r.join(80, 24)
			s.Type(script + enter)
			on(s)
			if strings.HasPrefix(name, "a watcher") {
				detach(t, s)
				s = r.client("watch", 80, 24)
				on(s)
			}
			c.end(r, s)
			if code := s.Exit(); code != c.code {
				t.Errorf("exit code %d", code)
			}
			clean(t, s)
			raw := s.Raw()
			if strings.LastIndex(raw, "\x1b[<99u") < strings.LastIndex(raw, "picture") || strings.LastIndex(raw, "\x1b[0 q") < strings.LastIndex(raw, "picture") {
				t.Errorf("keyboard or cursor are left as they were: %q", raw)
			}
			if c.lives {
				s = r.attach(80, 24)
				on(s)
				detach(t, s)
			}
		})
	}
}

// TestTerm: whatever type the person's terminal has, or none, the program finds one
// that it knows, with 256 colours, and they arrive.
func TestTerm(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	r := l.start(t, "default")
	for _, env := range [][]string{{"TERM=xterm-256color"}, {"TERM="}, nil, {"TERM=dumb"}, {"TERM=vt52"}, {"TERM=linux"}, {"TERM=no-such-terminal"}, {"TERM=../../etc"}, {"TERM=xterm", "NO_COLOR=1"}} {
		for _, verb := range []string{"attach", "watch"} {
			cmd := r.Command("ctx", "agent", verb, "--session", r.session, "coder")
			cmd.Env = append(slices.DeleteFunc(cmd.Env, func(kv string) bool { return strings.HasPrefix(kv, "TERM=") }), env...)
			s := screen.Start(t, cmd, 80, 24)
			ready(s)
			if verb == "watch" {
				s.Type("q")
				if code := s.Exit(); code != 0 {
					t.Errorf("%v: watch: exit code %d", env, code)
				}
				continue
			}
			before := len(s.Raw())
			s.Type("bash -c 'echo $TERM $(tput colors); tput setaf 196; tput setab 21; echo red; tput sgr0'" + enter)
			s.WroteAfter(before, "xterm-256color 256\r\n")
			s.WroteAfter(before, "\x1b[38;5;196m\x1b[48;5;21mred")
			ready(s)
			detach(t, s)
		}
	}
}
