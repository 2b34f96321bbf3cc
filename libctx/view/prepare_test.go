package view

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// listing is every entry below a directory with its mode.
func listing(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if rel, _ := filepath.Rel(dir, p); rel != "." {
			all[rel] = info.Mode().String()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPrepare(t *testing.T) {
	for _, mask := range []int{0, 0o077} {
		t.Run(fmt.Sprintf("umask %03o", mask), func(t *testing.T) {
			w := newWorld(t)
			own := "home/" + uid() + "/tool"
			w.tool("tool", "fs.read", map[string]string{"effect": "workspace_read\n", "log": "x\n", "status": "idle\n", "hooks": ""})
			w.tool("tool", "shell.exec", map[string]string{"effect": "host_process\n"})
			w.tool(own, "calc", map[string]string{"effect": "pure\n"})
			w.write("tool/README", "not a tool\n", 0o644)
			w.control("coder", map[string]string{"pid": "1\n", "meta.json": "{}\n", "unknown": "x"})
			a := w.load()

			defer unix.Umask(unix.Umask(mask))
			p := w.prepare(a)
			const dir, exec, text = "drwxr-xr-x", "-r-xr-xr-x", "-r--r--r--"
			want := map[string]string{
				"status": text, "bin": dir, "bin/ctxtool": exec, "bin/tsh": exec, "bin/ctxterm": exec, "model": dir, "shared": dir,
				"agent": dir, "agent/coder": exec, "agent/coder.d": dir, "agent/coder.d/abi": text, "agent/coder.d/owner": text,
				"agent/coder.d/perm": text, "agent/coder.d/policy": text, "agent/coder.d/system.md": text,
				"home": dir, "home/" + uid(): dir, own: dir,
				"tool": dir, "tool/calc": exec, "tool/calc.d": dir, "tool/calc.d/description": text, "tool/calc.d/effect": text,
				"tool/calc.d/mode": text, "tool/calc.d/schema": text,
				"tool/fs.read": exec, "tool/fs.read.d": dir, "tool/fs.read.d/effect": text,
			}
			if diff := cmp.Diff(want, listing(t, p.Dir)); diff != "" {
				t.Error(diff)
			}
			if w.content(p, "status") != "ok\n" || w.content(p, "agent/coder") != "#!/bin/sh\n" || w.content(p, "agent/coder.d/system.md") != "You code." {
				t.Error("a copy differs from its source")
			}
			q, err := a.Prepare(w.Layout, false)
			w.ok(err)
			defer q.Release()
			if _, err := os.Lstat(q.Dir + "/agent/coder"); err == nil || q.Dir == p.Dir {
				t.Error("the executable is in a view without it")
			}
		})
	}
}

// TestReuse: the same sources give the same directory, any change another one,
// and a directory goes when its last user does, unless it is the newest.
func TestReuse(t *testing.T) {
	w := newWorld(t)
	prepare := func() *Prepared {
		t.Helper()
		p, err := w.load().Prepare(w.Layout, true)
		w.ok(err)
		return p
	}
	first := prepare()
	w.control("coder", map[string]string{"status": "busy\n", "log": "a line\n"})
	w.write("tool/calc.d/log", "a line\n", 0o644)
	again := prepare()
	if again.Dir != first.Dir {
		t.Error("what the runtime writes while it runs made a new view")
	}
	again.Release()
	if !exists(first.Dir) {
		t.Fatal("a view went while it was used")
	}
	last := prepare()
	for _, change := range []func(){
		func() { w.write("tool/calc.d/description", "multiplies\n", 0o644) },
		func() { w.write("tool/calc", "#!/bin/sh\necho other\n", 0o755) },
		func() { w.ok(os.Chmod(w.path("tool/calc"), 0o700)) },
		func() { w.tool("tool", "fs.read", map[string]string{"effect": "pure\n"}) },
		func() { w.control("coder", map[string]string{"system.md": "You write."}) },
		func() { w.control("coder", map[string]string{"perm": "---\n"}) },
		func() { w.write("agent/coder", "#!/bin/false\n", 0o755) },
	} {
		change()
		next := prepare()
		if next.Dir == last.Dir {
			t.Error("a change made no new view")
		}
		last.Release()
		last.Release() // once more does nothing
		if exists(last.Dir) && last.Dir != first.Dir {
			t.Error("a stale view that nobody uses is still there")
		}
		last = next
	}
	if !exists(first.Dir) {
		t.Fatal("a view went while it was used")
	}
	first.Release()
	last.Release()
	left, _ := os.ReadDir(w.View("coder"))
	locks, _ := os.ReadDir(w.Locks)
	if len(left) != 1 || len(locks) != 1 || !exists(last.Dir) {
		t.Errorf("left are %d views and %d locks, want the newest", len(left), len(locks))
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// forget makes this process one that has prepared nothing yet, as after a
// restart; the locks of the old one are gone with it.
func forget() {
	views.Lock()
	defer views.Unlock()
	for _, v := range views.all {
		v.lock.Close()
	}
	views.all, views.swept = map[string]*shared{}, map[string]bool{}
}

// TestLeftovers: what a dead process left is removed, what a living one uses is
// not, and an unchanged view is taken over.
func TestLeftovers(t *testing.T) {
	w := newWorld(t)
	a := w.load()
	p := w.prepare(a)
	for _, name := range []string{"00dead", "00dead.0123", "00used", "00half.4567"} {
		w.dir(".view/coder/" + name)
		w.write(".view/coder/"+name+"/tool/x", "", 0o444)
	}
	forget()
	used, err := lockView(w.Layout, "coder", "00used")
	w.ok(err)
	defer used.Close()

	before, err := os.Stat(p.Dir)
	w.ok(err)
	q := w.prepare(a)
	after, err := os.Stat(q.Dir)
	w.ok(err)
	if !os.SameFile(before, after) {
		t.Error("the unchanged view of an earlier process was not taken over")
	}
	var left []string
	for name := range listing(t, w.View("coder")) {
		if !strings.Contains(name, "/") {
			left = append(left, name)
		}
	}
	if len(left) != 2 || !exists(w.View("coder")+"/00used") {
		t.Errorf("left are %q, want the used one and ours", left)
	}
}

// TestLosingTheRace: another process may have built the same view in between.
func TestLosingTheRace(t *testing.T) {
	w := newWorld(t)
	a := w.load()
	p := w.prepare(a)
	moved := w.path("moved")
	w.ok(os.Rename(p.Dir, moved))
	var wg sync.WaitGroup
	for range 8 { // eight processes would do what eight calls of build do
		wg.Go(func() {
			base, err := a.base(w.Layout)
			if err != nil {
				t.Error(err)
				return
			}
			defer base.Close()
			root := w.root()
			defer root.Close()
			src, err := a.scan(w.Layout, root, true, nil)
			if err == nil {
				err = a.build(w.Layout, root, base, src)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(listing(t, moved), listing(t, p.Dir)); diff != "" {
		t.Error(diff)
	}
	if all, _ := os.ReadDir(w.View("coder")); len(all) != 1 {
		t.Errorf("%d entries are left in the directory of views", len(all))
	}
}

// TestConcurrent prepares and releases while the tool is replaced all the time:
// every view is whole, and all but the newest are gone at the end.
func TestConcurrent(t *testing.T) {
	w := newWorld(t)
	w.write("tool/calc", "#!/bin/sh\nz\n", 0o755)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			text := fmt.Sprintf("#!/bin/sh\n%s\n", strings.Repeat(string(rune('a'+i%26)), 5000))
			os.WriteFile(w.path("next"), []byte(text), 0o755)
			os.Rename(w.path("next"), w.path("tool/calc"))
		}
	}()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				a, err := Load(w.Layout, "coder")
				if err != nil {
					t.Error(err)
					return
				}
				tool, err := a.Lookup(w.Layout, "calc")
				if err != nil {
					t.Error(err)
					return
				}
				p, err := a.Prepare(w.Layout, true, tool)
				tool.Close()
				if errdefs.Is(err, errdefs.Busy) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				b, err := os.ReadFile(p.Dir + "/tool/calc")
				body := strings.TrimPrefix(string(b), "#!/bin/sh\n")
				if err != nil || body == "" || strings.Trim(body, body[:1]) != "\n" {
					t.Errorf("%.40q, %v", b, err)
				}
				p.Release()
			}
		})
	}
	wg.Wait()
	close(stop)
	<-done
	if all, _ := os.ReadDir(w.View("coder")); len(all) != 1 {
		t.Errorf("%d views are left, want the newest", len(all))
	}
}

// TestDecoy: prepared directories are used only if nobody else made them or can
// write to them.
func TestDecoy(t *testing.T) {
	attacks := map[string]func(w *world){
		"the directory of views is a link": func(w *world) {
			w.dir("decoy")
			w.ok(os.Symlink("decoy", w.path(".view")))
		},
		"the agent's is a link": func(w *world) {
			w.dir("decoy")
			w.dir(".view")
			w.ok(os.Symlink("../decoy", w.path(".view/coder")))
		},
		"the directory of views is a file": func(w *world) { w.write(".view", "", 0o644) },
		"the directory of views is loose":  func(w *world) { w.dir(".view"); w.ok(os.Chmod(w.path(".view"), 0o777)) },
		"the agent's is loose":             func(w *world) { w.dir(".view/coder"); w.ok(os.Chmod(w.path(".view/coder"), 0o770)) },
		"the view is a link": func(w *world) {
			p := w.prepare(w.load())
			forget()
			w.ok(os.Rename(p.Dir, w.path("decoy")))
			w.ok(os.Symlink(w.path("decoy"), p.Dir))
		},
	}
	if isRoot() {
		attacks["the directory of views is another's"] = func(w *world) { w.dir(".view"); w.give(".view", stranger) }
		attacks["the agent's is another's"] = func(w *world) { w.dir(".view/coder"); w.give(".view/coder", stranger) }
		attacks["the view is another's"] = func(w *world) {
			p := w.prepare(w.load())
			forget()
			w.give(strings.TrimPrefix(p.Dir, w.Root+"/"), stranger)
		}
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			attack(w)
			p, err := w.load().Prepare(w.Layout, true)
			if !errdefs.Is(err, errdefs.Denied) || !strings.Contains(err.Error(), ".view") {
				t.Errorf("Prepare: %+v, %v, want a refusal that names the directory", p, err)
			}
		})
	}
}

// TestSystemMode: the agent's group, and nobody else, reaches the view.
func TestSystemMode(t *testing.T) {
	w := newWorld(t)
	if !isRoot() {
		p := w.prepare(w.load())
		for _, dir := range []string{w.Views, filepath.Dir(p.Dir)} {
			if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v, %v", dir, st.Mode(), err)
			}
		}
		return
	}
	w.control("coder", map[string]string{"owner": "60001\n", "gid": "60001\n"})
	a := w.load()
	p := w.prepare(a)
	read := func() error { _, err := os.ReadFile(p.Dir + "/tool/calc"); return err }
	if err := a.Owner.Do(read); err != nil {
		t.Errorf("the agent: %v", err)
	}
	w.as(friend, func() error {
		if read() == nil {
			return fmt.Errorf("another user reads the view of an agent")
		}
		return nil
	})
	if err := a.Owner.Do(func() error { return os.WriteFile(p.Dir+"/tool/evil", nil, 0o755) }); err == nil {
		t.Error("the agent's user can write into its view")
	}
	// The group follows the agent's.
	w.control("coder", map[string]string{"gid": "60002\n"})
	q := w.prepare(w.load())
	var st unix.Stat_t
	w.ok(unix.Stat(filepath.Dir(q.Dir), &st))
	if st.Uid != 0 || st.Gid != 60002 || st.Mode&0o7777 != 0o750 {
		t.Errorf("uid %d gid %d mode %o", st.Uid, st.Gid, st.Mode)
	}
}

func TestLimits(t *testing.T) {
	w := newWorld(t)
	w.ok(os.Truncate(w.path("tool/calc"), libctx.MaxToolFile+1))
	a := w.load()
	if d := w.decide(a, "calc"); d.Allowed || !strings.Contains(d.Reason, "/ctx/tool/calc: is longer than") {
		t.Errorf("%+v", d)
	}
	if exists(w.prepare(a).Dir + "/tool/calc") {
		t.Error("a tool over the limit is in the view")
	}
	for i := range libctx.MaxToolDir + 1 {
		w.ok(os.Symlink("nowhere", w.path(fmt.Sprintf("tool/x%d", i))))
	}
	if _, err := a.Prepare(w.Layout, true); !errdefs.Is(err, errdefs.TooBig) || !strings.Contains(err.Error(), "tool: has more than") {
		t.Errorf("Prepare: %v", err)
	}
}

func BenchmarkPrepareUnchanged(b *testing.B) {
	w := newWorld(b)
	var rules strings.Builder
	for i := range 10 {
		name := fmt.Sprintf("tool%d", i)
		w.tool("tool", name, map[string]string{
			"name": name + "\n", "description": "does\n", "schema": "{}\n", "effect": "pure\n", "mode": "json\n", "parallel": "1\n", "replay": "safe\n",
		})
		fmt.Fprintf(&rules, "allow coder_t tool:%s execute\n", name)
	}
	w.control("coder", map[string]string{"policy": rules.String()})
	a := w.load()
	w.prepare(a)
	for b.Loop() {
		p, err := a.Prepare(w.Layout, true)
		if err != nil {
			b.Fatal(err)
		}
		p.Release()
	}
}

func BenchmarkLookup(b *testing.B) {
	w := newWorld(b)
	a := w.load()
	for b.Loop() {
		t, err := a.Lookup(w.Layout, "calc")
		if err != nil {
			b.Fatal(err)
		}
		t.Close()
	}
}
