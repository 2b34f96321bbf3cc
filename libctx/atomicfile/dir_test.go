package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestReplaceAndRead(t *testing.T) {
	d, _ := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b.json", "-dash", "with space", "new\nline", "ü"}).Draw(rt, "name")
		data := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(rt, "data")
		replace := d.Replace
		if rapid.Bool().Draw(rt, "lazy") {
			replace = d.ReplaceLazy
		}
		if err := replace(name, data, 0o600); err != nil {
			rt.Fatal(err)
		}
		got, err := d.ReadFile(name, int64(len(data)))
		if err != nil || string(got) != string(data) {
			rt.Fatalf("%d bytes, %v", len(got), err)
		}
		if len(data) > 0 {
			if _, err := d.ReadFile(name, int64(len(data))-1); errdefs.KindOf(err) != errdefs.TooBig {
				rt.Fatalf("one byte too many: %v", err)
			}
		}
	})
	noTemp(t, d)
}

// Readers beside a writer see whole contents only.
func TestReadersSeeOldOrNew(t *testing.T) {
	d, _ := open(t)
	contents := []string{strings.Repeat("a", 20_000), strings.Repeat("b", 300)}
	must(t, d.ReplaceLazy("f", []byte(contents[0]), 0o600))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				b, err := d.ReadFile("f", 1<<20)
				if err != nil || string(b) != contents[0] && string(b) != contents[1] {
					t.Errorf("%d bytes, %v", len(b), err)
					return
				}
			}
		})
	}
	for i := range 300 {
		must(t, d.ReplaceLazy("f", []byte(contents[i%2]), 0o600))
	}
	close(stop)
	wg.Wait()
}

func TestOpenAppend(t *testing.T) {
	d, _ := open(t)
	for i, want := range []bool{true, false, false} {
		f, created, err := d.OpenAppend("log", 0o600)
		must(t, err)
		if created != want {
			t.Errorf("open %d: created %v", i, created)
		}
		_, err = f.WriteString("x")
		must(t, err)
		must(t, f.Close())
	}
	if b, err := d.ReadFile("log", 10); err != nil || string(b) != "xxx" {
		t.Errorf("%q, %v", b, err)
	}
	if _, _, err := d.OpenAppend("no/such", 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

func TestConcurrentMkdirAll(t *testing.T) {
	d, _ := open(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := d.MkdirAll("a/b/c/d", 0o700)
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	wg.Wait()
	must(t, d.Replace("a/file", nil, 0o600))
	if _, err := d.MkdirAll("a/file/x", 0o700); err == nil {
		t.Error("made a directory below a file")
	}
}

func TestRemove(t *testing.T) {
	d, _ := open(t)
	s, err := d.MkdirAll("a/b", 0o700)
	must(t, err)
	must(t, s.Replace("f", nil, 0o600))
	must(t, s.Close())
	if err := d.Remove("a"); err == nil {
		t.Error("removed a directory that holds something")
	}
	must(t, d.Remove("a/b/f"))
	must(t, d.Remove("a/b"))
	if err := d.Remove("a/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed twice: %v", err)
	}
}

func TestRemoveAllOfReadOnlyDirectories(t *testing.T) {
	d, _ := open(t)
	deep := strings.TrimSuffix(strings.Repeat("d/", 60), "/")
	s, err := d.MkdirAll("v/"+deep, 0o700)
	must(t, err)
	must(t, s.Replace("f", []byte("x"), 0o444))
	must(t, s.Close())
	must(t, filepath.WalkDir(d.join("v"), func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(p, 0o555)
		}
		return err
	}))
	must(t, d.RemoveAll("v"))
	if _, err := d.Lstat("v"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

func TestReadDir(t *testing.T) {
	d, outside := open(t)
	must(t, os.Mkdir(d.join("dir"), 0o711))
	must(t, os.WriteFile(d.join("file"), []byte("abc"), 0o600))
	must(t, os.Symlink(outside+"/secret", d.join("link")))
	must(t, unix.Mkfifo(d.join("pipe"), 0o600))
	list, err := d.ReadDir(".")
	must(t, err)
	var got []string
	for _, e := range list {
		info, err := e.Info()
		must(t, err)
		if _, ok := info.Sys().(unix.Stat_t); !ok || info.ModTime().IsZero() || info.Name() != e.Name() || info.IsDir() != e.IsDir() {
			t.Errorf("%s: incomplete", e.Name())
		}
		want, err := os.Lstat(d.join(e.Name()))
		must(t, err)
		if info.Mode() != want.Mode() || info.Size() != want.Size() {
			t.Errorf("%s: %v %d, want %v %d", e.Name(), info.Mode(), info.Size(), want.Mode(), want.Size())
		}
		got = append(got, e.Name())
	}
	if s := strings.Join(got, " "); s != "dir file link pipe" {
		t.Errorf("listed %s", s)
	}
	if _, err := d.ReadDir("file"); err == nil {
		t.Error("listed a file")
	}
}

func TestDescriptorsCloseOnExec(t *testing.T) {
	d, _ := open(t)
	f, err := d.Create("f", 0o600)
	must(t, err)
	defer f.Close()
	s, err := d.Sub(".")
	must(t, err)
	defer s.Close()
	g, err := d.Open("f")
	must(t, err)
	defer g.Close()
	for _, fd := range []int{d.FD(), s.FD(), int(f.Fd()), int(g.Fd())} {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d: flags %x, %v", fd, flags, err)
		}
	}
}

func TestOpenDir(t *testing.T) {
	d, outside := open(t)
	if _, err := OpenDir(d.join("none")); errdefs.KindOf(err) != errdefs.NotFound {
		t.Errorf("missing: %v", err)
	}
	if _, err := OpenDir(outside + "/secret"); err == nil {
		t.Error("opened a file as a directory")
	}
	must(t, os.Symlink(outside, d.join("l")))
	l, err := OpenDir(d.join("l")) // the path itself is trusted
	must(t, err)
	must(t, l.Close())
}
