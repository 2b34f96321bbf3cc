package systemd

import "testing"

// TestKilled: whatever part of a terminal is killed, all of it ends, that is
// said right, and a new start works.
func TestKilled(t *testing.T) {
	p := newPerson(t, true)
	named := func(name string) func() []int { return func() []int { return p.Processes(name) } }
	launcher := func() (pids []int) {
		for _, pid := range p.Processes("ctxd") {
			if p.InUnit(pid, coder) {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	const code = "$ echo code=$?.\ncode="
	const lost = "connection lost\nhint: ctx terminal status coder/default says what became of it\n" + code + "69."
	for _, c := range []struct {
		name  string
		pids  func() []int
		says  string // to who is attached
		state string
	}{
		{"ctxterm", named("ctxterm"), lost, "error"},
		{"the program", named("tsh"), "[coder/default ended: exit code 137]\n" + code + "137.", "exited"},
		{"the sandbox", named("bwrap"), lost, "error"},
		{"the launcher", launcher, lost, "error"},
		{"the user's manager", named("systemd"), lost, "error"},
	} {
		s := p.start()
		in, _ := p.login()
		attach(in)
		pids := c.pids()
		if len(pids) == 0 {
			t.Fatalf("%s does not run", c.name)
		}
		for _, pid := range pids {
			p.Kill(pid)
		}
		in.Last("$")
		in.Type("echo code=$?.\n")
		in.See(c.says)
		p.Gone(s.PID)
		for _, name := range []string{"bwrap", "ctxterm", "tsh"} {
			p.Ended(name)
		}
		if p.Processes("systemd") == nil {
			p.m.Must(t, "systemctl", "start", p.Manager())
		}
		p.sh("systemctl --user stop '" + coder + "' || :") // waits until it is gone
		p.lives()
		p.settled("default", c.state)
		if r := p.ctx("agent", "stop", "coder"); r.Code != 0 {
			t.Errorf("%s: stop: %+v", c.name, r)
		}
		p.start()
		p.lives("default")
		if r := p.ctx("agent", "stop", "coder"); r.Code != 0 {
			t.Errorf("%s: stop of the next: %+v", c.name, r)
		}
		p.settled("default", "exited")
	}
}
