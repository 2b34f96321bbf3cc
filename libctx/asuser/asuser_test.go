package asuser

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// other is a user without an account who is not this one.
var other = func() Identity {
	uid := uint32(60001)
	if os.Geteuid() == 60001 {
		uid = 60011
	}
	return Identity{UID: uid, GID: uid, Groups: []uint32{60002}}
}()

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSelf(t *testing.T) {
	self := Self()
	if !self.IsSelf() || int(self.UID) != os.Geteuid() || int(self.GID) != os.Getegid() {
		t.Errorf("%+v", self)
	}
	if (Identity{UID: self.UID + 1}).IsSelf() {
		t.Error("another uid is self")
	}
	tid, want := unix.Gettid(), errors.New("x")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tid = unix.Gettid()
	err := self.Do(func() error {
		if unix.Gettid() != tid {
			t.Error("work of the process itself moved to another thread")
		}
		return want
	})
	if err != want {
		t.Error(err)
	}
}

// Without the right to be somebody else nothing runs; with it, the work has the
// rights of that user and nobody else's.
func TestRightsOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600))
	if os.Geteuid() != 0 {
		ran := false
		err := other.Do(func() error { ran = true; return nil })
		if errdefs.KindOf(err) != errdefs.Denied || ran {
			t.Errorf("ran %v, %v", ran, err)
		}
		checkThreads(t)
		return
	}
	openParents(t, dir)
	open := filepath.Join(dir, "open")
	must(t, os.Mkdir(open, 0o777))
	must(t, os.Chmod(open, 0o777))
	group := filepath.Join(dir, "group")
	must(t, os.WriteFile(group, []byte("shared"), 0o640))
	must(t, os.Chown(group, 0, int(other.Groups[0])))

	err := other.Do(func() error {
		if _, err := os.ReadFile(filepath.Join(dir, "secret")); !errors.Is(err, os.ErrPermission) {
			t.Errorf("read a file of root: %v", err)
		}
		if err := os.Chmod(filepath.Join(dir, "secret"), 0o666); !errors.Is(err, os.ErrPermission) {
			t.Errorf("changed a file of root: %v", err)
		}
		if err := os.Chown(open, int(other.UID), -1); !errors.Is(err, os.ErrPermission) {
			t.Errorf("took a directory of root: %v", err)
		}
		if b, err := os.ReadFile(group); err != nil || string(b) != "shared" {
			t.Errorf("the groups do not count: %q, %v", b, err)
		}
		return os.WriteFile(filepath.Join(open, "made"), nil, 0o600)
	})
	must(t, err)
	var st unix.Stat_t
	must(t, unix.Lstat(filepath.Join(open, "made"), &st))
	if st.Uid != other.UID || st.Gid != other.GID {
		t.Errorf("made by %d:%d", st.Uid, st.Gid)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "secret")); err != nil || string(b) != "secret" {
		t.Errorf("root lost its rights: %q, %v", b, err)
	}
	checkThreads(t)
}

// openParents makes every directory above dir searchable, as far as it is ours.
func openParents(t *testing.T, dir string) {
	t.Helper()
	for p := dir; strings.HasPrefix(p, os.TempDir()+"/"); p = filepath.Dir(p) {
		must(t, os.Chmod(p, 0o755))
	}
}

func TestErrorsComeBack(t *testing.T) {
	if os.Geteuid() != 0 {
		return // the one error there is without rights is tested above
	}
	want := errors.New("x")
	if err := other.Do(func() error { return want }); err != want {
		t.Error(err)
	}
	for _, id := range []Identity{{UID: 1<<32 - 1}, {UID: 5, GID: 1<<32 - 1}, {UID: 5, Groups: []uint32{1<<32 - 1}}} {
		if err := id.Do(func() error { t.Error("ran"); return nil }); errdefs.KindOf(err) != errdefs.Invalid {
			t.Errorf("%v: %v", id, err)
		}
	}
	func() {
		defer func() {
			if p := recover(); p != "oh" {
				t.Errorf("panic came back as %v", p)
			}
		}()
		other.Do(func() error { panic("oh") })
	}()
	ended := make(chan bool)
	go func() {
		returned := false
		defer func() { ended <- !returned }()
		other.Do(func() error { runtime.Goexit(); return nil })
		returned = true
	}()
	if !<-ended {
		t.Error("the caller went on though the work ended its goroutine")
	}
	checkThreads(t)
}

func TestManyAtOnce(t *testing.T) {
	if os.Geteuid() != 0 {
		return // needs rights
	}
	var wg sync.WaitGroup
	for i := range 64 {
		id := Identity{UID: 60001 + uint32(i%7), GID: 60001 + uint32(i%7)}
		wg.Go(func() {
			err := id.Do(func() error {
				uid, gid := threadIDs(t)
				if uid != id.UID || gid != id.GID {
					return fmt.Errorf("acts as %d:%d, not as %d", uid, gid, id.UID)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if uid, _ := threadIDs(t); uid != 0 {
				t.Errorf("an ordinary goroutine acts as %d", uid)
			}
		})
	}
	wg.Wait()
	checkThreads(t)
}

// threadIDs is the file system uid and gid of the calling thread.
func threadIDs(t *testing.T) (uid, gid uint32) {
	u, _ := unix.SetfsuidRetUid(-1)
	g, _ := unix.SetfsgidRetGid(-1)
	return uint32(u), uint32(g)
}

// checkThreads fails if any living thread has rights other than the process's.
// A thread that is about to end may be seen once more, so dead ones are waited
// for by its own task directory going away.
func checkThreads(t *testing.T) {
	t.Helper()
	self := Self()
	want := fmt.Sprintf("Uid:\t%d\t%d\t%d\t%d", os.Getuid(), self.UID, self.UID, self.UID)
	for range 10_000 {
		bad := ""
		tasks, err := filepath.Glob("/proc/self/task/*/status")
		must(t, err)
		if len(tasks) == 0 {
			t.Fatal("no threads to look at")
		}
		for _, task := range tasks {
			b, err := os.ReadFile(task)
			if err != nil {
				continue // ended meanwhile
			}
			if !slices.Contains(strings.Split(string(b), "\n"), want) {
				bad = task
			}
		}
		if bad == "" {
			return
		}
		runtime.Gosched()
	}
	t.Error("a thread kept rights that are not the process's")
}

func TestLookup(t *testing.T) {
	id, name, err := Lookup(0)
	if err != nil || name != "root" || id.UID != 0 || id.GID != 0 || !slices.Contains(id.Groups, 0) {
		t.Errorf("%+v %q %v", id, name, err)
	}
	id, name, err = Lookup(4_000_000_001)
	if err != nil || name != "" || id.UID != 4_000_000_001 || id.GID != id.UID || id.Groups != nil {
		t.Errorf("%+v %q %v", id, name, err)
	}
	// The environment names nobody.
	t.Setenv("USER", "root")
	t.Setenv("HOME", "/root")
	if uid := uint32(os.Getuid()); uid > 60000 {
		if _, name, err := Lookup(uid); err != nil || name != "" {
			t.Errorf("uid %d is called %q, %v", uid, name, err)
		}
	}
}

func TestAccountFilesAsTheyAre(t *testing.T) {
	const text = "root:x:0:0::/root:/bin/sh\n# note\n\n+nis::::::\n  daemon:x:1:1:\nodd\nlast:x:2:3"
	var names []string
	err := scan(strings.NewReader(text), func(f []string) bool {
		names = append(names, f[0])
		return f[0] != "odd"
	})
	if err != nil || strings.Join(names, " ") != "root daemon odd" {
		t.Errorf("%q, %v", names, err)
	}
	if err := scan(strings.NewReader(strings.Repeat("x", 2<<20)), func([]string) bool { return true }); err == nil {
		t.Error("a line of any length was read")
	}
	for s, want := range map[string]bool{"0": true, "4294967294": true, "4294967295": false, "-1": false, "": false, "1a": false, "4294967296": false} {
		if _, ok := number(s); ok != want {
			t.Errorf("number %q: %v", s, ok)
		}
	}
}
