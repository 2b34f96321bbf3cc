package system

import (
	"strings"
	"testing"

	"cortexfs.org/tests/internal/machine"
	"cortexfs.org/tests/internal/world"
)

// person is an ordinary user of the machine, with a place to work in.
type person struct {
	*machine.User
	t *testing.T
	m *machine.Machine
}

func newPerson(t *testing.T) *person {
	t.Helper()
	m := machineOf(t)
	p := &person{m.NewUser(t, false), t, m}
	p.sh("mkdir work; echo one >work/README.md")
	return p
}

// sh runs a script of the user's in the workspace and returns what it prints.
func (p *person) sh(script string) string {
	p.t.Helper()
	return p.Must("/bin/sh", "-euc", "cd work 2>/dev/null || cd .; "+script)
}

// ctx runs ctx in the workspace.
func (p *person) ctx(args ...string) world.Result {
	p.t.Helper()
	return p.Run(append([]string{"env", "-C", p.Home + "/work", "ctx", "--quiet"}, args...)...)
}

// agent makes an agent that does what it is told, and removes it at the end.
func (p *person) agent(name string, flags ...string) {
	p.t.Helper()
	must(p.t, p.ctx(append([]string{"agent", "new", name, "--model", "debug/tools", "--native", "fs.read", "--native", "bash"}, flags...)...))
	p.t.Cleanup(func() { p.m.Must(p.t, "ctx", "--quiet", "agent", "rm", name, "--purge") })
}

// answers checks that an agent does what it is told.
func (p *person) answers(agent string) {
	p.t.Helper()
	r := p.ctx("agent", "send", agent, `call: fs.read {"path":"README.md"}`)
	if r.Code != 0 || !strings.Contains(r.Out, "one\n") {
		p.t.Errorf("%s: exit %d\n%s%s", agent, r.Code, r.Out, r.Err)
	}
}

func must(t *testing.T, r world.Result) string {
	t.Helper()
	if r.Code != 0 {
		t.Fatalf("exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
	return r.Out
}

// refused checks that a command was refused, for that reason.
func refused(t *testing.T, what string, r world.Result, code int, why string) {
	t.Helper()
	if r.Code != code || !strings.Contains(r.Out+r.Err, why) {
		t.Errorf("%s: exit %d, not %d for %q\n%s%s", what, r.Code, code, why, r.Out, r.Err)
	}
}

// root runs a command as the machine's root.
func (p *person) root(args ...string) string {
	p.t.Helper()
	return p.m.Must(p.t, args...)
}

// property is what systemd says of a unit.
func (p *person) property(name, unit string) string {
	p.t.Helper()
	return strings.TrimSpace(p.root("systemctl", "show", "--value", "--property", name, unit))
}

// says writes a line to a socket, as a program of the user's, and returns what
// comes back.
func (p *person) says(socket, line string) string {
	p.t.Helper()
	r := p.Run("perl", "-MIO::Socket::UNIX", "-e", `$SIG{PIPE} = "IGNORE"; my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "$!\n"; print $s "$ARGV[1]\n"; $s->shutdown(1); print <$s>`, socket, line)
	return r.Out + r.Err
}
