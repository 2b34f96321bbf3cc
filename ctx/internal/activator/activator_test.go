package activator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cortexfs.org/ctx/internal/client"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
	"golang.org/x/sys/unix"
)

// The test program is its own daemon: started under the name ctxd it does what
// FAKE says.
func TestMain(m *testing.M) {
	if fake := os.Getenv("FAKE"); filepath.Base(os.Args[0]) == "ctxd" {
		os.Exit(daemon(fake, os.Args[2]))
	}
	os.Exit(m.Run())
}

func daemon(fake, root string) int {
	l := layout(root)
	switch fake {
	case "fail":
		fmt.Fprint(os.Stderr, "starting\nno sandbox: install bubblewrap\n")
		return 1
	case "hang":
		os.WriteFile(filepath.Join(root, "pid"), fmt.Append(nil, os.Getpid()), 0o600)
		unix.Poll(nil, -1) // until it is killed
	}
	lock, err := os.OpenFile(l.ServeLock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil || unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		fmt.Fprintln(os.Stderr, "another ctxd serve holds the tree")
		return 1
	}
	s, err := net.Listen("unix", l.Socket("coder"))
	if err == nil {
		err = os.Symlink(l.Socket("coder"), l.AgentLink("coder"))
	}
	n, dialErr := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err = errors.Join(err, dialErr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprint(n, "STATUS=soon")
	fmt.Fprint(n, "STATUS=now\nREADY=1")
	dir, _ := os.Getwd()
	for {
		c, err := s.Accept()
		if err != nil {
			return 1
		}
		// Who asks is told what the daemon sees; "quit" ends it.
		line, _ := bufio.NewReader(c).ReadString('\n')
		fmt.Fprintf(c, "%s %q\n", dir, os.Environ())
		c.Close()
		if line == "quit\n" {
			return 0
		}
	}
}

func layout(root string) paths.Layout {
	top := filepath.Dir(root)
	return paths.Layout{Root: root, Runtime: filepath.Join(top, "run/cortexfs/key"), Locks: filepath.Join(root, ".lock")}
}

// fresh is a tree with the agent coder, and an activator that would start this
// program with the given behaviour.
func fresh(t *testing.T, fake string) (*Activator, paths.Layout) {
	t.Helper()
	top := t.TempDir()
	l := layout(filepath.Join(top, "tree"))
	self, err := os.Executable()
	if err := errors.Join(err,
		os.MkdirAll(l.Agents(), 0o755), os.Mkdir(l.Control("coder"), 0o755), os.Mkdir(filepath.Join(top, "run"), 0o700),
		os.Mkdir(filepath.Join(top, "bin"), 0o755), os.Symlink(self, filepath.Join(top, "bin/ctxd")),
	); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pid := PID(l); pid != 0 { // a failed test leaves its daemon
			unix.Kill(pid, unix.SIGKILL)
		}
	})
	return &Activator{Layout: l, Exe: filepath.Join(top, "bin/ctx"), Env: []string{"FAKE=" + fake}}, l
}

func tell(t *testing.T, l paths.Layout, word string) string {
	t.Helper()
	c, err := net.Dial("unix", l.Socket("coder"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintln(c, word)
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestStartsOneDaemonForMany(t *testing.T) {
	v, l := fresh(t, "serve")
	t.Setenv("API_KEY", "secret")
	if Running(l) || PID(l) != 0 {
		t.Error("runs before it was started")
	}
	d := client.Dialer{Layout: l, Start: v.Start}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			c, err := d.Dial(t.Context(), "coder")
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	pid := PID(l)
	if !Running(l) || pid == 0 {
		t.Errorf("running %v, pid %d", Running(l), pid)
	}
	var st unix.Stat_t
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("session %d of %d, %v", sid, pid, err)
	}
	if err := unix.Stat(l.ServeLog(), &st); err != nil || st.Mode&0o777 != 0o600 {
		t.Errorf("log %o, %v", st.Mode, err)
	}
	process, err := procid.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer process.Close()
	if answer := tell(t, l, "quit"); !strings.HasPrefix(answer, "/ ") || strings.Contains(answer, "secret") || !strings.Contains(answer, "FAKE") {
		t.Errorf("the daemon sees %s", answer)
	}
	if err := process.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(l.Runtime, "start-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFailedStartSaysWhy(t *testing.T) {
	v, l := fresh(t, "fail")
	_, err := client.Dialer{Layout: l, Start: v.Start}.Dial(t.Context(), "coder")
	if !errdefs.Is(err, errdefs.Unavailable) || !strings.Contains(err.Error(), "no sandbox: install bubblewrap") ||
		!strings.Contains(errdefs.HintOf(err), l.ServeLog()) {
		t.Errorf("%v (%s)", err, errdefs.HintOf(err))
	}
	v.Exe = "/nowhere/ctx"
	if _, err := os.Stat("/usr/bin/ctxd"); err != nil {
		_, err := client.Dialer{Layout: l, Start: v.Start}.Dial(t.Context(), "coder")
		if !errdefs.Is(err, errdefs.Unavailable) || !strings.Contains(err.Error(), "not installed") {
			t.Errorf("%v", err)
		}
	}
}

func TestHangingStartIsKilled(t *testing.T) {
	v, l := fresh(t, "hang")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := client.Dialer{Layout: l, Start: v.Start}.Dial(ctx, "coder")
		done <- err
	}()
	pid := awaitFile(t, filepath.Join(l.Root, "pid"))
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := procid.Of(pid); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("process %d is left: %v", pid, err)
	}
}

// awaitFile waits for a number that another process writes.
func awaitFile(t *testing.T, name string) int {
	t.Helper()
	var pid int
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	w := os.NewFile(uintptr(fd), "inotify")
	defer w.Close()
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(name), unix.IN_CLOSE_WRITE); err != nil {
		t.Fatal(err)
	}
	for {
		if b, err := os.ReadFile(name); err == nil {
			if _, err := fmt.Sscan(string(b), &pid); err == nil {
				return pid
			}
		}
		if _, err := w.Read(make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignTreesAreNotServed(t *testing.T) {
	_, l := fresh(t, "serve")
	_, err := client.Dialer{Layout: l}.Dial(t.Context(), "coder")
	if !errdefs.Is(err, errdefs.Unavailable) || errdefs.KindOf(err).Exit() != 69 || errdefs.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
	if !Own(l) {
		t.Error("a tree of our own is taken for a foreign one")
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(l.Root, 60001, 60001); err != nil {
			t.Fatal(err)
		}
		if Own(l) {
			t.Error("a foreign tree is taken for our own")
		}
	} else if Own(paths.Layout{Root: "/"}) {
		t.Error("/ is taken for our own")
	}
}

func TestAwaitSocket(t *testing.T) {
	_, l := fresh(t, "")
	for i, prepare := range []func() error{
		func() error { return nil },
		func() error { return os.Symlink(filepath.Join(l.Root, "dead"), l.AgentLink("coder")) },
	} {
		os.Remove(l.AgentLink("coder"))
		if err := prepare(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- AwaitSocket(t.Context(), l, libctx.Agent("coder")) }()
		path := filepath.Join(t.TempDir(), "s")
		s, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		temp := filepath.Join(l.Agents(), ".coder.sock")
		if err := errors.Join(os.Symlink(path, temp), os.Rename(temp, l.AgentLink("coder"))); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("%d: %v", i, err)
		}
		s.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := AwaitSocket(ctx, l, "nobody"); !errdefs.Is(err, errdefs.Unavailable) {
		t.Error(err)
	}
}
