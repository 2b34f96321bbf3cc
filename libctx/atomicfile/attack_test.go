package atomicfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// open opens a fresh directory and, beside it, one that nothing may touch: it
// holds the file "secret" and the empty directory "sub".
func open(t *testing.T) (d *Dir, outside string) {
	t.Helper()
	base := t.TempDir()
	inside, outside := filepath.Join(base, "in"), filepath.Join(base, "out")
	must(t, os.Mkdir(inside, 0o755))
	must(t, os.MkdirAll(filepath.Join(outside, "sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	d, err := OpenDir(inside)
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d, outside
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// untouched fails if anything of the outside directory changed.
func untouched(t *testing.T, outside string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(outside, "secret"))
	if err != nil || string(b) != "secret" {
		t.Errorf("outside file: %q, %v", b, err)
	}
	var all []string
	filepath.WalkDir(outside, func(p string, _ fs.DirEntry, _ error) error {
		all = append(all, strings.TrimPrefix(p, outside))
		return nil
	})
	if got := strings.Join(all, " "); got != " /secret /sub" {
		t.Errorf("outside directory holds %q", got)
	}
	if st, err := os.Stat(filepath.Join(outside, "sub")); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("outside directory: %v, %v", st.Mode(), err)
	}
}

// noTemp fails if a temporary file is left anywhere below d.
func noTemp(t *testing.T, d *Dir) {
	t.Helper()
	filepath.WalkDir(d.Path(), func(p string, e fs.DirEntry, _ error) error {
		if strings.HasPrefix(e.Name(), TempPrefix) {
			t.Errorf("%s was left behind", p)
		}
		return nil
	})
}

// operations is everything that takes a path, each called so that it would
// read or change what the path leads to.
var operations = map[string]func(d *Dir, rel string) error{
	"Sub": func(d *Dir, rel string) error {
		s, err := d.Sub(rel)
		if err == nil {
			s.Close()
		}
		return err
	},
	"MkdirAll": func(d *Dir, rel string) error {
		s, err := d.MkdirAll(rel+"/new/deep", 0o700)
		if err == nil {
			s.Close()
		}
		return err
	},
	"Open": func(d *Dir, rel string) error {
		f, err := d.Open(rel)
		if err == nil {
			f.Close()
		}
		return err
	},
	"OpenAppend": func(d *Dir, rel string) error {
		f, _, err := d.OpenAppend(rel, 0o644)
		if err == nil {
			f.Close()
		}
		return err
	},
	"Create": func(d *Dir, rel string) error {
		f, err := d.Create(rel, 0o644)
		if err == nil {
			f.Close()
		}
		return err
	},
	"ReadFile":    func(d *Dir, rel string) error { _, err := d.ReadFile(rel, 100); return err },
	"Replace":     func(d *Dir, rel string) error { return d.Replace(rel, []byte("evil"), 0o644) },
	"ReplaceLazy": func(d *Dir, rel string) error { return d.ReplaceLazy(rel, []byte("evil"), 0o644) },
	"ReadDir":     func(d *Dir, rel string) error { _, err := d.ReadDir(rel); return err },
}

func TestLinksAreRefusedInEveryPlace(t *testing.T) {
	links := map[string]string{ // name → target below the outside directory; "" is dangling
		"file": "secret", "dir": ".", "dangling": "not-there",
	}
	for name, op := range operations {
		t.Run(name, func(t *testing.T) {
			d, outside := open(t)
			must(t, os.MkdirAll(d.join("real"), 0o755))
			for link, target := range links {
				must(t, os.Symlink(filepath.Join(outside, target), d.join(link)))
				must(t, os.Symlink(filepath.Join(outside, target), d.join("real/"+link)))
			}
			must(t, os.Symlink("../in/real", d.join("inward"))) // stays below, refused all the same
			before := descriptors(t)
			for _, rel := range []string{
				"file", "dangling", "real/file", "real/dangling", // last component
				"dir/secret", "dir/new", "real/dir/secret", "real/dir/sub/new", "inward/x", // one before
				"dir/sub", "real/dir/sub",
			} {
				if err := op(d, rel); err == nil {
					t.Errorf("%s(%q) succeeded", name, rel)
				} else if k := errdefs.KindOf(err); k != errdefs.Invalid && k != errdefs.Exists {
					t.Errorf("%s(%q): kind %s, %v", name, rel, k, err)
				}
			}
			if after := descriptors(t); after != before {
				t.Errorf("%d descriptors open, %d before", after, before)
			}
			untouched(t, outside)
			noTemp(t, d)
		})
	}
}

func TestRemovingTakesTheLinkNotItsTarget(t *testing.T) {
	d, outside := open(t)
	must(t, os.Mkdir(d.join("tree"), 0o755))
	must(t, os.Symlink(outside, d.join("tree/dir")))
	must(t, os.Symlink(outside+"/secret", d.join("tree/file")))
	must(t, os.Symlink(outside, d.join("dir")))
	if err := d.RemoveAll("dir/sub"); errdefs.KindOf(err) != errdefs.Invalid {
		t.Errorf("RemoveAll through a link: %v", err)
	}
	if err := d.Remove("dir/sub"); errdefs.KindOf(err) != errdefs.Invalid {
		t.Errorf("Remove through a link: %v", err)
	}
	must(t, d.RemoveAll("tree"))
	must(t, d.RemoveAll("dir"))
	must(t, d.RemoveAll("not-there"))
	must(t, d.RemoveAll("not/there"))
	untouched(t, outside)
	if list, err := d.ReadDir("."); err != nil || len(list) != 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}

func TestPathsThatLeadOut(t *testing.T) {
	d, outside := open(t)
	for name, op := range operations {
		for _, rel := range []string{"", "/etc/passwd", outside + "/secret", "..", "../out/secret", "a/../../out/secret", "./x", "a//b", "a/", "x\x00y"} {
			if name == "MkdirAll" && rel == "" {
				continue // is "/new/deep" there: absolute, covered by the others
			}
			if err := op(d, rel); errdefs.KindOf(err) != errdefs.Invalid {
				t.Errorf("%s(%q): %v", name, rel, err)
			}
		}
	}
	for _, op := range []func(string) error{d.Remove, d.RemoveAll} {
		for _, rel := range []string{"", ".", "..", "../out", "/"} {
			if err := op(rel); errdefs.KindOf(err) != errdefs.Invalid {
				t.Errorf("remove %q: %v", rel, err)
			}
		}
	}
	untouched(t, outside)
}

func TestOnlyRegularFiles(t *testing.T) {
	d, _ := open(t)
	must(t, unix.Mkfifo(d.join("fifo"), 0o600))
	must(t, os.Mkdir(d.join("dir"), 0o700))
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err)
	defer unix.Close(fd)
	must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: shortPath(t, d, "sock")}))
	for _, rel := range []string{"fifo", "dir", "sock"} {
		for _, name := range []string{"Open", "OpenAppend", "Create", "ReadFile", "Replace", "ReplaceLazy"} {
			if err := operations[name](d, rel); err == nil {
				t.Errorf("%s(%q) succeeded", name, rel)
			}
		}
		if _, err := d.Lstat(rel); err != nil {
			t.Errorf("Lstat(%q): %v", rel, err)
		}
	}
	if _, err := d.ReadFile("fifo", 10); err == nil || !strings.Contains(err.Error(), "FIFO") {
		t.Errorf("reading a FIFO: %v", err)
	}
	if list, err := d.ReadDir("."); err != nil || len(list) != 3 {
		t.Errorf("listing: %v, %v", list, err)
	}
	noTemp(t, d)
	must(t, d.RemoveAll("fifo"))
}

// shortPath is a path of an entry of d that fits a socket address.
func shortPath(t *testing.T, d *Dir, name string) string {
	t.Helper()
	link, err := os.MkdirTemp("/tmp", "s")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(link) })
	must(t, os.Symlink(d.Path(), link+"/d"))
	return link + "/d/" + name
}

// A directory that is swapped for a link, again and again, while it is used.
func TestSwappedWhileUsed(t *testing.T) {
	d, outside := open(t)
	must(t, os.Mkdir(d.join("x"), 0o755))
	must(t, os.Symlink(outside, d.join("y")))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, d.join("x"), unix.AT_FDCWD, d.join("y"), unix.RENAME_EXCHANGE)
			}
		}
	})
	before := descriptors(t)
	for range 300 {
		d.Replace("x/secret", []byte("evil"), 0o644)
		d.ReplaceLazy("x/new", []byte("evil"), 0o644)
		if s, err := d.MkdirAll("x/a/b", 0o700); err == nil {
			s.Close()
		}
		if f, _, err := d.OpenAppend("x/secret", 0o644); err == nil {
			f.WriteString("evil")
			f.Close()
		}
		if b, err := d.ReadFile("x/secret", 100); err == nil && bytes.Equal(b, []byte("secret")) {
			t.Error("read through the link")
		}
		d.Remove("x/secret")
		d.RemoveAll("x/a")
		d.RemoveAll("x/sub")
		d.RemoveAll("x/new")
	}
	close(stop)
	wg.Wait()
	untouched(t, outside)
	noTemp(t, d)
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors open, %d before", after, before)
	}
}

func TestModesWhateverTheUmask(t *testing.T) {
	for _, mask := range []int{0o000, 0o022, 0o077} {
		func() {
			d, _ := open(t)
			defer unix.Umask(unix.Umask(mask))
			s, err := d.MkdirAll("a/b", 0o751)
			must(t, err)
			s.Close()
			must(t, d.Replace("a/replaced", nil, 0o640))
			must(t, d.ReplaceLazy("a/lazy", nil, 0o600))
			f, err := d.Create("a/created", 0o666)
			must(t, err)
			f.Close()
			f, created, err := d.OpenAppend("a/appended", 0o600)
			must(t, err)
			if !created {
				t.Error("a new file was not created")
			}
			f.Close()
			for rel, want := range map[string]uint32{"a": 0o751, "a/b": 0o751, "a/replaced": 0o640, "a/lazy": 0o600, "a/created": 0o666, "a/appended": 0o600} {
				if st, err := d.Lstat(rel); err != nil || st.Mode&0o7777 != want {
					t.Errorf("umask %03o: %s has mode %o, want %o (%v)", mask, rel, st.Mode&0o7777, want, err)
				}
			}
		}()
	}
}

// A file that can not be written in full: the size limit stands for every way a
// write can fail, and needs no rights.
func TestFailedWriteKeepsTheOldContent(t *testing.T) {
	d, _ := open(t)
	must(t, d.Replace("f", []byte("old"), 0o600))
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: old.Max}))
	defer unix.Setrlimit(unix.RLIMIT_FSIZE, &old)
	keepsOld(t, d)
}

// The same on a file system that is really full, where this process may mount
// one.
func TestFullDiskKeepsTheOldContent(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16k,mode=0700"); err != nil {
		if os.Geteuid() == 0 && !errors.Is(err, unix.EPERM) {
			t.Fatal(err)
		}
		t.Logf("no file system of our own (%v): the size limit has to do", err)
		return
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	d, err := OpenDir(dir)
	must(t, err)
	defer d.Close()
	must(t, d.Replace("f", []byte("old"), 0o600))
	keepsOld(t, d)
	must(t, d.Replace("f", []byte("new"), 0o600)) // there is space again
}

func keepsOld(t *testing.T, d *Dir) {
	t.Helper()
	for _, replace := range []func(string, []byte, fs.FileMode) error{d.Replace, d.ReplaceLazy} {
		for _, rel := range []string{"f", "g"} {
			err := replace(rel, make([]byte, 64<<10), 0o600)
			if errdefs.KindOf(err) != errdefs.NoSpace || !strings.Contains(err.Error(), d.join(rel)) {
				t.Errorf("writing %s: %v", rel, err)
			}
		}
	}
	if b, err := d.ReadFile("f", 100); err != nil || string(b) != "old" {
		t.Errorf("content %q, %v", b, err)
	}
	if list, err := d.ReadDir("."); err != nil || len(list) != 1 {
		t.Errorf("left: %v, %v", list, err)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(list)
}

func TestSweep(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{TempPrefix + "dead", "kept", ".hidden"} {
		if err := os.WriteFile(filepath.Join(path, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.Sweep()
	entries, _ := os.ReadDir(path)
	if len(entries) != 2 || entries[0].Name() != ".hidden" || entries[1].Name() != "kept" {
		t.Errorf("left: %v", entries)
	}
}
