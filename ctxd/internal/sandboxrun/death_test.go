package sandboxrun

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/sandbox"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// fifo makes a named pipe in the workspace. Opening one end waits for the other,
// so that a test and a payload can meet without looking at a clock.
func (w *world) fifo(name string) string {
	w.t.Helper()
	path := filepath.Join(w.ws, name)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.own(path)
	return path
}

// hear waits until a payload writes a line to a named pipe.
func (w *world) hear(path string) string {
	w.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// say lets a payload go on that reads a named pipe.
func (w *world) say(path string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte("go\n"), 0); err != nil {
		w.t.Fatal(err)
	}
}

type outcome struct {
	Result
	err error
	out string
}

// background runs a spec and delivers how it ended; first is told its init.
func (w *world) background(ctx context.Context, s sandbox.Spec) (ended <-chan outcome, first <-chan procid.ID) {
	c, ids := make(chan outcome, 1), make(chan procid.ID, 1)
	go func() {
		// The caller's thread must not matter.
		runtime.LockOSThread()
		var out bytes.Buffer
		r, err := w.l.Run(ctx, s, Stdio{Stdout: &out, Started: func(id procid.ID) error { ids <- id; return nil }})
		c <- outcome{r, err, out.String()}
	}()
	return c, ids
}

// gone waits for the end of a process that may be nobody's child here.
func gone(t testing.TB, id procid.ID) {
	t.Helper()
	h, err := procid.Open(id.PID)
	if errdefs.Is(err, errdefs.NotFound) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if now, err := procid.Of(id.PID); err != nil || now != id {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := h.Wait(ctx); err != nil {
		t.Fatalf("process %d still runs: %v", id.PID, err)
	}
}

func TestOutlivesThreads(t *testing.T) {
	w := newWorld(t)
	ready, more := w.fifo("ready"), w.fifo("more")
	ended, _ := w.background(context.Background(), w.spec("/bin/sh", "-c", "echo up >ready; read x <more; echo alive"))
	w.hear(ready)
	for range 50 { // each ends with a thread of the process
		done := make(chan struct{})
		go func() { defer close(done); runtime.LockOSThread() }()
		<-done
	}
	w.say(more)
	if o := <-ended; o.err != nil || o.out != "alive\n" {
		t.Fatalf("%+v", o)
	}
}

func TestCancel(t *testing.T) {
	t.Run("grace", func(t *testing.T) {
		w := newWorld(t)
		ready := w.fifo("ready")
		ctx, cancel := context.WithCancelCause(context.Background())
		ended, ids := w.background(ctx, w.spec("/bin/sh", "-c",
			"trap 'echo late; echo bye >bye; exit 0' TERM; echo early; echo up >ready; while :; do sleep 0.01; done"))
		id := <-ids
		w.hear(ready)
		because := errors.New("somebody changed his mind")
		cancel(because)
		o := <-ended
		if !errors.Is(o.err, because) || !errdefs.Is(o.err, errdefs.Cancelled) {
			t.Errorf("error %v", o.err)
		}
		if strings.Contains(o.out, "late") {
			t.Error("output after the cancel was delivered")
		}
		if text, _ := os.ReadFile(filepath.Join(w.ws, "bye")); string(text) != "bye\n" {
			t.Error("the payload got no SIGTERM")
		}
		gone(t, id)
	})
	t.Run("force", func(t *testing.T) {
		w := newWorld(t)
		ready := w.fifo("ready")
		ctx, cancel := context.WithCancel(context.Background())
		// Sixty processes that hear nothing, each in a session of its own, some
		// of them no longer children of the payload.
		ended, ids := w.background(ctx, w.spec("/usr/bin/python3", "-I", "-S", "-c", `
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for i in range(30):
    if os.fork() == 0:
        os.setsid()
        os.fork()
        if i % 2 and os.fork(): os._exit(0)
        while True: signal.pause()
open("ready", "w").write("up")
while True: signal.pause()
`))
		id := <-ids
		w.hear(ready)
		inside, err := procid.Children(id.PID)
		if err != nil || len(inside) < 2 {
			t.Fatalf("children %v, %v", inside, err)
		}
		var all []procid.ID
		for _, pid := range inside {
			if one, err := procid.Of(pid); err == nil { // some only pass through
				all = append(all, one)
			}
		}
		cancel()
		begun := time.Now()
		if o := <-ended; !errors.Is(o.err, context.Canceled) {
			t.Errorf("error %v", o.err)
		}
		if d := time.Since(begun); d < libctx.TermGrace {
			t.Errorf("killed after %v, before its grace", d)
		}
		for _, one := range append(all, id) {
			if one.Alive() {
				t.Errorf("process %d runs after Run returned", one.PID)
			}
		}
	})
	t.Run("deadline", func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		_, err := w.l.Run(ctx, w.spec("/bin/sleep", "1000"), Stdio{})
		if !errors.Is(err, context.DeadlineExceeded) || !errdefs.Is(err, errdefs.Timeout) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("any moment", func(t *testing.T) {
		w := newWorld(t)
		for i := range 40 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*500*time.Microsecond)
			var id procid.ID
			_, err := w.l.Run(ctx, w.spec("/bin/sleep", "1000"), Stdio{Started: func(first procid.ID) error { id = first; return nil }})
			cancel()
			if !errdefs.Is(err, errdefs.Timeout) {
				t.Errorf("after %d half milliseconds: %v", i, err)
			}
			if id.PID != 0 && id.Alive() {
				t.Errorf("after %d half milliseconds: the init lives", i)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := w.l.Run(ctx, w.spec("/bin/touch", "mark"), Stdio{}); !errdefs.Is(err, errdefs.Cancelled) {
			t.Errorf("cancelled before: %v", err)
		}
		if _, err := os.Lstat(filepath.Join(w.ws, "mark")); err == nil {
			t.Error("it ran")
		}
	})
}

func TestBackgroundChildren(t *testing.T) {
	w := newWorld(t)
	var id procid.ID
	var out bytes.Buffer
	begun := time.Now()
	r, err := w.l.Run(context.Background(), w.spec("/bin/sh", "-c", "for i in 1 2 3; do setsid sleep 1000 & done; echo said; exit 3"),
		Stdio{Stdout: &out, Started: func(first procid.ID) error { id = first; return nil }})
	if err != nil || r.ExitCode != 3 || out.String() != "said\n" {
		t.Errorf("%+v %v %q", r, err, out.String())
	}
	if d := time.Since(begun); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
	if id.Alive() {
		t.Error("the namespace lives on")
	}
}

// counter takes so many bytes and then fails.
type counter struct {
	left int
	max  int
}

var errFull = errors.New("enough")

func (c *counter) Write(p []byte) (int, error) {
	c.max = max(c.max, len(p))
	if c.left -= len(p); c.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestFlood(t *testing.T) {
	w := newWorld(t)
	c := &counter{left: 8 << 20}
	var id procid.ID
	_, err := w.l.Run(context.Background(), w.spec("/usr/bin/yes"),
		Stdio{Stdout: c, Started: func(first procid.ID) error { id = first; return nil }})
	if !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
	if c.max > 32<<10 {
		t.Errorf("%d bytes at once", c.max)
	}
	if id.Alive() {
		t.Error("the flood goes on")
	}
	// Nobody reads: it is drained.
	if code, _, _ := w.run(w.spec("/bin/sh", "-c", "yes | head -c 4000000 >&2"), ""); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestClose(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	ended, ids := w.background(context.Background(), w.spec("/bin/sh", "-c", "trap '' TERM; echo up >ready; sleep 1000; sleep 1000"))
	w.hear(ready)
	id := <-ids
	w.l.Close()
	if id.Alive() {
		t.Error("it lives after Close")
	}
	if o := <-ended; !errdefs.Is(o.err, errdefs.Cancelled) {
		t.Errorf("error %v", o.err)
	}
	if _, err := w.l.Run(context.Background(), w.spec("/bin/true"), Stdio{}); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("after Close: %v", err)
	}
}

func TestGivenUpAtTheGate(t *testing.T) {
	w := newWorld(t)
	before := w.listing()
	no := errors.New("not this one")
	for range 10 {
		var id procid.ID
		_, err := w.l.Run(context.Background(), w.spec("/bin/touch", "mark"), Stdio{Started: func(first procid.ID) error {
			id = first
			return no
		}})
		if !errors.Is(err, no) {
			t.Errorf("error %v", err)
		}
		gone(t, id)
	}
	if after := w.listing(); after != before {
		t.Errorf("the workspace holds\n%s", after)
	}
}

// child is this program started again by a test, as a launcher that dies:
// child WHEN TOOL WORKSPACE HOME VIEW UID
func child(args []string) int {
	when := args[0]
	if when == "check" {
		err := Check(Config{Entry: args[1]})
		fmt.Printf("%s\n%v\n%s\n", errdefs.KindOf(err), err, errdefs.HintOf(err))
		return 0
	}
	uid, _ := strconv.Atoi(args[5])
	id := asuser.Self()
	if uint32(uid) != id.UID {
		id = asuser.Identity{UID: uint32(uid), GID: uint32(uid)}
	}
	l, err := New(Config{Entry: args[1]})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var st unix.Stat_t
	if err := unix.Stat(args[2], &st); err != nil {
		fmt.Println(err)
		return 1
	}
	s := sandbox.Spec{
		Identity: id, View: args[4], Home: args[3],
		Workspace: sandbox.Workspace{Dir: args[2], Dev: uint64(st.Dev), Ino: st.Ino},
		Argv:      []string{"/bin/sh", "-c", "trap '' TERM HUP INT; echo up >mark; while :; do sleep 1000; done"},
	}
	if when == "spare" {
		return childWithSpare(l, s)
	}
	_, err = l.Run(context.Background(), s, Stdio{Started: func(first procid.ID) error {
		fmt.Printf("%d %d\n", first.PID, first.Start)
		if when == "gate" {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}})
	fmt.Println(err)
	return 1
}

// launcher starts this program again and returns the first process of its
// sandbox.
func (w *world) launcher(when string) (*exec.Cmd, procid.ID) {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(self, "child", when, tool, w.ws, w.dir+"/home", w.dir+"/view", strconv.Itoa(int(w.id.UID)))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var id procid.ID
	if _, serr := fmt.Sscan(line, &id.PID, &id.Start); err != nil || serr != nil {
		cmd.Process.Kill()
		cmd.Wait()
		w.t.Fatalf("the launcher said %q, %v", line, err)
	}
	go io.Copy(io.Discard, out)
	return cmd, id
}

func TestLauncherKilled(t *testing.T) {
	w := newWorld(t)
	mark := w.fifo("mark")
	cmd, id := w.launcher("running")
	w.hear(mark)
	if !id.Alive() {
		t.Error("the payload runs, its init does not")
	}
	cmd.Process.Kill()
	cmd.Wait()
	gone(t, id)
}

func TestSweep(t *testing.T) {
	w := newWorld(t)
	mark := w.fifo("mark")
	cmd, id := w.launcher("running")
	w.hear(mark)
	// The first process of somebody's sandbox stays as long as its bwrap does.
	sweep()
	if !id.Alive() {
		t.Error("a sandbox in use was swept")
	}
	cmd.Process.Kill()
	cmd.Wait()
	gone(t, id)

	// A bwrap that is killed before it lets its child go on leaves the child.
	bwrap := exec.Command("/usr/bin/bwrap")
	r, wr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	options := "--unshare-user\x00--unshare-pid\x00--block-fd\x004\x00--json-status-fd\x005\x00--ro-bind\x00/\x00/\x00"
	p := &launch{}
	defer p.close()
	if err := p.memory("args", []byte(options)); err != nil {
		t.Fatal(err)
	}
	var gate *os.File
	if err := p.pipe(&gate, false); err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	bwrap.Args = []string{"bwrap", "--args", "3", "--", sandbox.InTools, "entry"}
	bwrap.ExtraFiles = append(p.inside, wr)
	if err := bwrap.Start(); err != nil {
		t.Fatal(err)
	}
	wr.Close()
	pid, err := number(jsontext.NewDecoder(r), "child-pid")
	if err != nil {
		t.Fatal(err)
	}
	orphan, err := procid.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	bwrap.Process.Kill()
	bwrap.Wait()
	sweep()
	gone(t, orphan)
}

func TestLauncherKilledAtTheGate(t *testing.T) {
	w := newWorld(t)
	before := w.listing()
	for range 12 {
		cmd, id := w.launcher("gate")
		cmd.Wait()
		// Its bwrap dies of it, and with bwrap what has armed itself. Where that
		// came too early the next start of a launcher finds the rest.
		if parent, err := procid.Parent(id.PID); err == nil && ours(parent) {
			if bwrap, err := procid.Of(parent); err == nil {
				gone(t, bwrap)
			}
		}
		sweep()
		gone(t, id)
	}
	if after := w.listing(); after != before {
		t.Errorf("the payload ran: the workspace holds\n%s", after)
	}
}

func TestReaper(t *testing.T) {
	// Orphans of this process's descendants become its children, as they do
	// those of a daemon that is pid 1 of a container.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	w := newWorld(t)
	for range 10 {
		w.sh("setsid sleep 1000 & setsid sleep 1000 &")
	}
	// A child of our own is not collected by accident.
	own := exec.Command("/bin/sh", "-c", "exit 5")
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	w.sh("true")
	own.Wait()
	if code := own.ProcessState.ExitCode(); code != 5 {
		t.Errorf("exit %d", code)
	}
	w.l.Close() // and with it what is prepared for a next call
	if left, err := procid.Children(os.Getpid()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestInitKilled(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	ended, ids := w.background(context.Background(), w.spec("/bin/sh", "-c", "echo up >ready; sleep 1000"))
	id := <-ids
	w.hear(ready)
	if err := syscall.Kill(id.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if o := <-ended; o.err != nil || o.ExitCode != 128+9 {
		t.Errorf("%+v", o)
	}
}
