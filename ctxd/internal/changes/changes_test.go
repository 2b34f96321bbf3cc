package changes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/wire"
	"cortexfs.org/libctx/workspace"
	"golang.org/x/sys/unix"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// place is a workspace with a past: everything in it is older than what follows.
type place struct {
	t   testing.TB
	dir string
	Tracker
}

// put makes files (with content), directories (names that end in "/"), links
// ("a -> b") and programs ("a*").
func (p *place) put(entries ...string) {
	p.t.Helper()
	for _, e := range entries {
		at, to, link := strings.Cut(e, " -> ")
		name, program := strings.CutSuffix(at, "*")
		path := filepath.Join(p.dir, name)
		if strings.HasSuffix(e, "/") {
			must(p.t, os.MkdirAll(path, 0o755))
			continue
		}
		must(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
		mode := os.FileMode(0o644)
		if program {
			mode = 0o755
		}
		if link {
			must(p.t, os.Symlink(to, path))
		} else {
			must(p.t, os.WriteFile(path, []byte("x"), mode))
		}
	}
}

func newPlace(t testing.TB, entries ...string) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	p := &place{t: t, dir: filepath.Join(dir, "ws")}
	p.put(append([]string{"/"}, entries...)...)
	p.age()
	return p
}

// age makes what is there older than a mark that is made after it. Files get
// times between two ticks of the clock that marks are read from.
func (p *place) age() {
	p.t.Helper()
	for last := newest(p.t, p.dir); read(unix.CLOCK_REALTIME_COARSE).Nanoseconds() <= last; {
	}
}

// newest is the newest change time below a directory.
func newest(t testing.TB, dir string) (last int64) {
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		last = max(last, st.Ctim.Nano())
		return err
	}))
	return last
}

func (p *place) watch() *Watch {
	p.t.Helper()
	ws, err := workspace.Resolve(p.dir, asuser.Self(), nil, workspace.Protect{Usual: true})
	must(p.t, err)
	return p.Watch(Ground{Workspace: ws, Protect: []string{"Makefile", "deploy/hooks"}, Owner: asuser.Self()})
}

// told is a result as text: one word a path, with "+" for created, "!" for listed,
// "*" for executable. Whether something is new is not known on every file system;
// without it a test says nothing of "+".
func told(c *wire.Changes) string {
	if c == nil {
		return ""
	}
	var words []string
	for _, p := range c.Paths {
		word := p.Path
		if p.Listed {
			word = "!" + word
		}
		if p.Executable {
			word += "*"
		}
		if p.Below > 0 {
			word += fmt.Sprintf("(%d)", p.Below)
		}
		words = append(words, word)
	}
	if c.More > 0 {
		words = append(words, fmt.Sprintf("and %d", c.More))
	}
	return strings.Join(append(words, c.Incomplete...), " ")
}

func TestWalk(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []string
		do     func(p *place)
		want   string
	}{
		{"nothing", []string{"a", "d/b", ".git/HEAD"}, func(*place) {}, ""},
		{"files", []string{"old", "d/old"}, func(p *place) { p.put("new", "d/new", "e/f/new", "d/old") }, "d/new d/old e e/f e/f/new new"},
		{"a program", []string{"run"}, func(p *place) { p.put("sub/tool*") }, "sub/tool* sub"},
		{"the execute bit", []string{"run", "still*"}, func(p *place) { must(p.t, os.Chmod(p.dir+"/run", 0o755)) }, "run*"},
		{"made and removed", []string{"d/x"}, func(p *place) {
			p.put("d/tmp")
			must(p.t, os.Remove(p.dir+"/d/tmp"))
		}, "d"},
		{"removed", []string{"d/x", "d/y"}, func(p *place) { must(p.t, os.Remove(p.dir+"/d/x")) }, "d"},
		{"renamed over", []string{"a", "b"}, func(p *place) { must(p.t, os.Rename(p.dir+"/a", p.dir+"/b")) }, "b"},
		{"renamed to a repository", []string{"x/config", "sub/"}, func(p *place) { must(p.t, os.Rename(p.dir+"/x", p.dir+"/sub/.git")) }, "!sub/.git . sub"},
		{"what the control names", []string{"x", "deploy/x", "sub/x"}, func(p *place) {
			p.put("Makefile", "deploy/hooks/go", "deploy/y", "sub/Makefile")
		}, "!Makefile !deploy/hooks deploy/y sub/Makefile"},
		{"at the top what was not there", []string{"x"}, func(p *place) { p.put(".envrc", ".vscode/tasks.json", "AGENTS.md") }, "!.envrc !.vscode !AGENTS.md"},
		{"nested, in place", []string{"sub/.git/config", "sub/.git/hooks/"}, func(p *place) {
			must(p.t, os.WriteFile(p.dir+"/sub/.git/config", []byte("fsmonitor"), 0o644))
			p.put("sub/.git/hooks/post-checkout*")
		}, "!sub/.git sub/.git/hooks/post-checkout*"},
		{"what is kept, by the person", []string{".git/HEAD", ".vscode/x"}, func(p *place) { p.put(".git/index.lock", ".vscode/settings.json") }, ""},
		{"what was kept, exchanged", []string{".git/HEAD", "y"}, func(p *place) {
			must(p.t, os.Rename(p.dir+"/.git", p.dir+"/old"))
			p.put(".git/HEAD")
		}, "!.git old"},
		{"a kept file by its other name", []string{".envrc"}, func(p *place) { p.put(".envrc") }, "!.envrc"},
		{"a repository by what is in it", []string{"b/"}, func(p *place) { p.put("b/r/HEAD", "b/r/objects/", "b/r/refs/", "b/r/config") }, "!b/r"},
		{"the workspace as one", nil, func(p *place) { p.put("HEAD", "objects/", "refs/", "config", "other") }, "!. other"},
		{"its parts alone", nil, func(p *place) { p.put("HEAD", "refs/heads/x") }, "HEAD refs refs/heads refs/heads/x"},
		{"links are not followed", []string{"d/x"}, func(p *place) {
			p.put("l -> d", "up -> ..", "loop -> loop")
			must(p.t, os.WriteFile(filepath.Join(p.dir, "../outside"), nil, 0o755))
		}, "l loop up"},
		{"other kinds", nil, func(p *place) { must(p.t, unix.Mkfifo(p.dir+"/fifo", 0o777)) }, "fifo"},
		{"names", nil, func(p *place) {
			p.put("a b", "bad\xff", "nl\n", "esc\x1b[2J", "\u202etxt.exe", " lead", `q"`, "日本", "sub\n/.envrc")
		}, `!"sub\n/.envrc" " lead" "\u202etxt.exe" "bad\xff" "esc\x1b[2J" "nl\n" "q\"" "sub\n" a b 日本`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, c.before...)
			w := p.watch()
			w.Before(Reach{Anything: true})
			c.do(p)
			got := told(w.End())
			if sorted(got) != sorted(c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if strings.HasPrefix(c.want, "!") && !strings.HasPrefix(got, "!") {
				t.Errorf("what is listed does not come first: %s", got)
			}
			if len(p.busy) != 0 {
				t.Error("the tracker still knows a run that is over")
			}
		})
	}
}

func sorted(words string) string {
	list := strings.Fields(words)
	slices.Sort(list)
	return strings.Join(list, " ")
}

// What a tool says it changes is looked at alone.
func TestExact(t *testing.T) {
	p := newPlace(t, "old", "sub/.vscode/settings.json", "run*", "kept")
	w := p.watch()
	for _, in := range []string{
		"/workspace/new/deep/file", "/workspace/old", "/workspace/kept", "/workspace/none/x", "/workspace/sub/.vscode/settings.json",
		"/workspace/run", "/home/agent/x", "/workspace", "/workspace/../etc/passwd", "relative", "", "/workspace/link/x", "/workspace/b/config",
	} {
		w.Before(Reach{Path: in})
	}
	p.put("new/deep/file", "old", "sub/.vscode/settings.json", "run*", "unknown", "link -> new", "b/HEAD", "b/objects/", "b/refs/", "b/config")
	c := w.End()
	if got, want := sorted(told(c)), "!b !sub/.vscode new new/deep new/deep/file old run*"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !c.Exact || c.Beside || c.Workspace != p.dir || c.Listed != 2 || c.Executable != 1 {
		t.Errorf("%+v", c)
	}
}

func TestNoProgram(t *testing.T) {
	p := newPlace(t)
	w := p.watch()
	w.Before(Reach{})
	w.Before(Reach{Path: "/etc/passwd"})
	p.put("x")
	if c := w.End(); c != nil {
		t.Errorf("%+v", c)
	}
	var none *Watch
	none.Before(Reach{Anything: true})
	if c := none.End(); c != nil {
		t.Errorf("%+v", c)
	}
}

// Runs that overlap in one workspace can not be told apart, and say so.
func TestBeside(t *testing.T) {
	p, other := newPlace(t), newPlace(t)
	a, b, c := p.watch(), p.watch(), p.watch()
	d := other.watch()
	for _, w := range []*Watch{a, b, d} {
		w.Before(Reach{Anything: true})
	}
	p.put("x")
	other.put("x")
	for w, want := range map[*Watch]bool{a: true, b: true, d: false} {
		if got := w.End(); got == nil || got.Beside != want {
			t.Errorf("%+v", got)
		}
	}
	c.Before(Reach{Anything: true})
	p.put("x")
	if got := c.End(); got == nil || got.Beside {
		t.Errorf("%+v", got)
	}
}

func TestMuch(t *testing.T) {
	p := newPlace(t)
	w := p.watch()
	w.Before(Reach{Anything: true})
	p.put("pkg/one", "pkg/two")
	for i := range 150 {
		p.put(fmt.Sprintf("node_modules/m%03d/index.js", i))
	}
	p.put("node_modules/.bin/tool*", "node_modules/x/.envrc")
	if got, want := sorted(told(w.End())), "!node_modules/x/.envrc node_modules(302) node_modules/.bin/tool* pkg pkg/one pkg/two"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	p.age()
	w = p.watch()
	w.Before(Reach{Anything: true})
	must(t, os.Mkdir(p.dir+"/flat", 0o755))
	for i := range 1500 {
		p.put(fmt.Sprintf("f%04d", i))
	}
	p.put("z*")
	c := w.End()
	if len(c.Paths) != 1000 || c.More != 502 || c.Paths[0].Path != "z" || c.Executable != 1 || c.Size() != 1502 {
		t.Errorf("%d paths and %d more, first %+v, size %d", len(c.Paths), c.More, c.Paths[0], c.Size())
	}
	if line, err := wire.MarshalFrame(c); err != nil || len(line) > 256<<10 {
		t.Errorf("%d bytes, %v", len(line), err)
	}
}

// A result that is not complete says why, also if nothing was found.
func TestIncomplete(t *testing.T) {
	p := newPlace(t, "d/x", "e/")
	for _, c := range []struct {
		name string
		do   func(w *Watch)
		want string
	}{
		{"the clock was set back", func(w *Watch) {
			w.mark.wall += time.Hour
			p.put("late")
		}, wire.ClockSet},
		{"the workspace was exchanged", func(w *Watch) {
			must(t, os.Rename(p.dir, p.dir+".old"))
			p.put("new")
		}, wire.Exchanged},
		{"it is gone", func(w *Watch) { must(t, os.RemoveAll(p.dir)) }, wire.Exchanged},
	} {
		w := p.watch()
		w.Before(Reach{Anything: true})
		c.do(w)
		got := w.End()
		if got == nil || !slices.Contains(got.Incomplete, c.want) {
			t.Errorf("%s: %+v", c.name, got)
		}
		if c.want == wire.ClockSet && !slices.ContainsFunc(got.Paths, func(p wire.Change) bool { return p.Path == "late" }) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// A directory that the owner can not read hides what is in it; that is told.
func TestClosed(t *testing.T) {
	p := newPlace(t, "d/x")
	for dir := filepath.Dir(p.dir); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	w := p.watch()
	if os.Geteuid() == 0 {
		w.ground.Owner = asuser.Identity{UID: 60001, GID: 60001}
	}
	w.Before(Reach{Anything: true})
	p.put("d/y")
	must(t, os.Chmod(p.dir+"/d", 0))
	t.Cleanup(func() { os.Chmod(p.dir+"/d", 0o755) })
	if got := told(w.End()); got != "d "+wire.Closed {
		t.Errorf("%s", got)
	}
}

func TestShow(t *testing.T) {
	for in, want := range map[string]string{".": ".", "a b": "a b", "a\nb": `"a\nb"`, "\xff": `"\xff"`, `q"`: `"q\""`, "\u200b": `"\u200b"`, "日本": "日本"} {
		if got := show(in); got != want {
			t.Errorf("%q: %s", in, got)
		}
	}
}

// spent is the processor time of this process.
func spent(b *testing.B) time.Duration {
	var u unix.Rusage
	must(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWalk is what the search adds to the end of a run.
func BenchmarkWalk(b *testing.B) {
	for _, n := range []int{100, 10_000, 199_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir, err := filepath.EvalSymlinks(b.TempDir())
			must(b, err)
			p := &place{t: b, dir: dir}
			for i := range n / 51 {
				sub := fmt.Sprintf("%s/d%02d/e%d", dir, i%50, i)
				must(b, os.MkdirAll(sub, 0o755))
				for j := range 50 {
					must(b, os.WriteFile(fmt.Sprintf("%s/f%d", sub, j), nil, 0o644))
				}
			}
			p.age()
			ws, err := workspace.Resolve(dir, asuser.Self(), nil, workspace.Protect{Usual: true})
			must(b, err)
			before, cut := spent(b), 0
			for b.Loop() {
				w := p.Watch(Ground{Workspace: ws, Owner: asuser.Self()})
				w.Before(Reach{Anything: true})
				switch c := w.End(); {
				case c == nil:
				case len(c.Paths) == 0 && slices.Equal(c.Incomplete, []string{wire.LongWalk}):
					cut++
				default:
					b.Fatalf("%+v", c)
				}
			}
			b.ReportMetric(float64((spent(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
			b.ReportMetric(float64(cut)/float64(b.N), "cut/op")
		})
	}
}

// TestCrowd: runs in one workspace that begin and end at once do not wait for one
// another.
func TestCrowd(t *testing.T) {
	p := newPlace(t)
	ws, err := workspace.Resolve(p.dir, asuser.Self(), nil, workspace.Protect{})
	must(t, err)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 50 {
				w := p.Watch(Ground{Workspace: ws, Owner: asuser.Self()})
				w.Before(Reach{Path: "/workspace/x"})
				w.End()
			}
		})
	}
	all.Wait()
	w := p.Watch(Ground{Workspace: ws, Owner: asuser.Self()})
	w.Before(Reach{Anything: true})
	p.put("x")
	if c := w.End(); c == nil || c.Beside {
		t.Errorf("alone again: %+v", c)
	}
}
