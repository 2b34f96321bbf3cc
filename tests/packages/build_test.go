package packages

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// epoch is the time that packages of tests name.
const epoch = "1764547200"

// copies makes two copies of the sources below bin, in folders whose names differ in length,
// with the packages of each below dist.
func copies(bin string) ([2]string, error) {
	dirs := [2]string{filepath.Join(bin, "a"), filepath.Join(bin, "another/place")}
	from := root
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return dirs, err
		}
		cmd := exec.Command("sh", "-ec", `tar -C "$1" --exclude=./.git --exclude=./bin --exclude=./dist -c . | tar -C "$2" -x`, "sh", from, dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			return dirs, &buildError{err, out}
		}
		from = dir // others may be writing to the sources
	}
	for _, dir := range dirs {
		cmd := exec.Command("make", "packages", "VERSION="+version)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+epoch, "MAKEFLAGS=", "MAKELEVEL=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return dirs, &buildError{err, out}
		}
	}
	return dirs, nil
}

var copied = sync.OnceValues(func() ([2]string, error) { return copies(shared) })

// shared is the folder that the test's end removes.
var shared string

type buildError struct {
	error
	out []byte
}

func (e *buildError) Error() string { return e.error.Error() + ": " + string(e.out) }

// dist is the folder of the packages of one copy.
func dist(t testing.TB, n int) string {
	t.Helper()
	shared = world.Bin(t)
	dirs, err := copied()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dirs[n], "dist")
}

// TestReproducible: the same sources in two places make the same bytes.
func TestReproducible(t *testing.T) {
	one, two := dist(t, 0), dist(t, 1)
	all := files(t, one)
	if got := files(t, two); strings.Join(got, "\n") != strings.Join(all, "\n") {
		t.Fatalf("one has\n%q\nthe other\n%q", all, got)
	}
	for _, file := range all {
		a, err := os.ReadFile(filepath.Join(one, file))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(two, file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs", file)
		}
	}
}
