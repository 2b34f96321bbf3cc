package system

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestInstalled: after init the machine has its tree, its sockets listen, nothing
// of it runs and nothing has failed.
func TestInstalled(t *testing.T) {
	m := machineOf(t)
	if got := strings.TrimSpace(m.Must(t, "systemctl", "is-system-running")); got != "running" {
		t.Errorf("the machine is %s: %s", got, m.Must(t, "systemctl", "--failed"))
	}
	for _, unit := range []string{"cortexfs.target", "ctx.mount", "ctxd-admin.socket", "ctxmodel.socket"} {
		m.Must(t, "systemctl", "is-active", unit)
		m.Must(t, "systemctl", "is-enabled", unit)
	}
	modes(t)
	if options := m.Must(t, "findmnt", "-no", "OPTIONS", "/ctx"); !strings.Contains(options, "nosuid") || !strings.Contains(options, "nodev") {
		t.Errorf("/ctx is mounted %s", options)
	}
	// Once more changes nothing.
	if out := m.Must(t, "ctx", "init", "--system"); out != "" {
		t.Errorf("init a second time made %s", out)
	}
}

// modes looks at the directories and sockets of the machine.
func modes(t *testing.T) {
	t.Helper()
	m := machineOf(t)
	for path, want := range map[string]string{
		"/ctx":                              "755 root:root directory",
		"/run/cortexfs":                     "755 root:root directory",
		"/run/cortexfs/agent":               "755 root:root directory",
		"/run/cortexfs/run":                 "711 root:root directory",
		"/run/cortexfs/lock":                "700 root:root directory",
		"/run/cortexfs/admin.sock":          "666 root:root socket",
		"/run/cortexfs/model.sock":          "600 root:root socket",
		"/etc/cortexfs":                     "755 root:root directory",
		"/etc/cortexfs/providers.d":         "755 root:root directory",
		"/var/lib/cortexfs":                 "710 root:cortexfs-model directory",
		"/var/lib/cortexfs/secrets":         "700 cortexfs-model:cortexfs-model directory",
		"/var/lib/cortexfs/tree/.lock":      "700 root:root directory",
		"/usr/lib/systemd/system/ctx.mount": "644 root:root regular file",
	} {
		if got := strings.TrimSpace(m.Must(t, "stat", "-c", "%a %U:%G %F", path)); got != want {
			t.Errorf("%s: %s, not %s", path, got, want)
		}
	}
}

// TestVerify: systemd has nothing against the units.
func TestVerify(t *testing.T) {
	m := machineOf(t)
	var units []string
	for _, kind := range []string{"mount", "target", "slice", "socket", "service"} {
		found, err := filepath.Glob(filepath.Join(source, "*."+kind))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", kind, err)
		}
		units = append(units, found...)
	}
	args := []string{"systemd-analyze", "verify", "--man=no"}
	for _, path := range units {
		args = append(args, strings.Replace(filepath.Base(path), "@.", "@x.", 1))
	}
	if out := m.Must(t, append([]string{"sh", "-c", `"$@" 2>&1`, "sh"}, args...)...); out != "" {
		t.Error(out)
	}
	if out := m.Must(t, "sh", "-c", "systemd-tmpfiles --dry-run --create cortexfs.conf 2>&1 || systemd-tmpfiles --create cortexfs.conf 2>&1; systemd-sysusers --dry-run cortexfs.conf 2>&1"); strings.Contains(out, "cortexfs.conf:") {
		t.Error(out)
	}
}

var exposure = regexp.MustCompile(`Overall exposure level for \S+: (\d+\.\d+)`)

// TestExposure: how much of the system each unit is kept from, as systemd counts
// it. docs/reference/system.md states the numbers.
func TestExposure(t *testing.T) {
	m := machineOf(t)
	for unit, most := range map[string]float64{"ctxmodel.service": 1.5, "ctxd-admin.service": 1.8, "ctxd@x.service": 4.5} {
		found := exposure.FindStringSubmatch(m.Must(t, "systemd-analyze", "security", "--no-pager", unit))
		if found == nil {
			t.Fatalf("%s: no number", unit)
		}
		if n, _ := strconv.ParseFloat(found[1], 64); n > most {
			t.Errorf("%s: %s is over %g", unit, found[1], most)
		}
	}
}
