package systemd

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLogout: however a session ends, the terminal of somebody who lingers goes
// on, and is found in the next session as it was left.
func TestLogout(t *testing.T) {
	p := newPerson(t, true)
	s, session := p.login()
	s.Type("ctx agent start coder; echo started=$?\n")
	s.See("started=0")
	if strings.Contains(s.Text(), "linger") {
		t.Errorf("%s", s.Text())
	}
	_, pid := p.state("default")
	attach(s)
	s.Type("bash\r")
	s.Last("bash-5.2$") // of the machine
	s.Type("x=before; echo $x the end\r")
	s.See("before the end")
	for _, c := range []struct {
		name string
		end  func()
	}{
		{"detach and exit", func() { detach(s); s.Type("exit\n") }},
		{"the terminal is gone", func() { s.Signal(unix.SIGKILL) }},
		{"the session is terminated", func() { p.m.Must(t, "loginctl", "terminate-session", session) }},
	} {
		p.m.Must(t, "loginctl", "show-session", session)
		c.end()
		s.Exit()
		p.m.Must(t, "/bin/sh", "-c", "systemctl stop session-"+session+".scope || :") // waits for its end, if that is to come
		if state, now := p.state("default"); state != "running" || now != pid {
			t.Errorf("%s: %s, as process %d", c.name, state, now)
		}
		s, session = p.login()
		s.Type("clear; ctx agent attach coder\n")
		s.See("before the end")
		s.Last("bash-5.2$")
		s.Type("echo $x and after\r")
		s.See("before and after")
	}
	detach(s)
}

// TestNoLinger: who does not linger is told at the start how long the terminal
// lives, and it ends with the last session, in order. To leave the shell is not
// enough for that while daemons were started from it: they keep the session.
func TestNoLinger(t *testing.T) {
	p := newPerson(t, false)
	first, kept := p.login()
	for _, args := range []string{"", "--supervisor systemd "} {
		s, session := p.login()
		s.Type("ctx agent start " + args + "coder; echo started=$?\n")
		s.See("started=0")
		s.See("loginctl enable-linger")
		_, pid := p.state("default")
		p.m.Must(t, "loginctl", "terminate-session", session)
		s.Exit()
		if state, now := p.state("default"); state != "running" || now != pid {
			t.Errorf("with another session: %s, as process %d", state, now)
		}
		p.m.Must(t, "loginctl", "terminate-session", kept)
		first.Exit()
		p.Gone(pid)
		p.settled("default", "exited")
		first, kept = p.login()
	}
}

// TestDaemonsDie: terminals do not care whether the agent's server and the
// activator live, and what stops them need not be what started them.
func TestDaemonsDie(t *testing.T) {
	p := newPerson(t, true)
	started := p.start()
	other := p.start("--session", "other")
	s, _ := p.login()
	attach(s)
	daemons := func() {
		var mine []int
		for _, pid := range p.Processes("ctxd") {
			if !p.InUnit(pid, "cortexfs-terminal:") {
				mine = append(mine, pid)
			}
		}
		if len(mine) < 2 {
			t.Errorf("only %d daemons run", len(mine))
		}
		for _, pid := range mine {
			p.Kill(pid)
		}
	}
	daemons()
	s.Type("bash -c 'echo 12$((300+45))'\r")
	s.See("12345")
	prompt(s)
	detach(s)
	p.lives("default", "other")
	if r := p.ctx("agent", "send", "coder", "run: fs.list"); r.Code != 0 {
		t.Errorf("%+v", r)
	}
	attach(s)
	s.See("fs.list")
	prompt(s)
	detach(s)
	daemons()
	if r := p.ctx("agent", "stop", "--session", "other", "coder"); r.Code != 0 || !strings.Contains(r.Out+r.Err, "coder/other: stopped") {
		t.Errorf("%+v", r)
	}
	p.lives("default")
	if state, pid := p.state("default"); state != "running" || pid != started.PID {
		t.Errorf("%s, as process %d", state, pid)
	}
	if state, _ := p.state("other"); state != "exited" {
		t.Errorf("the other is %s, as process %d before", state, other.PID)
	}
	if r := p.ctx("agent", "stop", "coder"); r.Code != 0 || !strings.Contains(r.Out+r.Err, "coder/default: stopped") {
		t.Errorf("%+v", r)
	}
	p.lives()
	p.settled("default", "exited")
}
