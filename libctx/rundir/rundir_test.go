package rundir

import (
	"os"
	"path/filepath"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

func layout(t *testing.T, system bool) paths.Layout {
	dir := t.TempDir()
	return paths.Layout{Runtime: filepath.Join(dir, "cortexfs/key"), Locks: filepath.Join(dir, "cortexfs/key/lock"), System: system}
}

func TestEnsureModesIgnoreUmask(t *testing.T) {
	for _, umask := range []int{0, 0o77, 0o277} {
		for _, system := range []bool{false, true} {
			l := layout(t, system)
			old := unix.Umask(umask)
			err := Ensure(l)
			if err == nil {
				err = EnsureCapabilities(l, "a")
			}
			unix.Umask(old)
			if err != nil {
				t.Fatalf("umask %o: %v", umask, err)
			}
			want := map[string]os.FileMode{l.Runtime: 0o700, l.Sockets(): 0o700, l.Runs(): 0o700, l.Capabilities("a"): 0o700, l.Locks: 0o700}
			if system {
				want[l.Runtime], want[l.Sockets()], want[l.Runs()], want[l.Capabilities("a")] = 0o755, 0o755, 0o711, 0o711
			}
			for path, mode := range want {
				if st, err := os.Lstat(path); err != nil || st.Mode().Perm() != mode {
					t.Errorf("umask %o: %s: %v %v, want %o", umask, path, st.Mode(), err, mode)
				}
			}
			if err := Ensure(l); err != nil {
				t.Errorf("second Ensure: %v", err)
			}
		}
	}
}

func TestEnsureRefusesPreparedDirectories(t *testing.T) {
	prepare := map[string]func(path string) error{
		"link":     func(p string) error { return os.Symlink(t.TempDir(), p) },
		"file":     func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"writable": func(p string) error { return unix.Mkdir(p, 0) },
	}
	for name, make := range prepare {
		l := layout(t, false)
		if err := os.Mkdir(filepath.Dir(l.Runtime), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := make(l.Runtime); err != nil {
			t.Fatal(err)
		}
		if name == "writable" {
			os.Chmod(l.Runtime, 0o770)
		}
		if err := Ensure(l); !errdefs.Is(err, errdefs.Denied) {
			t.Errorf("%s: Ensure = %v, want EACCES", name, err)
		}
	}
	if os.Geteuid() == 0 {
		l := layout(t, false)
		os.MkdirAll(l.Runtime, 0o700)
		os.Chown(l.Runtime, 60001, 60001)
		if err := Ensure(l); !errdefs.Is(err, errdefs.Denied) {
			t.Errorf("foreign: Ensure = %v, want EACCES", err)
		}
	}
}

func TestEnsureTerminals(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"cortexfs/terminal", "cortexfs-7/0123456789abcdef/terminal"} {
		l := paths.Layout{Terminals: filepath.Join(dir, path), System: true}
		for range 2 {
			if err := EnsureTerminals(l); err != nil {
				t.Fatal(err)
			}
		}
		for at := l.Terminals; at != dir; at = filepath.Dir(at) {
			if st, err := os.Lstat(at); err != nil || st.Mode() != os.ModeDir|0o700 {
				t.Errorf("%s: %v, %v", at, st.Mode(), err)
			}
		}
		for at := l.Terminals; at != dir; at = filepath.Dir(at) {
			if err := os.Chmod(at, 0o711); err != nil {
				t.Fatal(err)
			}
			if err := EnsureTerminals(l); !errdefs.Is(err, errdefs.Denied) {
				t.Errorf("%s is open to others: %v", at, err)
			}
			os.Chmod(at, 0o700)
		}
	}
}

// The locks of a user's terminals are in a tree of theirs, and of another's tree
// beside their runtime directory.
func TestFor(t *testing.T) {
	me := uint32(os.Geteuid())
	root := t.TempDir()
	mine := paths.New(paths.Env{UID: int(me), Home: root, RuntimeDir: root}, root)
	if got := For(mine, me); got != mine {
		t.Errorf("the own tree: %+v", got)
	}
	if got := For(mine, me+1); got != mine.Aside() {
		t.Errorf("another's tree: %+v", got)
	}
	none := mine
	none.Root = filepath.Join(root, "none")
	if got := For(none, me+1); got != none {
		t.Errorf("no tree: %+v", got)
	}
	if me != 0 {
		return // the rest is about root, who looks at what others own
	}
	if err := os.Chown(root, 60001, 60001); err != nil {
		t.Fatal(err)
	}
	l := paths.New(paths.Env{UID: 0, Home: "/root"}, root)
	l.System = true
	l.Locks = "/run/cortexfs/lock"
	if got := For(l, 60001); got.Locks != filepath.Join(root, ".lock") {
		t.Errorf("root looks at a user's tree: %s", got.Locks)
	}
	if got := For(l, 0); got.Locks == l.Locks {
		t.Errorf("root's own in a user's tree: %s", got.Locks)
	}
}
