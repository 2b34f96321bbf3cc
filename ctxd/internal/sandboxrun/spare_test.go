package sandboxrun

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/sandbox"
)

func TestTransitions(t *testing.T) {
	all := []stage{preparing, waiting, taken, discarded}
	legal := [][2]stage{{preparing, waiting}, {preparing, discarded}, {waiting, taken}, {waiting, discarded}}
	for _, from := range all {
		for _, to := range all {
			ctx, end := context.WithCancel(context.Background())
			sp := &spare{at: from, ctx: ctx, end: end, settled: make(chan struct{})}
			want := slices.Contains(legal, [2]stage{from, to})
			if got := sp.to(to); got != want {
				t.Errorf("from %d to %d: %v", from, to, got)
			}
			if over := ctx.Err() != nil; over != (want && to != waiting) {
				t.Errorf("from %d to %d: its context is over: %v", from, to, over)
			}
			end()
		}
	}
}

// TestTakenOnce: of many who want a spare one gets it.
func TestTakenOnce(t *testing.T) {
	for range 200 {
		ctx, end := context.WithCancel(context.Background())
		sp := &spare{at: waiting, ctx: ctx, end: end}
		var all sync.WaitGroup
		won := make(chan stage, 8)
		for i := range 8 {
			all.Go(func() {
				if to := []stage{taken, discarded}[i%2]; sp.to(to) {
					won <- to
				}
			})
		}
		all.Wait()
		if len(won) != 1 || <-won != sp.at {
			t.Fatal("more than one")
		}
	}
}

// spare waits until a sandbox is prepared and returns it, or nil if none is.
func (l *Launcher) spare() *spare {
	l.spares.mu.Lock()
	sp := l.spares.next
	l.spares.mu.Unlock()
	if sp == nil {
		return nil
	}
	<-sp.settled
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if sp.at != waiting {
		return nil
	}
	return sp
}

// prepared runs something once, and returns the first process of the sandbox
// that is prepared then.
func (w *world) prepared(s sandbox.Spec) procid.ID {
	w.t.Helper()
	s.Argv, s.Cwd, s.Env = []string{"/bin/true"}, "", nil
	w.run(s, "")
	sp := w.l.spare()
	if sp == nil { // something else was needed before
		w.run(s, "")
		sp = w.l.spare()
	}
	if sp == nil {
		w.t.Fatal("nothing was prepared")
	}
	return sp.launch.id
}

// first runs a spec and returns its first process, its output and its error.
func (w *world) first(s sandbox.Spec) (id procid.ID, out string, err error) {
	w.t.Helper()
	var b bytes.Buffer
	_, err = w.l.Run(context.Background(), s, Stdio{Stdout: &b, Stderr: &b, Started: func(first procid.ID) error { id = first; return nil }})
	return id, b.String(), err
}

func TestSpareIsTaken(t *testing.T) {
	w := newWorld(t)
	was := w.prepared(w.spec())
	for i := range 4 {
		s := w.spec("/bin/sh", "-c", `pwd; echo "$A $0"; cat; ls /tmp; touch /tmp/mark`, fmt.Sprint("arg", i))
		s.Env = append(s.Env, fmt.Sprint("A=", i))
		s.Cwd = "/home/agent"
		var out bytes.Buffer
		var id procid.ID
		_, err := w.l.Run(context.Background(), s, Stdio{
			Stdin: []byte("in\n"), Stdout: &out, Started: func(first procid.ID) error { id = first; return nil }})
		if want := fmt.Sprintf("/home/agent\n%d arg%d\nin\n", i, i); err != nil || out.String() != want {
			t.Errorf("%v, output %q", err, out.String())
		}
		if id != was {
			t.Errorf("call %d ran in %v, prepared was %v", i, id, was)
		}
		gone(t, id)
		if sp := w.l.spare(); sp == nil {
			t.Fatalf("nothing was prepared after call %d", i)
		} else if was = sp.launch.id; was == id {
			t.Fatal("a sandbox is prepared that served a call")
		}
	}
	// A tool that is refused inside has spent its sandbox too.
	if id, _, err := w.first(w.spec("/no/such")); !errdefs.Is(err, errdefs.NotFound) || id != was || id.Alive() {
		t.Errorf("%v in %v, prepared was %v", err, id, was)
	}
}

// TestOnlyItsLikeTakesASpare changes every member of a spec. Members that a
// request carries may differ, all others may not; one that comes new must be
// named here.
func TestOnlyItsLikeTakesASpare(t *testing.T) {
	w := newWorld(t)
	w.mkdir(filepath.Join(w.dir, "data"))
	w.mkdir(filepath.Join(w.dir, "view2"))
	w.mkdir(filepath.Join(w.dir, "view2/bin"))
	w.write(filepath.Join(w.dir, "view2/bin/ctxtool"), "")
	w.mkdir(filepath.Join(w.dir, "home2"))
	w.mkdir(filepath.Join(w.dir, "home2/session"))
	w.write(filepath.Join(w.ws, "file"), "")
	w.write(filepath.Join(w.dir, "socket"), "")
	other := asuser.Identity{UID: w.id.UID, GID: w.id.GID}
	if len(w.id.Groups) == 0 {
		other.Groups = []uint32{w.id.GID}
	}
	carried := map[string]func(*sandbox.Spec){
		"Kind": func(s *sandbox.Spec) { s.Kind = sandbox.Agent },
		"Env":  func(s *sandbox.Spec) { s.Env = []string{"B=2"} },
		"Cwd":  func(s *sandbox.Spec) { s.Cwd = "/tmp" },
		"Argv": func(s *sandbox.Spec) { s.Argv = []string{"/bin/echo", "hello"} },
	}
	fixed := map[string]func(*sandbox.Spec){
		"Identity": func(s *sandbox.Spec) { s.Identity = other },
		"UserName": func(s *sandbox.Spec) { s.UserName = "ann" },
		"View":     func(s *sandbox.Spec) { s.View = filepath.Join(w.dir, "view2") },
		"Tools":    func(s *sandbox.Spec) { s.Tools = filepath.Join(filepath.Dir(tool), "again") },
		"Tsh":      func(s *sandbox.Spec) { s.Tsh = tool },
		"Ctxterm":  func(s *sandbox.Spec) { s.Ctxterm = tool },
		"Home":     func(s *sandbox.Spec) { s.Home = filepath.Join(w.dir, "home2") },
		"Workspace": func(s *sandbox.Spec) {
			s.Workspace.ReadOnly = []sandbox.Bind{{Source: w.ws + "/file", Target: "/workspace/file", Dev: s.Workspace.Dev, Ino: inode(t, w.ws+"/file")}}
		},
		"Mounts":  func(s *sandbox.Spec) { s.Mounts = mount.Table{{Source: filepath.Join(w.dir, "data"), Target: "/data"}} },
		"Control": func(s *sandbox.Spec) { s.Control = filepath.Join(w.dir, "socket") },
		"Network": func(s *sandbox.Spec) { s.Network = true },
		"Expect": func(s *sandbox.Spec) {
			s.Expect = []sandbox.Expect{{Path: "/workspace/file", Dev: s.Workspace.Dev, Ino: inode(t, w.ws+"/file")}}
		},
		"Limits": func(s *sandbox.Spec) { s.Limits.OpenFiles = 100 },
	}
	if err := os.Link(tool, filepath.Join(filepath.Dir(tool), "again")); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(filepath.Join(filepath.Dir(tool), "again"))
	for f := range reflect.TypeFor[sandbox.Spec]().Fields() {
		change, same := carried[f.Name]
		if !same {
			change = fixed[f.Name]
		}
		if change == nil {
			t.Errorf("whether %s is fixed by a launch is not said", f.Name)
			continue
		}
		s := w.spec("/bin/true")
		was := w.prepared(s)
		change(&s)
		id, _, err := w.first(s)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if (id == was) != same {
			t.Errorf("%s changed: ran in %v, prepared was %v", f.Name, id, was)
		}
		gone(t, was)
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	st, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Sys().(*syscall.Stat_t).Ino
}

// TestChangedSinceItWasPrepared: what a call must not find in an old state is
// looked up for it anew.
func TestChangedSinceItWasPrepared(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(w *world)
		change func(w *world)
		probe  string
		want   string
	}{
		{"a repository appears", nil, func(w *world) { w.mkdir(w.ws + "/.git") },
			"touch .git/x 2>/dev/null || echo protected", "protected\n"},
		{"a repository is exchanged", func(w *world) { w.mkdir(w.ws + "/.git") }, func(w *world) {
			w.move(w.ws+"/.git", w.ws+"/old")
			w.mkdir(w.ws + "/.git")
		}, "touch .git/x 2>/dev/null || echo protected; touch old/x && echo free", "protected\nfree\n"},
		{"a pointer is renamed over", func(w *world) { w.write(w.ws+"/.git", "old") }, func(w *world) {
			w.write(w.ws+"/new", "new")
			w.move(w.ws+"/new", w.ws+"/.git")
		}, "cat .git; echo x 2>/dev/null >>.git || echo protected", "newprotected\n"},
		{"the workspace is exchanged", nil, func(w *world) {
			w.move(w.ws, w.ws+"-old")
			w.mkdir(w.ws)
			w.write(w.ws+"/new", "")
		}, "ls", "new\n"},
		{"the view is made again", nil, func(w *world) {
			w.move(w.dir+"/view", w.dir+"/old")
			w.mkdir(w.dir + "/view")
			w.mkdir(w.dir + "/view/bin")
			w.write(w.dir+"/view/bin/ctxtool", "")
			w.write(w.dir+"/view/new", "")
		}, "ls /ctx", "bin\nnew\n"},
		{"the home is exchanged", nil, func(w *world) {
			w.move(w.dir+"/home", w.dir+"/old")
			w.mkdir(w.dir + "/home")
			w.mkdir(w.dir + "/home/session")
			w.write(w.dir+"/home/new", "")
		}, "ls ~", "new\nsession\n"},
		{"the sessions are exchanged", nil, func(w *world) {
			w.move(w.dir+"/home/session", w.dir+"/home/old")
			w.mkdir(w.dir + "/home/session")
			w.write(w.dir+"/home/session/new", "")
		}, "ls ~/session", "new\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if c.before != nil {
				c.before(w)
			}
			was := w.prepared(w.spec())
			c.change(w)
			id, out, err := w.first(w.spec("/bin/sh", "-c", c.probe))
			if err != nil || out != c.want {
				t.Errorf("%v, output %q", err, out)
			}
			if id == was {
				t.Error("the prepared sandbox was used")
			}
			gone(t, was)
		})
	}
}

func (w *world) move(from, to string) {
	w.t.Helper()
	if err := os.Rename(from, to); err != nil {
		w.t.Fatal(err)
	}
}

// TestProtectionLost: an object that comes back to its place on the host has
// lost the mount that protected it in sandboxes that were there before. Every
// fact is as it was; the entry step sees that the mount is not, and the call gets
// another sandbox.
func TestProtectionLost(t *testing.T) {
	w := newWorld(t)
	git, keep := w.ws+"/.git", w.ws+"/keep"
	w.write(git, "gitdir: nowhere\n")
	was := w.prepared(w.spec())
	if err := os.Link(git, keep); err != nil {
		t.Fatal(err)
	}
	w.write(w.ws+"/new", "")
	w.move(w.ws+"/new", git)
	w.move(keep, git)
	s := w.spec("/bin/sh", "-c", "echo forged >>.git")
	id, out, err := w.first(s)
	if id == was || err != nil || !strings.Contains(out, "Read-only") {
		t.Errorf("%v, output %q, in %v, prepared was %v", err, out, id, was)
	}
	gone(t, was)
	if text, _ := os.ReadFile(git); string(text) != "gitdir: nowhere\n" {
		t.Errorf("the protected file is %q", text)
	}
}

// once is a writer that closes a channel at the first it gets.
type once chan struct{}

func (o once) Write(p []byte) (int, error) {
	close(o)
	return len(p), nil
}

// TestExchangedWhilePrepared: a sandbox that was prepared while another directory
// stood in the workspace's place serves nobody once the right one is back.
func TestExchangedWhilePrepared(t *testing.T) {
	w := newWorld(t)
	w.write(w.ws+"/right", "")
	s := w.spec("/bin/ls")
	w.move(w.ws, w.ws+"-real")
	w.mkdir(w.ws)
	w.write(w.ws+"/wrong", "")
	w.l.Prepare(s)
	sp := w.l.spare()
	if sp == nil {
		t.Fatal("nothing was prepared")
	}
	w.move(w.ws, w.ws+"-other")
	w.move(w.ws+"-real", w.ws)
	if id, out, err := w.first(s); err != nil || out != "right\n" || id == sp.launch.id {
		t.Errorf("%v, output %q", err, out)
	}
	gone(t, sp.launch.id)
}

// TestSpareEnds: nobody has to come for it.
func TestSpareEnds(t *testing.T) {
	t.Run("close", func(t *testing.T) {
		w := newWorld(t)
		before := w.listing()
		id := w.prepared(w.spec())
		w.l.Close()
		if id.Alive() {
			t.Error("it lives after Close")
		}
		if after := w.listing(); after != before {
			t.Errorf("the workspace holds\n%s", after)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(context.Background())
		up, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := w.l.Run(ctx, w.spec("/bin/sh", "-c", "echo up; sleep 1000"), Stdio{Stdout: once(up)})
			ended <- err
		}()
		<-up
		w.run(w.spec("/bin/true"), "") // beside it
		sp := w.l.spare()
		if sp == nil {
			t.Fatal("nothing is prepared")
		}
		cancel()
		<-ended
		gone(t, sp.launch.id)
		if w.l.spare() != nil {
			t.Error("something is prepared after a cancel")
		}
	})
	t.Run("idle", func(t *testing.T) {
		w := newWorld(t)
		w.l.spares.idle = time.Millisecond
		w.run(w.spec("/bin/true"), "")
		w.l.spares.mu.Lock()
		sp := w.l.spares.next
		w.l.spares.mu.Unlock()
		if sp != nil { // else it has ended already
			<-sp.ctx.Done()
			<-sp.settled
			gone(t, sp.launch.id)
		}
		if _, out, err := w.first(w.spec("/bin/echo", "well")); err != nil || out != "well\n" {
			t.Errorf("%v, output %q", err, out)
		}
	})
	t.Run("killed", func(t *testing.T) {
		w := newWorld(t)
		id := w.prepared(w.spec())
		syscall.Kill(id.PID, syscall.SIGKILL)
		gone(t, id)
		if now, out, err := w.first(w.spec("/bin/echo", "well")); err != nil || out != "well\n" || now == id {
			t.Errorf("%v, output %q", err, out)
		}
	})
	t.Run("while it is prepared", func(t *testing.T) {
		w := newWorld(t)
		w.run(w.spec("/bin/true"), "")
		w.l.Close() // at whatever point of the launch
		w.l.spares.mu.Lock()
		defer w.l.spares.mu.Unlock()
		if w.l.spares.next != nil {
			t.Error("something is left")
		}
	})
	t.Run("descriptors", func(t *testing.T) {
		before := openFiles(t)
		w := newWorld(t)
		for range 5 {
			w.prepared(w.spec())
		}
		w.l.Close()
		if after := openFiles(t); after > before {
			t.Errorf("%d open files, %d before", after, before)
		}
	})
}

// TestPrepare: a call that is announced finds its sandbox, also the first one; an
// announcement replaces another.
func TestPrepare(t *testing.T) {
	w := newWorld(t)
	s, other := w.spec("/bin/true"), w.spec("/bin/true")
	other.Limits.OpenFiles = 100
	for _, c := range []sandbox.Spec{s, other, s} {
		w.l.Prepare(c)
		w.l.Prepare(c)
		sp := w.l.spare()
		if sp == nil {
			t.Fatal("nothing was prepared")
		}
		c.Argv = []string{"/bin/echo", "well"}
		if id, out, err := w.first(c); err != nil || out != "well\n" || id != sp.launch.id {
			t.Errorf("%v, output %q, in %v, prepared was %v", err, out, id, sp.launch.id)
		}
	}
	s.Home = "/no/such/home"
	w.l.Prepare(s) // the call says it
	w.l.Close()
	w.l.Prepare(other)
	if w.l.spare() != nil {
		t.Error("something is prepared after Close")
	}
}

// TestSpareWhereItHelps: calls beside each other, and calls in turns with others
// that need another sandbox, are better off with launches of their own.
func TestSpareWhereItHelps(t *testing.T) {
	w := newWorld(t)
	ready, more := w.fifo("ready"), w.fifo("more")
	ended, _ := w.background(context.Background(), w.spec("/bin/sh", "-c", "echo up >ready; read x <more"))
	w.hear(ready)
	w.run(w.spec("/bin/true"), "") // takes what was prepared
	if w.l.spare() == nil {
		t.Error("nothing is prepared for the one who is left") // prepared after it ended
	}
	w.say(more)
	<-ended

	a, b := w.spec("/bin/true"), w.spec("/bin/true")
	b.Limits.OpenFiles = 100
	w.run(a, "")
	w.run(b, "")
	for _, s := range []sandbox.Spec{a, b, a, b} {
		w.run(s, "")
		if w.l.spare() != nil {
			t.Error("a spare that nobody will take")
		}
	}
	w.run(b, "")
	if w.l.spare() == nil {
		t.Error("nothing is prepared for the second of its kind")
	}
}

// TestWaitIsNotTheCalls: a call's time begins with the call.
func TestWaitIsNotTheCalls(t *testing.T) {
	w := newWorld(t)
	w.prepared(w.spec())
	begun := time.Now()
	r, err := w.l.Run(context.Background(), w.spec("/bin/true"), Stdio{})
	if took := time.Since(begun); err != nil || r.Duration > took {
		t.Errorf("%v, duration %v of %v", err, r.Duration, took)
	}
}

// childWithSpare is a launcher that dies while a sandbox waits: the call before
// leaves a mark, and so would the one that never comes.
func childWithSpare(l *Launcher, s sandbox.Spec) int {
	s.Argv = []string{"/bin/sh", "-c", "echo up >>mark"}
	if _, err := l.Run(context.Background(), s, Stdio{}); err != nil {
		fmt.Println(err)
		return 1
	}
	sp := l.spare()
	if sp == nil {
		fmt.Println("nothing is prepared")
		return 1
	}
	fmt.Printf("%d %d\n", sp.launch.id.PID, sp.launch.id.Start)
	bufio.NewReader(os.Stdin).ReadByte() // until it is killed
	select {}
}

func TestLauncherKilledWithSpare(t *testing.T) {
	w := newWorld(t)
	for i := range 8 {
		cmd, id := w.launcher("spare")
		all := []procid.ID{id}
		// bwrap outside, and the entry step if it is there yet.
		others, _ := procid.Children(id.PID)
		if parent, err := procid.Parent(id.PID); err == nil {
			others = append(others, parent)
		}
		for _, pid := range others {
			if one, err := procid.Of(pid); err == nil {
				all = append(all, one)
			}
		}
		if len(all) < 2 {
			t.Errorf("only %v", all)
		}
		cmd.Process.Kill()
		cmd.Wait()
		for _, one := range all {
			gone(t, one)
		}
		if text, err := os.ReadFile(w.ws + "/mark"); err != nil || string(text) != strings.Repeat("up\n", i+1) {
			t.Errorf("%v, the mark is %q", err, text)
		}
	}
}

// TestResultIsOutOfReach: a payload's streams are its own. The first process of
// the sandbox, whose descriptors every payload can open, never had them.
func TestResultIsOutOfReach(t *testing.T) {
	w := newWorld(t)
	probe := `
import os
own = [os.fstat(f).st_ino for f in (1, 2)]
for f in os.listdir("/proc/1/fd"):
    at = "/proc/1/fd/" + f
    if os.stat(at).st_ino in own: print("the first process holds it as", f)
    # Whatever can be opened there is nothing that anybody takes for output.
    try: os.write(os.open(at, os.O_WRONLY | os.O_NONBLOCK), b"forged\n")
    except OSError: pass
print("looked")
`
	for range 3 { // launched for the call, and prepared
		if got := w.python(probe); got != "looked" {
			t.Errorf("inside: %s", got)
		}
	}
}
