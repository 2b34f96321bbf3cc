// Package systemd drives the suite's programs on a machine with a real systemd,
// as its ordinary users. It needs root, so `make test` includes it only there.
package systemd

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/tests/internal/machine"
	"cortexfs.org/tests/internal/world"
)

var booted = sync.OnceValues(func() (*machine.Machine, error) { return machine.Boot(programs) })

var (
	programs string // a folder
	built    sync.Once
)

// boot is the machine that all tests share.
func boot(t *testing.T) *machine.Machine {
	t.Helper()
	programs = world.Bin(t)
	built.Do(func() {
		cmd := exec.Command("go", "build", "-trimpath", "-o", programs+"/", "cortexfs.org/tests/cmd/supervisor")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	})
	m, err := booted()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(programs)
	if programs != "" {
		if machine, err := booted(); err == nil && machine.Close() != nil {
			code = 1
		}
	}
	os.Exit(code)
}

// TestMachine: what the other tests stand on.
func TestMachine(t *testing.T) {
	m := boot(t)
	if got := strings.TrimSpace(m.Must(t, "systemctl", "is-system-running")); got != "running" {
		t.Errorf("the machine is %s: %s", got, m.Must(t, "systemctl", "--failed"))
	}
	u := m.NewUser(t, true)
	if got := strings.TrimSpace(u.Must("systemctl", "--user", "is-system-running")); got != "running" {
		t.Errorf("the user's manager is %s", got)
	}
	out := u.Must("systemd-run", "--user", "--quiet", "--wait", "--pipe", "bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-all", "id", "-un")
	if out != u.Name+"\n" {
		t.Errorf("in a sandbox of a unit: %q", out)
	}
	u.Must("ctx", "init")

	other := m.NewUser(t, false)
	s := other.Login(80, 24)
	s.Type("tty; loginctl show-session -p Remote $XDG_SESSION_ID\n")
	s.See("/dev/pts/")
	s.See("Remote=no")
	s.Type("exit 3\n")
	if code := s.Exit(); code != 3 {
		t.Errorf("exit %d", code)
	}
}
