package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/termwire"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func must(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// begin opens a journal in a directory; that its disk fails is a failure.
func begin(t failer, dir string, fileBytes int64, files int) *Journal {
	t.Helper()
	d, err := os.Open(dir)
	must(t, err)
	defer d.Close() // the journal has its own
	j, err := open(d, fileBytes, files, func(err error) { panic(err) })
	must(t, err)
	return j
}

// events reads all that is recorded; damage is a failure.
func events(t failer, dir string) []terminal.Event {
	t.Helper()
	d, err := atomicfile.OpenDir(dir)
	must(t, err)
	defer d.Close()
	e, err := terminal.OpenEvents(d)
	must(t, err)
	defer e.Close()
	var all []terminal.Event
	for {
		event, err := e.Next()
		if err == io.EOF {
			return all
		}
		must(t, err)
		all = append(all, event)
	}
}

// output is the output of events.
func output(all []terminal.Event) string {
	var b strings.Builder
	for _, e := range all {
		b.Write(e.Data)
	}
	return b.String()
}

func TestJournal(t *testing.T) {
	dir := t.TempDir()
	before := time.Now().Truncate(time.Millisecond)
	j := begin(t, dir, libctx.TermEventFile, libctx.TermEventFiles)
	j.Resize(termwire.Size{Cols: 80, Rows: 24})
	for _, b := range []byte("hello\r\n\xff\x00") {
		j.Output([]byte{b})
	}
	must(t, j.Policy(jsontext.Value(`{"name":"fs.read","allowed":false}`)))
	j.Output([]byte("more"))
	j.Exit(143)
	must(t, j.Close())
	j.Output([]byte("too late"))
	j.Exit(1)
	must(t, j.Close())

	all := events(t, dir)
	var types []string
	for i, e := range all {
		types = append(types, e.Type)
		if e.Seq != uint64(i+1) || e.Time.Before(before) || e.Time.After(time.Now()) {
			t.Errorf("event %d: number %d at %v", i+1, e.Seq, e.Time)
		}
	}
	types = slices.Compact(types) // output is one event, or more on a slow machine
	if want := []string{"resize", "pty.output", "tsh.policy", "pty.output", "process.exit"}; !slices.Equal(types, want) {
		t.Errorf("events %v", types)
	}
	if got := output(all); got != "hello\r\n\xff\x00more" {
		t.Errorf("output %q", got)
	}
	if first, last := all[0], all[len(all)-1]; first.Size != (termwire.Size{Cols: 80, Rows: 24}) || last.ExitCode != 143 {
		t.Errorf("%+v, %+v", first, last)
	}
	st, err := os.Stat(filepath.Join(dir, "events.jsonl"))
	must(t, err)
	if st.Mode() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}
}

func TestPolicyIsChecked(t *testing.T) {
	dir := t.TempDir()
	j := begin(t, dir, libctx.TermEventFile, libctx.TermEventFiles)
	for text, kind := range map[string]errdefs.Kind{
		`[]`: errdefs.Invalid, `{`: errdefs.Invalid, `{"seq":1}`: errdefs.Invalid,
		`{"a":"` + strings.Repeat("x", libctx.MaxTermEvent) + `"}`: errdefs.TooBig,
	} {
		if err := j.Policy(jsontext.Value(text)); !errdefs.Is(err, kind) {
			t.Errorf("%.20s: %v", text, err)
		}
	}
	must(t, j.Close())
	if all := events(t, dir); len(all) > 0 {
		t.Errorf("recorded %v", all)
	}
}

// Whatever is handed over arrives, in its order, in files and records that are
// not too large, over restarts.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "journal")
		must(t, err)
		defer os.RemoveAll(dir)
		const fileBytes, files = 1200 << 10, libctx.TermEventFiles
		var want []string
		for range rapid.IntRange(1, 3).Draw(t, "starts") {
			j := begin(t, dir, fileBytes, files)
			for i := range rapid.IntRange(0, 15).Draw(t, "events") {
				switch rapid.IntRange(0, 5).Draw(t, "kind") {
				case 0:
					j.Resize(termwire.Size{Cols: i + 1, Rows: 24})
					want = append(want, fmt.Sprintf("resize %d", i+1))
				case 1:
					j.Exit(i)
					want = append(want, fmt.Sprintf("exit %d", i))
				default:
					data := bytes.Repeat([]byte{byte('a' + i)}, rapid.SampledFrom([]int{1, 3, 1000, libctx.MaxTermRecord, 2*libctx.MaxTermRecord + 1}).Draw(t, "size"))
					j.Output(data)
					if n := len(want); n > 0 && strings.HasPrefix(want[n-1], "output ") {
						want[n-1] += string(data)
					} else {
						want = append(want, "output "+string(data))
					}
					clear(data) // the journal has its own
				}
			}
			must(t, j.Close())
		}
		var got []string
		for i, e := range events(t, dir) {
			if e.Seq != uint64(i+1) || len(e.Data) > libctx.MaxTermRecord {
				t.Fatalf("event %d has number %d and %d bytes", i+1, e.Seq, len(e.Data))
			}
			switch n := len(got); {
			case e.Type == terminal.EventResize:
				got = append(got, fmt.Sprintf("resize %d", e.Size.Cols))
			case e.Type == terminal.EventExit:
				got = append(got, fmt.Sprintf("exit %d", e.ExitCode))
			case n > 0 && strings.HasPrefix(got[n-1], "output "):
				got[n-1] += string(e.Data)
			default:
				got = append(got, "output "+string(e.Data))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d events, not %d", len(got), len(want))
		}
		for _, st := range list(t, dir) {
			if st.size > fileBytes {
				t.Fatalf("%s has %d bytes", st.name, st.size)
			}
		}
	})
}

type entry struct {
	name string
	size int64
}

func list(t failer, dir string) (all []entry) {
	t.Helper()
	found, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range found {
		st, err := f.Info()
		must(t, err)
		all = append(all, entry{f.Name(), st.Size()})
	}
	return all
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	const fileBytes, files = 10_000, 4
	j := begin(t, dir, fileBytes, files)
	for i := range 40 {
		j.Resize(termwire.Size{Cols: 80, Rows: 24})
		j.Output(bytes.Repeat([]byte{byte(i)}, 1500))
	}
	must(t, j.Close())
	var names []string
	total := int64(0)
	for _, f := range list(t, dir) {
		names, total = append(names, f.name), total+f.size
	}
	if want := []string{"events.1.jsonl", "events.2.jsonl", "events.3.jsonl", "events.jsonl"}; !slices.Equal(names, want) || total > fileBytes*files {
		t.Fatalf("%v, %d bytes", names, total)
	}
	all := events(t, dir)
	for i, e := range all {
		if e.Seq != all[0].Seq+uint64(i) {
			t.Fatalf("event %d is number %d", i, e.Seq)
		}
	}
	if last := all[len(all)-1]; last.Seq != 80 || len(last.Data) != 1500 || last.Data[0] != 39 || all[0].Seq == 1 {
		t.Errorf("%d to %d", all[0].Seq, last.Seq)
	}
}

// A journal that goes on after a process that died anywhere in a line, or in the
// middle of a rotation, goes on with the next number.
func TestTornTails(t *testing.T) {
	dir := t.TempDir()
	newest := filepath.Join(dir, "events.jsonl")
	j := begin(t, dir, libctx.TermEventFile, libctx.TermEventFiles)
	for range 3 {
		j.Output([]byte("line"))
		j.Resize(termwire.Size{Cols: 80, Rows: 24})
	}
	must(t, j.Close())
	whole, err := os.ReadFile(newest)
	must(t, err)
	for n := range len(whole) + 1 {
		must(t, os.WriteFile(newest, whole[:n], 0o600))
		left := uint64(bytes.Count(whole[:n], []byte("\n")))
		j := begin(t, dir, libctx.TermEventFile, libctx.TermEventFiles)
		j.Exit(n)
		must(t, j.Close())
		all := events(t, dir)
		if last := all[len(all)-1]; uint64(len(all)) != left+1 || last.Seq != left+1 || last.ExitCode != n {
			t.Fatalf("cut at %d: %d events, the last is %+v", n, len(all), last)
		}
	}
}

func TestUnfinishedRotations(t *testing.T) {
	for _, present := range [][]int{{1}, {3}, {0, 2}, {1, 3}, {0, 1, 3}, {2, 3}} {
		dir := t.TempDir()
		seq := uint64(10)
		for _, n := range slices.Backward(present) {
			var text []byte
			for range 3 {
				seq++
				var err error
				text, err = terminal.Event{Seq: seq, Time: time.Now(), Type: terminal.EventOutput, Data: []byte("x")}.Append(text)
				must(t, err)
			}
			must(t, os.WriteFile(filepath.Join(dir, terminal.EventFile(n)), text, 0o600))
		}
		j := begin(t, dir, 500, 4)
		for i := range 20 {
			j.Exit(i)
		}
		must(t, j.Close())
		all := events(t, dir)
		for i, e := range all {
			if e.Seq != all[0].Seq+uint64(i) {
				t.Fatalf("%v: event %d is number %d after %d", present, i, e.Seq, all[0].Seq)
			}
		}
		if last := all[len(all)-1]; last.Seq != seq+20 {
			t.Errorf("%v: the last is number %d, not %d", present, last.Seq, seq+20)
		}
	}
}

// What is not ours to repair is kept, and recording goes on beside it.
func TestDamagedTail(t *testing.T) {
	dir := t.TempDir()
	j := begin(t, dir, libctx.TermEventFile, libctx.TermEventFiles)
	j.Exit(1)
	must(t, j.Close())
	newest := filepath.Join(dir, "events.jsonl")
	good, err := os.ReadFile(newest)
	must(t, err)
	for name, c := range map[string]struct {
		text    string
		rotated bool
	}{
		"zeros":              {string(good) + strings.Repeat("\x00", 5000), false},
		"another line":       {string(good) + "no event\n", false},
		"long without an LF": {strings.Repeat("x", maxTail+1), true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			newest := filepath.Join(dir, "events.jsonl")
			must(t, os.WriteFile(newest, []byte(c.text), 0o644))
			j := begin(t, dir, libctx.TermEventFile, libctx.TermEventFiles)
			j.Exit(2)
			must(t, j.Close())
			text, err := os.ReadFile(newest)
			must(t, err)
			last := bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n')
			e, err := terminal.ParseEvent(text[last+1:])
			must(t, err)
			older, err := os.ReadFile(filepath.Join(dir, "events.1.jsonl"))
			if (err == nil) != c.rotated || c.rotated && string(older) != c.text || !c.rotated && e.Seq != 2 {
				t.Errorf("number %d, %v", e.Seq, err)
			}
		})
	}
}

func TestForeignFiles(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"link":      func(p string) error { return os.Symlink("/dev/null", p) },
		"hard link": func(p string) error { return errors.Join(os.WriteFile(p+".", nil, 0o600), os.Link(p+".", p)) },
		"FIFO":      func(p string) error { return unix.Mkfifo(p, 0o600) },
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
	} {
		for _, file := range []string{"events.jsonl", "events.1.jsonl"} {
			dir := t.TempDir()
			must(t, make(filepath.Join(dir, file)))
			d, err := os.Open(dir)
			must(t, err)
			defer d.Close()
			if j, err := Open(d, nil); err == nil {
				j.Close()
				t.Errorf("%s in place of %s is taken", name, file)
			}
		}
	}
}

// fails opens a journal that is to fail, and returns what it is told.
func fails(t *testing.T, dir string, fileBytes int64) (*Journal, <-chan error) {
	t.Helper()
	d, err := os.Open(dir)
	must(t, err)
	defer d.Close()
	failed := make(chan error, 2)
	j, err := open(d, fileBytes, 4, func(err error) { failed <- err })
	must(t, err)
	return j, failed
}

// ended checks that recording has ended once, and that nothing waits for it.
func ended(t *testing.T, j *Journal, failed <-chan error) error {
	t.Helper()
	err := <-failed
	for range 100 {
		j.Output(make([]byte, libctx.MaxTermRecord))
		j.Wait()
	}
	j.Exit(0)
	if got := j.Close(); got != err {
		t.Errorf("Close: %v, not %v", got, err)
	}
	if len(failed) > 0 {
		t.Errorf("it also failed as %v", <-failed)
	}
	return err
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 5000, Max: old.Max}))
	j, failed := fails(t, dir, 1<<20)
	for range 10 {
		j.Output(make([]byte, 1000))
		j.Resize(termwire.Size{Cols: 1, Rows: 1})
	}
	err := ended(t, j, failed)
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &old))
	if !errors.Is(err, unix.EFBIG) || !strings.HasPrefix(err.Error(), "events.jsonl: ") {
		t.Errorf("%v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	must(t, err)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		t.Errorf("half a line stays: %q", text)
	}
	// When there is room again, the next start goes on.
	next := begin(t, dir, 1<<20, 4)
	next.Exit(3)
	must(t, next.Close())
	all := events(t, dir)
	if last := all[len(all)-1]; last.Seq != uint64(len(all)) || last.ExitCode != 3 {
		t.Errorf("%d events, the last is %+v", len(all), last)
	}
}

func TestDirectoryGoesAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "resource")
	must(t, os.Mkdir(dir, 0o700))
	j, failed := fails(t, dir, 2000)
	must(t, os.RemoveAll(dir))
	for range 10 {
		j.Output(make([]byte, 1000))
		j.Resize(termwire.Size{Cols: 1, Rows: 1})
	}
	if err := ended(t, j, failed); !errors.Is(err, unix.ENOENT) {
		t.Error(err)
	}
}

// A disk that is stuck holds whoever brings output, in Wait and nowhere else.
func TestSlowDisk(t *testing.T) {
	dir := t.TempDir()
	d, err := os.Open(dir)
	must(t, err)
	defer d.Close()
	s, err := openStore(d, 1<<40, 4)
	must(t, err)
	s.file.Close()
	disk, file, err := os.Pipe()
	must(t, err)
	defer disk.Close()
	s.file = file
	failed := make(chan error, 2)
	j := start(s, func(err error) { failed <- err })
	for range 3 * libctx.MaxTermUnwritten / libctx.MaxTermRecord {
		j.Output(make([]byte, libctx.MaxTermRecord))
		j.Resize(termwire.Size{Cols: 1, Rows: 1})
	}
	waited := make(chan bool)
	go func() {
		j.Wait()
		j.mu.Lock()
		defer j.mu.Unlock()
		waited <- len(j.waiting.data) < libctx.MaxTermUnwritten
	}()
	var drained sync.WaitGroup
	drained.Go(func() { io.Copy(io.Discard, disk) })
	if !<-waited {
		t.Error("Wait returned early")
	}
	if err := ended(t, j, failed); !errors.Is(err, unix.EINVAL) { // a pipe can not be synced
		t.Error(err)
	}
	drained.Wait()
}

// What a reader has opened it reads to its end, whatever is rotated away under
// it meanwhile.
func TestReadWhileRotating(t *testing.T) {
	dir := t.TempDir()
	written := 0
	write := func(n int) {
		j := begin(t, dir, 1000, 4)
		for range n {
			written++
			j.Exit(written)
		}
		must(t, j.Close())
	}
	write(40)
	d, err := atomicfile.OpenDir(dir)
	must(t, err)
	defer d.Close()
	e, err := terminal.OpenEvents(d)
	must(t, err)
	defer e.Close()
	first, err := e.Next()
	must(t, err)
	last := first.Seq
	for range 5 {
		write(40)
		for range 3 {
			event, err := e.Next()
			must(t, err)
			if event.Seq != last+1 || event.ExitCode != int(event.Seq) {
				t.Fatalf("event %d after %d", event.Seq, last)
			}
			last++
		}
	}
	for {
		event, err := e.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		if event.Seq != last+1 {
			t.Fatalf("event %d after %d", event.Seq, last)
		}
		last++
	}
	if last < 40 {
		t.Errorf("the last event is %d", last)
	}
}

func BenchmarkOutput(b *testing.B) {
	for _, size := range []int{64, 4 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			j := begin(b, b.TempDir(), libctx.TermEventFile, libctx.TermEventFiles)
			data := bytes.Repeat([]byte("x"), size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				j.Output(data)
				j.Wait()
			}
			must(b, j.Close())
		})
	}
}
