package discover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world makes places of an ordinary user, and returns them with the directory
// they are in.
func world(t *testing.T) (Places, string) {
	t.Helper()
	dir := t.TempDir()
	p := Places{ID: asuser.Self(), Global: filepath.Join(dir, "etc"), Home: filepath.Join(dir, "home")}
	if os.Geteuid() == 0 {
		p.ID = asuser.Identity{UID: 60001, GID: 60001}
		for d := dir; strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
			must(t, os.Chmod(d, 0o755))
		}
	}
	work := filepath.Join(dir, "work")
	must(t, os.MkdirAll(filepath.Join(work, "a/b/c"), 0o755))
	must(t, os.Mkdir(p.Global, 0o755))
	must(t, os.Mkdir(p.Home, 0o755))
	var st unix.Stat_t
	must(t, unix.Stat(work, &st))
	p.Workspace = sandbox.Workspace{Dir: work, Dev: uint64(st.Dev), Ino: st.Ino}
	p.Cwd = "/workspace/a/b"
	return p, dir
}

// visit returns the places as they are seen inside, and the warnings.
func visit(t *testing.T, p Places) (seen []string, warnings []string) {
	t.Helper()
	for _, w := range p.Search(func(places []Place, _ func(string, error)) {
		for _, pl := range places {
			if pl.Project != strings.HasPrefix(pl.Path, "/workspace") {
				t.Errorf("%s: project %v", pl.Path, pl.Project)
			}
			seen = append(seen, pl.Path)
		}
	}) {
		warnings = append(warnings, w.String())
	}
	return seen, warnings
}

func TestPlaces(t *testing.T) {
	for cwd, want := range map[string]string{
		"/workspace":            "",
		"":                      "",
		"/workspace/":           "",
		"/home/agent":           "",
		"/workspacex/a":         "",
		"/workspace/../etc":     "",
		"/workspace/a":          " /workspace/a",
		"/workspace/a/b/":       " /workspace/a /workspace/a/b",
		"/workspace/a/b/c":      " /workspace/a /workspace/a/b /workspace/a/b/c",
		"/workspace/a/gone/x":   " /workspace/a",
		"/workspace/a/../a/b/.": " /workspace/a /workspace/a/b",
	} {
		p, _ := world(t)
		p.Cwd = cwd
		seen, warnings := visit(t, p)
		if got := strings.Join(seen, " "); got != "/etc/cortexfs /home/agent /workspace"+want || warnings != nil {
			t.Errorf("%q: %s, %q", cwd, got, warnings)
		}
	}
	if seen, warnings := visit(t, Places{ID: asuser.Self()}); seen != nil || warnings != nil {
		t.Errorf("nowhere: %q, %q", seen, warnings)
	}
}

func TestHostilePlaces(t *testing.T) {
	p, dir := world(t)
	must(t, os.Remove(p.Global))
	must(t, os.WriteFile(filepath.Join(dir, "work/file"), nil, 0o644))
	must(t, os.Symlink(dir, filepath.Join(dir, "work/link")))
	must(t, os.Mkdir(filepath.Join(dir, "work/shut"), 0))
	for cwd, want := range map[string]string{
		"/workspace/file":   "",
		"/workspace/link":   "/workspace/link: is a symbolic link, or leads through one",
		"/workspace/link/x": "/workspace/link: is a symbolic link, or leads through one",
		"/workspace/shut":   "/workspace/shut: permission denied",
		"/workspace/a\x00b": `/workspace/a\x00b: is not a regular file`,
	} {
		p.Cwd = cwd
		seen, warnings := visit(t, p)
		if got := strings.Join(warnings, ";"); len(seen) != 2 || got != want {
			t.Errorf("%q: %q, %s", cwd, seen, got)
		}
	}
	p.Workspace.Ino++
	if seen, warnings := visit(t, p); len(seen) != 1 || len(warnings) != 1 || warnings[0] != "/workspace: is another directory by now" {
		t.Errorf("%q, %q", seen, warnings)
	}
}

func TestDeepCwd(t *testing.T) {
	p, dir := world(t)
	deep := strings.Repeat("/d", libctx.MaxRuleDirs+1)
	must(t, os.MkdirAll(filepath.Join(dir, "work", deep), 0o755))
	p.Cwd = "/workspace" + deep
	seen, warnings := visit(t, p)
	if len(seen) != 3+libctx.MaxRuleDirs || len(warnings) != 1 || !strings.Contains(warnings[0], "directories deep") {
		t.Errorf("%d places, %q", len(seen), warnings)
	}
}

// Without the right to be the identity nothing is searched, and nothing fails.
func TestIdentity(t *testing.T) {
	p, _ := world(t)
	p.ID = asuser.Identity{UID: 1<<32 - 1}
	if seen, warnings := visit(t, p); seen != nil || len(warnings) != 1 {
		t.Errorf("%q, %q", seen, warnings)
	}
}

func TestHead(t *testing.T) {
	p, dir := world(t)
	work := filepath.Join(dir, "work")
	must(t, os.WriteFile(filepath.Join(work, "f"), []byte("0123456789"), 0o644))
	must(t, os.WriteFile(filepath.Join(work, "shut"), []byte("secret"), 0))
	must(t, unix.Mkfifo(filepath.Join(work, "fifo"), 0o644))
	must(t, os.Symlink("f", filepath.Join(work, "link")))
	p.Search(func(places []Place, _ func(string, error)) {
		top := places[2]
		for max, want := range map[int]string{0: "", 9: "012345678", 10: "0123456789", 11: "0123456789"} {
			h, err := top.Head("f", max)
			if err != nil || string(h.Bytes) != want || h.More != (max < 10) || h.Ino == 0 {
				t.Errorf("%d: %+v, %v", max, h, err)
			}
		}
		for name, want := range map[string]string{
			"shut": "permission denied", "fifo": "is not a regular file", "a": "is not a regular file",
			"link": "is a symbolic link, or leads through one",
		} {
			if _, err := top.Head(name, 10); err == nil || why(err) != want {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := top.Head("gone", 10); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
}

func TestNames(t *testing.T) {
	p, dir := world(t)
	for i := range 100 {
		must(t, os.WriteFile(filepath.Join(dir, "work/a/b/c", fmt.Sprintf("f%02d", i)), nil, 0o644))
	}
	p.Search(func(places []Place, _ func(string, error)) {
		c, err := places[2].Sub("a/b/c")
		must(t, err)
		defer c.Close()
		if c.Path != "/workspace/a/b/c" {
			t.Error(c.Path)
		}
		for max, more := range map[int]bool{0: true, 50: true, 100: false, 200: false} {
			names, m, err := c.Names(max)
			if err != nil || m != more || len(names) != min(max, 100) || !slices.IsSorted(names) {
				t.Errorf("%d: %d names, %v, %v", max, len(names), m, err)
			}
		}
	})
}

func TestWarningsAreBounded(t *testing.T) {
	p, _ := world(t)
	list := p.Search(func(_ []Place, warn func(string, error)) {
		for range 100 {
			warn("a\nb", errors.New("c\x1bd"))
		}
	})
	if len(list) != libctx.MaxWarnings+1 || list[0].String() != `a\nb: c\x1bd` || !strings.Contains(list[libctx.MaxWarnings].Why, "68") {
		t.Errorf("%d warnings: %q", len(list), list)
	}
}
