// Package packages holds what is made of the programs for those who install them:
// manual pages, completions and packages.
package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/tests/internal/world"
)

const (
	root    = "../.."
	version = "0.2.0-g0123456789ab-dirty"
	day     = "2025-12-01"
)

// tool runs a program of the module packaging, which is apart from the workspace.
func tool(t testing.TB, name string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"run", "./cmd/" + name, "-top", ".."}, args...)...)
	cmd.Dir = root + "/packaging"
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// output runs a command and returns what it prints.
func output(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=80", "MANROFFSEQ=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

var made sync.Once

// reference makes manual pages and completions, once.
func reference(t testing.TB) string {
	t.Helper()
	bin := world.Bin(t)
	dir := filepath.Join(bin, "reference")
	made.Do(func() { tool(t, "reference", "-programs", bin, "-into", dir, "-version", version, "-day", day) })
	return dir
}

func TestMain(m *testing.M) { world.Main(m) }

// files are the files below a folder, by their paths from there.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
