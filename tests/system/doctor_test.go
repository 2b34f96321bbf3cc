package system

import (
	"encoding/json"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// finding is a line of ctx doctor --json.
type finding struct{ Check, State, Detail, Remedy string }

func findings(t *testing.T, r world.Result) (all []finding) {
	t.Helper()
	for line := range strings.Lines(r.Out) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, f)
	}
	return all
}

// TestDoctor: it sees what is wrong with the machine, as a user and as root, and
// its remedies help.
func TestDoctor(t *testing.T) {
	p := newPerson(t)
	p.agent("patient")
	sound := func() {
		t.Helper()
		r := p.ctx("doctor", "--json")
		seen := map[string]bool{}
		for _, f := range findings(t, r) {
			if seen[f.Check] = true; f.State == "broken" {
				t.Errorf("%+v", f)
			}
		}
		for _, check := range []string{"mount", "admin", "models", "units", "namespaces", "agents"} {
			if !seen[check] {
				t.Errorf("nothing is said of %s", check)
			}
		}
		if r.Code != 0 {
			t.Errorf("exit %d: %s", r.Code, r.Err)
		}
	}
	sound()
	// Others' agents are no affair of this user's.
	other := newPerson(t)
	other.agent("other")
	sound()
	for _, c := range []struct{ breaks, check, remedy string }{
		{"systemctl stop ctxd@patient.socket ctxd@patient.service", "units", ""},
		{"systemctl stop ctxmodel.socket ctxmodel.service", "models", ""},
		{"systemctl stop ctxd-admin.socket ctxd-admin.service", "admin", ""},
		{"systemctl stop ctxmodel.service; chmod 755 /var/lib/cortexfs/secrets", "keys", ""},
		{"systemctl disable ctxd@patient.socket", "units", ""},
		{"systemctl stop ctxd@patient.service; mkdir -p /run/systemd/system/ctxd@patient.service.d; printf '[Service]\\nExecStart=\\nExecStart=/none\\nRestart=no\\n' >/run/systemd/system/ctxd@patient.service.d/b.conf; systemctl daemon-reload; systemctl start ctxd@patient.service || systemctl stop ctxd@patient.socket; rm -r /run/systemd/system/ctxd@patient.service.d; systemctl daemon-reload", "units", "systemctl reset-failed 'ctxd@patient.service'; systemctl start ctxd@patient.socket"},
		{"chmod 666 /ctx/agent/patient.d/policy", "agents", "chmod go-w /ctx/agent/patient.d/policy"},
	} {
		p.root("sh", "-c", c.breaks)
		found := false
		for _, f := range findings(t, world.Result{Out: p.root("sh", "-c", "ctx doctor --json || true")}) {
			if f.Check != c.check || f.State == "ok" {
				continue
			}
			found = true
			if c.remedy == "" {
				c.remedy = f.Remedy
			}
		}
		if !found {
			t.Errorf("after %s nothing is said of %s", c.breaks, c.check)
			continue
		}
		p.root("sh", "-c", c.remedy)
		sound()
		p.answers("patient")
	}
}
