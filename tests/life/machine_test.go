package life

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/machine"
	"cortexfs.org/tests/internal/world"
)

const (
	packaging = "../../packaging"
	older     = "0.1.0"
	newer     = "0.2.0"
	epoch     = "1764547200"
)

func TestMain(m *testing.M) { world.Main(m) }

// tool runs a program of the module packaging.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"run", "./cmd/" + name, "-top", ".."}, args...)...)
	cmd.Dir = packaging
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// install is a shell command that installs all packages of a version, without
// anybody to ask and without a network.
func install(version string) string {
	return "DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends --reinstall " +
		"-o Dpkg::Use-Pty=0 /packages/" + version + "/*.deb </dev/null 2>&1"
}

// boot boots a machine that has the older packages, put into its root before it
// ever ran, and the files of the newer ones.
func boot(t *testing.T) *machine.Machine {
	t.Helper()
	bin := world.Bin(t)
	files, err := os.MkdirTemp("", "ctx-life-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(files) })
	if err := os.Chmod(files, 0o755); err != nil {
		t.Fatal(err)
	}
	reference, nothing := filepath.Join(bin, "reference"), filepath.Join(bin, "nothing")
	tool(t, "reference", "-programs", bin, "-into", reference, "-version", older, "-day", "2025-12-01")
	modules, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{older, newer} {
		tool(t, "packages", "-programs", bin, "-reference", reference, "-modules", strings.TrimSpace(string(modules)),
			"-into", filepath.Join(files, "packages", version), "-version", version, "-epoch", epoch, "-formats", "deb")
	}
	if err := os.Mkdir(nothing, 0o755); err != nil {
		t.Fatal(err)
	}
	m, err := machine.BootWith(machine.Setup{Programs: nothing, Files: files, Prepare: "PATH=/usr/sbin:/usr/bin:/sbin:/bin; " + install(older)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}
