package systemd

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/machine"
	"cortexfs.org/tests/internal/screen"
	"cortexfs.org/tests/internal/world"
)

// person is a user of a machine with a tree, an agent and a repository to work
// in.
type person struct {
	*machine.User
	t *testing.T
	m *machine.Machine
}

const (
	coder = "cortexfs-terminal:coder:default.service"
	leave = "\x1ed" // what attach takes for itself
)

func newPerson(t *testing.T, linger bool) *person {
	t.Helper()
	m := boot(t)
	p := &person{m.NewUser(t, linger), t, m}
	p.sh(`git init -q src; ctx init; ctx agent new coder --model debug/tools --tool fs.list --tool bash`)
	return p
}

// sh runs a script in the repository, outside of all sessions, and returns what
// it prints.
func (p *person) sh(script string) string {
	p.t.Helper()
	return p.Must("/bin/sh", "-euc", "cd src 2>/dev/null || cd .; "+script)
}

// ctx runs ctx in the repository.
func (p *person) ctx(args ...string) world.Result {
	p.t.Helper()
	return p.Run(append([]string{"env", "-C", p.Home + "/src", "ctx"}, args...)...)
}

// login is a shell in the repository on a terminal, in a session of its own.
func (p *person) login() (s *screen.Screen, session string) {
	p.t.Helper()
	s = p.Login(100, 30)
	s.Type("cd src; echo session=$XDG_SESSION_ID.\n")
	s.Await("the session", loggedIn.MatchString)
	return s, loggedIn.FindStringSubmatch(s.Text())[1]
}

// prompt waits until the last line is an empty one of the agent's shell.
func prompt(s *screen.Screen) {
	s.Await("the prompt", func(text string) bool {
		last := text[strings.LastIndexByte(text, '\n')+1:]
		return strings.HasPrefix(last, "coder tsh") && strings.HasSuffix(last, ">")
	})
}

// attach joins the terminal from a shell.
func attach(s *screen.Screen) {
	s.Type("clear; ctx agent attach coder\n")
	prompt(s)
}

// detach leaves it again.
func detach(s *screen.Screen) {
	s.Type(leave)
	s.See("[detached from ")
	s.Last("$")
}

// started is what `ctx agent start --json` says.
type started struct {
	Supervisor, Unit, Socket string
	PID                      int
}

func (p *person) start(args ...string) (s started) {
	p.t.Helper()
	r := p.ctx(append([]string{"--json", "agent", "start"}, append(args, "coder")...)...)
	if err := json.Unmarshal([]byte(r.Out), &s); r.Code != 0 || err != nil {
		p.t.Fatalf("start: exit %d: %s%s", r.Code, r.Out, r.Err)
	}
	return s
}

// state is what `ctx terminal status` says of the terminal of a session.
func (p *person) state(session string) (state string, pid int) {
	p.t.Helper()
	var s struct {
		State string
		PID   int
	}
	r := p.ctx("terminal", "status", "--json", "coder/"+session)
	if err := json.Unmarshal([]byte(r.Out), &s); r.Code != 0 || err != nil {
		p.t.Fatalf("status: exit %d: %s%s", r.Code, r.Out, r.Err)
	}
	return s.State, s.PID
}

// lives checks that exactly these sessions have a living terminal, by ps, by the
// agent's status, and by what systemd has loaded.
func (p *person) lives(sessions ...string) {
	p.t.Helper()
	var ps struct {
		Terminals []struct{ Session, Unit string }
	}
	r := p.ctx("agent", "ps", "--json")
	if err := json.Unmarshal([]byte(r.Out), &ps); r.Code != 0 || err != nil {
		p.t.Fatalf("ps: exit %d: %s%s", r.Code, r.Out, r.Err)
	}
	var got []string
	for _, x := range ps.Terminals {
		got = append(got, x.Session)
	}
	if fmt.Sprint(got) != fmt.Sprint(sessions) {
		p.t.Errorf("ps has terminals of %q, not of %q", got, sessions)
	}
	units := p.Must("systemctl", "--user", "list-units", "--all", "--plain", "--no-legend", "cortexfs-terminal:*")
	if n := strings.Count(units, "\n"); n != len(sessions) {
		p.t.Errorf("systemd has %q", units)
	}
}

// settled checks that nothing of a terminal is left but its resource: no socket,
// no link, no process.
func (p *person) settled(session, state string) {
	p.t.Helper()
	if s, pid := p.state(session); s != state || pid != 0 {
		p.t.Errorf("%s: the state is %q, of process %d", session, s, pid)
	}
	for _, name := range []string{"ctxterm", "tsh", "bwrap"} {
		if pids := p.Processes(name); len(pids) > 0 {
			p.t.Errorf("%s runs, as %d", name, pids)
		}
	}
	r := p.ctx("agent", "watch", "--session", session, "coder")
	// The runtime directory of who has just left may be nobody's for a moment.
	leaving := r.Code == 13 && strings.Contains(r.Err, "/run/user/")
	if !leaving && (r.Code != 69 || !strings.Contains(r.Err, "nothing listens")) {
		p.t.Errorf("%s: watch: exit %d: %s", session, r.Code, r.Err)
	}
}

// history are the facts of a session about its terminal.
func (p *person) history(session string) (facts []map[string]any) {
	p.t.Helper()
	file := filepath.Join(p.Home, ".local/share/cortexfs/home", strconv.Itoa(p.UID), "agent/coder/session", session, "events.jsonl")
	for line := range strings.Lines(p.Must("cat", file)) {
		var f map[string]any
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			p.t.Fatalf("%q: %v", line, err)
		}
		if kind := f["type"]; kind == "agent.start" || kind == "agent.stop" {
			facts = append(facts, f)
		}
	}
	return facts
}

// TestTerminal: start, look, join, stop.
func TestTerminal(t *testing.T) {
	p := newPerson(t, true)
	for _, args := range [][]string{nil, {"--supervisor", "systemd"}} {
		before := 0
		if args != nil {
			before = len(p.history("default"))
		}
		s := p.start(args...)
		if s.Supervisor != "systemd" || s.Unit != coder || strconv.Itoa(s.PID) != property(p.User, "MainPID", coder) {
			t.Errorf("%+v", s)
		}
		invocation := property(p.User, "InvocationID", coder)
		p.lives("default")
		if state, pid := p.state("default"); state != "running" || pid != s.PID {
			t.Errorf("%s, process %d", state, pid)
		}
		if r := p.ctx("agent", "start", "coder"); r.Code != 1 || !strings.Contains(r.Err, "runs already") {
			t.Errorf("starting again: %+v", r)
		}

		// One shell watches into a pipe, one on its terminal, one is attached.
		watcher, _ := p.login()
		watcher.Type("ctx agent watch coder | cat >watched; echo watched=$?\n")
		eyes, _ := p.login()
		eyes.Type("clear; ctx agent watch coder\n")
		prompt(eyes)
		in, _ := p.login()
		attach(in)
		in.Type("bash -c 'echo 12$((300+45)); pwd; touch .git/x'\r")
		in.See("12345")
		in.See("/workspace")
		in.See("Read-only file system")
		prompt(in)
		eyes.See("Read-only file system")
		prompt(eyes)
		eyes.Type("keys\rq")
		eyes.See("[detached from coder/default]")
		eyes.Last("$")
		detach(in)
		attach(in)
		in.See("12345")

		r := p.ctx("agent", "stop", "coder")
		if r.Code != 0 {
			t.Errorf("stop: %+v", r)
		}
		in.See("[coder/default ended: exit code 129]") // of SIGHUP
		watcher.See("watched=0")
		if text := p.sh("cat watched"); !strings.Contains(text, "12345") || strings.Contains(text, "keys") {
			t.Errorf("watched: %q", text)
		}
		p.lives()
		p.settled("default", "exited")
		facts := p.history("default")[before:]
		if len(facts) != 2 || facts[0]["type"] != "agent.start" || facts[1]["type"] != "agent.stop" {
			t.Fatalf("%v", facts)
		}
		for _, f := range facts {
			if f["unit"] != coder || f["supervisor"] != "systemd" || f["invocation"] != invocation || f["pid"] != float64(s.PID) {
				t.Errorf("%v", f)
			}
		}
	}
}
