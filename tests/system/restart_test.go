package system

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// TestRestart: servers are restarted, as an upgrade does it, while runs are under
// way and terminals are open. The runs are recorded as interrupted and the next
// message works; the terminals live on.
func TestRestart(t *testing.T) {
	const runs, terminals = 4, 4
	m := machineOf(t)
	p := &person{m.NewUser(t, true), t, m}
	p.sh("mkdir work; echo one >work/README.md")
	p.agent("busy", "--perm", "rwx")
	p.agent("shown")
	for i := range terminals {
		must(t, p.ctx("agent", "start", "shown", "--session", fmt.Sprintf("t%d", i)))
	}
	before := p.Processes("ctxterm")
	if len(before) != terminals {
		t.Fatalf("%d terminals run", len(before))
	}
	var going sync.WaitGroup
	results := make([]world.Result, runs)
	for i := range runs {
		p.sh(fmt.Sprintf("mkfifo begun%d", i))
		going.Go(func() {
			results[i] = p.ctx("agent", "send", "--session", fmt.Sprintf("s%d", i), "busy",
				fmt.Sprintf(`call: bash {"args":["-c","echo begun >begun%d; exec sleep 600"]}`, i))
		})
	}
	for i := range runs {
		p.sh(fmt.Sprintf("cat begun%d", i))
	}
	p.root("systemctl", "try-restart", "ctxd@*.service", "ctxd-admin.service", "ctxmodel.service")
	going.Wait()
	for i, r := range results {
		if r.Code == 0 {
			t.Errorf("run %d: %s%s", i, r.Out, r.Err)
		}
		session := fmt.Sprintf("s%d", i)
		must(t, p.ctx("agent", "send", "--session", session, "busy", `call: fs.read {"path":"README.md"}`))
		if raw := must(t, p.ctx("agent", "history", "--raw", "--session", session, "busy")); !strings.Contains(raw, `"outcome":"interrupted"`) {
			t.Errorf("session %s: no interrupted run in\n%s", session, raw)
		}
	}
	if after := p.Processes("ctxterm"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("terminals %v, then %v", before, after)
	}
	for i := range terminals {
		if out := must(t, p.ctx("terminal", "status", fmt.Sprintf("shown/t%d", i))); !strings.Contains(out, "running") {
			t.Errorf("terminal %d: %s", i, out)
		}
	}
	p.answers("shown")
	must(t, p.ctx("agent", "stop", "shown"))
	p.Ended("ctxterm")
}
