package soak

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// faulty is a folder with the suite's programs, ctxd among them built with the
// tag faults. It lies in the folder of the plain programs and goes with it.
var faulty = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(plain, "faults")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-tags=urfave_cli_no_docs,faults", "-o", dir+"/", ".")
	cmd.Dir = "../../ctxd"
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	for _, name := range []string{"ctx", "ctxmodel", "tsh", "ctxtool", "puppet"} {
		if err := os.Link(filepath.Join(plain, name), filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
})

var plain string // the folder of the plain programs, once built

// newWorld makes a world whose ctxd can be made to fail.
func newWorld(t testing.TB) *world.World {
	t.Helper()
	return breakable(t, world.New(t))
}

func breakable(t testing.TB, w *world.World) *world.World {
	t.Helper()
	plain = w.Bin
	dir, err := faulty()
	if err != nil {
		t.Fatal(err)
	}
	w.Bin = dir
	return w
}

// points are the names of all fault points in the sources.
func points(t testing.TB) []string {
	t.Helper()
	called := regexp.MustCompile(`fault\.(?:Point|At|Fail)\("([^"]+)"\)`)
	var names []string
	for _, module := range []string{"libctx", "ctxd"} {
		err := filepath.WalkDir("../../"+module, func(path string, d os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range called.FindAllSubmatch(text, -1) {
				names = append(names, string(m[1]))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	return names
}

// TestNoTrace: a plain build holds neither code nor names of fault points, and
// the build with the tag holds all of them, so that the search means something.
func TestNoTrace(t *testing.T) {
	w := newWorld(t)
	names := points(t)
	if len(names) < 20 || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Fatalf("points %v", names)
	}
	with, err := os.ReadFile(w.Bin + "/ctxd")
	if err != nil {
		t.Fatal(err)
	}
	without, err := os.ReadFile(plain + "/ctxd")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "CTX_FAULTS") {
		if !bytes.Contains(with, []byte(name)) {
			t.Errorf("the build with faults has no %s", name)
		}
		if bytes.Contains(without, []byte(name)) {
			t.Errorf("the plain build has %s", name)
		}
	}
	symbols := func(path string) (found []string) {
		out, err := exec.Command("go", "tool", "nm", path).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "libctx/fault") {
				found = append(found, strings.TrimSpace(line))
			}
		}
		return found
	}
	if found := symbols(w.Bin + "/ctxd"); len(found) == 0 {
		t.Error("the build with faults has no symbol of them")
	}
	if found := symbols(plain + "/ctxd"); len(found) > 0 {
		t.Errorf("the plain build has %v", found)
	}
}

// find lists the files below a directory whose names begin so.
func find(t testing.TB, dir, prefix string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), prefix) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
