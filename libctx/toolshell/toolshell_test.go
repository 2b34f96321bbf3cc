package toolshell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func tool(name string) libctx.Tool { return libctx.Tool(name) }

func TestSearchPath(t *testing.T) {
	mine := []string{"/ctx/mine"}
	for name, c := range map[string]struct {
		in   Sources
		want []string // nil: refused
	}{
		"nothing set":          {Sources{UID: 7}, []string{"/ctx/tool", "/ctx/home/7/tool"}},
		"process":              {Sources{Process: "/a:/b"}, []string{"/a", "/b"}},
		"start file first":     {Sources{Tshrc: mine, Process: "/a"}, mine},
		"agent: process":       {Sources{InAgent: true, Tshrc: mine, Process: "/a"}, []string{"/a"}},
		"agent without a path": {Sources{InAgent: true, Tshrc: mine}, nil},
		"empty element":        {Sources{Process: "/a::/b"}, nil},
		"ends in colon":        {Sources{Process: "/a:"}, nil},
		"relative":             {Sources{Process: "tool"}, nil},
		"not clean":            {Sources{Process: "/a/../b"}, nil},
		"two lines":            {Sources{Process: "/a\n/b"}, nil},
		"NUL":                  {Sources{Process: "/a\x00"}, nil},
	} {
		got, err := SearchPath(c.in)
		if d := cmp.Diff(c.want, got); d != "" || (err != nil) != (c.want == nil) {
			t.Errorf("%s: %v %s", name, err, d)
		}
		if err != nil && !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// write makes dir/name with that mode and returns its path.
func write(t *testing.T, dir, name string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"), mode); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLookup(t *testing.T) {
	root := t.TempDir()
	a, b, none := filepath.Join(root, "a"), filepath.Join(root, "b"), filepath.Join(root, "none")
	plain := write(t, a, "plain", 0o644)
	second := write(t, b, "plain", 0o755)
	first := write(t, a, "both", 0o755)
	write(t, b, "both", 0o755)
	lonely := write(t, b, "lonely", 0o600)
	real := write(t, b, "real", 0o755)
	link, dangling := filepath.Join(a, "real"), filepath.Join(a, "dangling")
	for link, target := range map[string]string{link: real, dangling: "nowhere"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(a, "dir")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(a, "fifo")
	if err := unix.Mkfifo(fifo, 0o755); err != nil {
		t.Fatal(err)
	}
	// A directory of CTX_PATH may itself be a file or missing.
	dirs := []string{none, plain, a, b}
	for _, c := range []struct {
		name   string
		want   string
		passed []Miss
	}{
		{"both", first, nil},
		{"plain", second, []Miss{{plain, NotExecutable}}},
		{"lonely", "", []Miss{{lonely, NotExecutable}}},
		{"real", real, []Miss{{link, NotRegular}}},
		{"dangling", "", []Miss{{dangling, NotRegular}}},
		{"dir", "", []Miss{{dir, NotRegular}}},
		{"fifo", "", []Miss{{fifo, NotRegular}}},
		{"absent", "", nil},
	} {
		hit, ok, err := Lookup(dirs, tool(c.name))
		if err != nil || ok != (c.want != "") || hit.Path != c.want {
			t.Errorf("%s: %q, %v, %v", c.name, hit.Path, ok, err)
		}
		if d := cmp.Diff(c.passed, hit.Passed); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if miss, some := hit.Reason(); some != (len(c.passed) > 0) || some && miss != c.passed[0] {
			t.Errorf("%s: reason %v", c.name, miss)
		}
		if ok && hit.Control() != c.want+".d" {
			t.Errorf("%s: control %s", c.name, hit.Control())
		}
	}
}

func TestList(t *testing.T) {
	root := t.TempDir()
	a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
	both := write(t, a, "both", 0o755)
	write(t, b, "both", 0o755)
	hidden := write(t, b, "hidden", 0o755)
	write(t, a, "hidden", 0o644)
	write(t, a, "plain", 0o644)
	write(t, a, "no tool", 0o755)
	write(t, filepath.Join(a, "both.d"), "schema", 0o755)
	got, err := List([]string{filepath.Join(root, "none"), a, b})
	if err != nil || len(got) != 2 || got[0].Name != "both" || got[0].Path != both || got[1].Path != hidden {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := List([]string{both}); err == nil {
		t.Error("a file was listed")
	}
}

func TestLookupNeverUsesPATH(t *testing.T) {
	decoys := t.TempDir()
	write(t, decoys, "decoy", 0o755)
	t.Setenv("PATH", decoys+":"+os.Getenv("PATH"))
	for _, name := range []string{"decoy", "sh"} {
		if hit, ok, err := Lookup([]string{t.TempDir()}, tool(name)); ok || err != nil {
			t.Errorf("%s is found at %q, %v", name, hit.Path, err)
		}
	}
	if hit, ok, _ := Lookup(nil, "decoy"); ok {
		t.Errorf("without directories it is found at %q", hit.Path)
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"/ctx/tool", "/ctx/tool:/ctx/home/0/tool", ":", "", "/", "/a//b", "/a:/a", "/\xff", "/a\n:/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		dirs, err := Split(s)
		if err != nil {
			if dirs != nil || !errdefs.Is(err, errdefs.Invalid) {
				t.Fatalf("%q, %v", dirs, err)
			}
			return
		}
		if again := strings.Join(dirs, ":"); again != s {
			t.Fatalf("%q is split into %q", s, dirs)
		}
	})
}
