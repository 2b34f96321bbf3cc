package system

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestNetwork: exactly the agents with the grant have IP in their unit.
func TestNetwork(t *testing.T) {
	p := newPerson(t)
	p.agent("net", "--allow", "network:default connect")
	p.agent("nonet")
	families := func(agent string) string {
		return p.property("RestrictAddressFamilies", "ctxd@"+agent+".service")
	}
	if got := families("net"); !strings.Contains(got, "AF_INET ") || !strings.Contains(got, "AF_INET6") || !strings.Contains(got, "AF_UNIX") {
		t.Errorf("with the grant: %s", got)
	}
	if got := families("nonet"); strings.Contains(got, "AF_INET") {
		t.Errorf("without it: %s", got)
	}
	// Taking it away counts at the next start, and says so.
	policy := strings.ReplaceAll(must(t, p.ctx("agent", "get", "net", "policy")), "allow net_t network:default connect\n", "")
	r := p.Run("sh", "-c", "printf %s \"$0\" | ctx agent set net policy -", policy)
	if must(t, r); !strings.Contains(r.Err, "ctx agent stop net") {
		t.Errorf("it does not say when that counts: %q", r.Err)
	}
	if got := families("net"); strings.Contains(got, "AF_INET") {
		t.Errorf("after it was taken away: %s", got)
	}
	p.root("sh", "-c", "! [ -e /etc/systemd/system/ctxd@net.service.d ]")
	p.answers("net")
}

// TestStarts: by its socket, by hand, by the target: every way works.
func TestStarts(t *testing.T) {
	p := newPerson(t)
	p.agent("starts")
	// At its end it has told systemd what the target wants.
	p.root("systemctl", "stop", "ctxd-admin.service")
	for _, how := range [][]string{
		{"systemctl", "stop", "ctxd@starts.service"},
		{"systemctl", "restart", "ctxd@starts.socket"},
		{"systemctl", "start", "ctxd@starts.service"},
		{"systemctl", "restart", "ctxd@starts.service"},
		{"systemctl", "restart", "cortexfs.target"},
		{"sh", "-c", "systemctl stop ctxd@starts.socket ctxd@starts.service; systemctl start ctxd@starts.service"},
		{"sh", "-c", "systemctl stop cortexfs.target; systemctl start cortexfs.target"},
	} {
		p.root(how...)
		p.answers("starts")
	}
	// Stopped, it is not there, and ctx says what would help.
	p.root("sh", "-c", "systemctl stop ctxd@starts.socket ctxd@starts.service")
	refused(t, "a stopped agent", p.ctx("agent", "send", "starts", "hello"), 69, "nothing listens for it")
	must(t, p.ctx("agent", "enable", "starts"))
	p.answers("starts")
}

// drop writes a drop-in of a unit for this boot, until the end of the test.
func drop(t *testing.T, unit, text string) (undo func()) {
	t.Helper()
	m := machineOf(t)
	dir := "/run/systemd/system/" + unit + ".d"
	m.Must(t, "sh", "-c", `mkdir -p "$1"; printf %s "$2" >"$1/test.conf"; systemctl daemon-reload`, "sh", dir, text)
	undo = sync.OnceFunc(func() { m.Must(t, "sh", "-c", `rm -r "$1"; systemctl daemon-reload`, "sh", dir) })
	t.Cleanup(undo)
	return undo
}

// TestSignals: a hang-up ends nothing; whatever ends a server, the next
// connection has another one.
func TestSignals(t *testing.T) {
	p := newPerson(t)
	p.agent("signals")
	pid := func() string { return p.property("MainPID", "ctxd@signals.service") }
	p.answers("signals")
	first := pid()
	p.root("systemctl", "kill", "--kill-whom=main", "--signal=HUP", "ctxd@signals.service")
	p.answers("signals")
	if now := pid(); now != first || first == "0" {
		t.Errorf("after SIGHUP process %s serves, not %s", now, first)
	}
	for _, signal := range []string{"TERM", "INT", "KILL", "SEGV"} {
		before := pid()
		p.root("systemctl", "kill", "--kill-whom=main", "--signal="+signal, "ctxd@signals.service")
		p.answers("signals")
		if now := pid(); now == before || now == "0" {
			t.Errorf("after SIG%s process %s serves", signal, now)
		}
	}
}

// TestWatchdog: a server that is stuck is killed, and the connection that waited
// for it is served by the next one.
func TestWatchdog(t *testing.T) {
	p := newPerson(t)
	p.agent("stuck")
	drop(t, "ctxd@stuck.service", "[Service]\nWatchdogSec=2\n")
	p.answers("stuck")
	before := p.property("MainPID", "ctxd@stuck.service")
	p.root("systemctl", "kill", "--kill-whom=main", "--signal=STOP", "ctxd@stuck.service")
	p.answers("stuck")
	if now := p.property("MainPID", "ctxd@stuck.service"); now == before {
		t.Errorf("process %s was stopped and serves", now)
	}
	if log := p.root("journalctl", "-u", "ctxd@stuck.service", "--no-pager"); !strings.Contains(log, "Watchdog timeout") {
		t.Errorf("no watchdog in\n%s", log)
	}
}

// TestFailingStart: while a unit can not start connections wait, its socket does
// not fail, and once it can they are served.
func TestFailingStart(t *testing.T) {
	p := newPerson(t)
	p.agent("fails")
	undo := drop(t, "ctxd@fails.service", "[Service]\nExecStart=\nExecStart=/usr/bin/none-of-these\n")
	waiting := p.Command("env", "-C", p.Home+"/work", "ctx", "--quiet", "agent", "send", "fails", `call: fs.read {"path":"README.md"}`)
	var out strings.Builder
	waiting.Stdout, waiting.Stderr = &out, &out
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	// Several tries fail.
	p.root("sh", "-c", `until [ "$(systemctl show --value -p NRestarts ctxd@fails.service)" -ge 2 ]; do journalctl -q -f -n 0 -u ctxd@fails.service | head -n 1 >/dev/null; done`)
	if got := p.property("ActiveState", "ctxd@fails.socket"); got != "active" {
		t.Errorf("the socket is %s", got)
	}
	undo()
	if err := waiting.Wait(); err != nil || !strings.Contains(out.String(), "one\n") {
		t.Errorf("%v: %s", err, &out)
	}
}

// TestQuick: however often an agent is woken, its socket listens.
func TestQuick(t *testing.T) {
	p := newPerson(t)
	p.agent("quick")
	drop(t, "ctxd@quick.service", "[Service]\nExecStart=\nExecStart=/usr/bin/ctxd --root /ctx agent --idle 1ms %i\n")
	p.sh(`for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do ctx agent status quick >/dev/null || exit 1; ctx --quiet agent tsh quick -- fs.read README.md >/dev/null; done`)
	if got := p.property("ActiveState", "ctxd@quick.socket"); got != "active" {
		t.Errorf("the socket is %s", got)
	}
	p.answers("quick")
}

// TestReload: units are read anew while agents work.
func TestReload(t *testing.T) {
	p := newPerson(t)
	p.agent("loaded")
	var reloads sync.WaitGroup
	stop := make(chan struct{})
	reloads.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				p.root("systemctl", "daemon-reload")
			}
		}
	})
	for i := range 5 {
		p.answers("loaded")
		name := fmt.Sprintf("loaded-%d", i)
		p.agent(name)
		p.answers(name)
	}
	close(stop)
	reloads.Wait()
}

// TestFull: where the sessions of one agent have no room, its run says so, others
// work, and it works again once there is room.
func TestFull(t *testing.T) {
	p := newPerson(t)
	p.agent("full")
	p.agent("roomy")
	p.answers("full")
	sessions := fmt.Sprintf("/ctx/home/%d/agent/full/session", p.UID)
	p.root("sh", "-c", fmt.Sprintf(`mount -t tmpfs -o size=64k,mode=700,uid=%d,gid=%d tmpfs %s; head -c 60k /dev/zero >%[3]s/ballast || true`, p.UID, p.UID, sessions))
	p.root("systemctl", "stop", "ctxd@full.service")
	if r := p.ctx("agent", "send", "full", "hello "+strings.Repeat("x", 20_000)); r.Code != 1 || !strings.Contains(r.Err, "no space left") {
		t.Errorf("exit %d: %s%s", r.Code, r.Out, r.Err)
	}
	p.answers("roomy")
	p.root("rm", sessions+"/ballast")
	p.answers("full")
	p.root("sh", "-c", "systemctl stop ctxd@full.service; umount "+sessions)
	p.answers("full")
}

// TestJournal: what a server says is found by agent, and by session and run.
func TestJournal(t *testing.T) {
	p := newPerson(t)
	p.agent("speaks")
	must(t, p.ctx("agent", "send", "--session", "aloud", "speaks", "call: no.such {}"))
	out := p.root("journalctl", "-q", "-o", "json", "CORTEXFS_AGENT=speaks", "CORTEXFS_SESSION=aloud")
	for _, want := range []string{`"CORTEXFS_RUN":"`, `"CORTEXFS_CODE":"not_declared"`, `"CORTEXFS_OUTCOME":"completed"`, `"_SYSTEMD_UNIT":"ctxd@speaks.service"`, `"PRIORITY":"6"`} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %s in %s", want, out)
		}
	}
}

// TestReboot: /run is empty then. Whatever was enabled listens again, nothing
// runs, and nothing goes in circles.
func TestReboot(t *testing.T) {
	p := newPerson(t)
	p.agent("again")
	p.answers("again")
	p.m.Reboot(t)
	if got := strings.TrimSpace(p.root("systemctl", "is-system-running")); got != "running" {
		t.Errorf("the machine is %s: %s", got, p.root("systemctl", "--failed"))
	}
	modes(t)
	if got := p.property("ActiveState", "ctxd@again.service"); got != "inactive" {
		t.Errorf("the server is %s", got)
	}
	p.answers("again")
	if log := p.root("journalctl", "-b", "-q", "--no-pager"); strings.Contains(log, "ordering cycle") {
		t.Error(log)
	}
	must(t, p.ctx("agent", "new", "later", "--model", "debug/echo"))
	must(t, p.ctx("agent", "rm", "later"))
}
