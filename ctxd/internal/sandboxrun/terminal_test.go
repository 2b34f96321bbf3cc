package sandboxrun

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/sandbox"
)

// passed is what a terminal is given: a listening socket and a directory.
func (w *world) passed() []*os.File {
	w.t.Helper()
	ln, err := net.Listen("unix", filepath.Join(w.dir, "main.sock"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { ln.Close() })
	lf, err := ln.(*net.UnixListener).File()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { lf.Close() })
	w.mkdir(filepath.Join(w.dir, "resource"))
	dir, err := os.Open(filepath.Join(w.dir, "resource"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { dir.Close() })
	return []*os.File{lf, dir}
}

// terminal runs a Python program as what a terminal's sandbox is for, and
// returns its output; it must succeed.
func (w *world) terminal(program string, pass []*os.File) string {
	w.t.Helper()
	s := w.spec("/usr/bin/python3", "-I", "-S", "-c", program)
	s.Kind = sandbox.Terminal
	var out, errs bytes.Buffer
	r, err := w.l.Run(context.Background(), s, Stdio{Stdout: &out, Stderr: &errs, Pass: pass})
	if err != nil || r.ExitCode != 0 {
		w.t.Fatalf("%s\nexit %d, %v\n%s%s", program, r.ExitCode, err, out.String(), errs.String())
	}
	return strings.TrimSpace(out.String())
}

// TestPassed: what is passed is the payload's 3 and 4, works, and is open in no
// other process of the sandbox.
func TestPassed(t *testing.T) {
	everyone(t, func(t *testing.T, w *world) {
		pass := w.passed()
		got := w.terminal(`
import os, socket
print([f for f in sorted(os.listdir("/proc/self/fd")) if os.path.lexists(f"/proc/self/fd/{f}")])
s = socket.socket(fileno=3)
print(s.family.name, s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
os.close(os.open("events.jsonl", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=4))
others = [p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]
print(others)
for p in others:
    try: print([f for f in os.listdir(f"/proc/{p}/fd") if not os.readlink(f"/proc/{p}/fd/{f}").startswith(("/dev/null", "pipe:", "anon_inode:"))])
    except PermissionError: print([])
`, pass)
		if want := "['0', '1', '2', '3', '4']\nAF_UNIX 1\n['1']\n[]"; got != want {
			t.Errorf("inside:\n%s", got)
		}
		if _, err := os.Lstat(filepath.Join(w.dir, "resource/events.jsonl")); err != nil {
			t.Error(err)
		}
	})
}

func TestTooManyPassed(t *testing.T) {
	w := newWorld(t)
	var pass []*os.File
	for range libctx.MaxSandboxPassed + 1 {
		pass = append(pass, os.Stdin)
	}
	if _, err := w.l.Run(context.Background(), w.spec("/bin/true"), Stdio{Pass: pass}); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("%v", err)
	}
}

// TestTerminalInside: a payload can make a terminal with job control, and has
// none of anybody else's; it shares no namespace with the host.
func TestTerminalInside(t *testing.T) {
	everyone(t, func(t *testing.T, w *world) {
		got := w.terminal(`
import errno, fcntl, os, pty, signal
try: os.open("/dev/tty", os.O_RDWR); print("a terminal of somebody else's")
except OSError as e: print(errno.errorcode[e.errno])
pid, master = pty.fork()
if pid == 0:
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpgrp())
        os.write(1, b"foreground\n")
        while True: signal.pause()
    _, status = os.waitpid(child, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    os.write(1, ("stopped " + str(os.WIFSTOPPED(status)) + " " + os.ttyname(0) + "\n").encode())
    try: fcntl.ioctl(0, 0x5412, b"x"); os.write(1, b"pushed\n")
    except OSError as e: os.write(1, errno.errorcode[e.errno].encode() + b"\n")
    os.kill(child, signal.SIGKILL)
    os._exit(0)
said = b""
while b"foreground" not in said: said += os.read(master, 1000)
os.write(master, b"\x1a")
try:
    while more := os.read(master, 1000): said += more
except OSError: pass
print(said.decode().replace("\r", "").replace("^Z", ""))
for n in "cgroup", "ipc", "mnt", "net", "pid", "user", "uts": print(n, os.readlink("/proc/self/ns/" + n))
`, nil)
		before, spaces, _ := strings.Cut(got, "cgroup ")
		if want := "ENXIO\nforeground\nstopped True /dev/pts/0\nEPERM\n"; strings.ReplaceAll(before, "\n\n", "\n") != want {
			t.Errorf("inside:\n%s", before)
		}
		for _, line := range strings.Split("cgroup "+spaces, "\n") {
			name, id, _ := strings.Cut(line, " ")
			if host, err := os.Readlink("/proc/self/ns/" + name); err != nil || host == id {
				t.Errorf("namespace %s is %s, the host's %s (%v)", name, id, host, err)
			}
		}
	})
}

// TestDescriptorsOutOfReach: a payload that is not dumpable keeps what it was
// passed from what it starts, which has its uid and is in its namespaces.
func TestDescriptorsOutOfReach(t *testing.T) {
	everyone(t, func(t *testing.T, w *world) {
		got := w.terminal(`
import ctypes, errno, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(4, 0, 0, 0, 0)
me = os.getpid()
pid = os.fork()
if pid == 0:
    os.closerange(3, 100)
    libc.prctl(4, 1, 0, 0, 0)
    def can(what, do):
        try: do(); print(what)
        except OSError as e: print(errno.errorcode[e.errno])
    def call(number, *a):
        if libc.syscall(ctypes.c_long(number), *[ctypes.c_long(x) for x in a]) < 0: raise OSError(ctypes.get_errno(), "")
    can("open", lambda: os.open(f"/proc/{me}/fd/4/..", os.O_RDONLY))
    can("look", lambda: os.readlink(f"/proc/{me}/fd/4"))
    can("memory", lambda: os.open(f"/proc/{me}/mem", os.O_RDONLY))
    if platform.machine() == "x86_64":
        can("trace", lambda: call(101, 16, me, 0, 0))
        p = os.pidfd_open(me)
        can("take", lambda: call(438, p, 4, 0))
    sys.stdout.flush()
    os._exit(0)
os.waitpid(pid, 0)
`, w.passed())
		for _, line := range strings.Split(got, "\n") {
			if line != "EACCES" && line != "EPERM" {
				t.Errorf("a child of the payload can: %s", got)
				break
			}
		}
	})
}

// TestFrozenWorkspace: all of it is read-only, and stays so if the mount that
// made it so is gone.
func TestFrozenWorkspace(t *testing.T) {
	w := newWorld(t)
	w.write(filepath.Join(w.ws, "file"), "content")
	s := w.spec("/bin/sh", "-c", "cat file; touch new 2>/dev/null || echo no; rm -f file; echo x 2>/dev/null >file; pwd")
	s.Workspace.Frozen = true
	code, out, _ := w.run(s, "")
	if code != 0 || out != "contentno\n/workspace\n" {
		t.Errorf("exit %d, %q", code, out)
	}
	if got := w.listing(); got != w.ws+"\n"+w.ws+"/file" {
		t.Errorf("on the host: %s", got)
	}
	main := filepath.Join(w.dir, "main")
	w.repository(main)
	w.ws = filepath.Join(w.dir, "linked")
	w.git(main, "worktree", "add", "-q", "-b", "linked", w.ws)
	s = w.spec("/bin/sh", "-c", "export GIT_OPTIONAL_LOCKS=0; git status --porcelain && git log --format=%s && (git commit -q --allow-empty -m x) 2>/dev/null || echo frozen")
	s.Workspace.Frozen = true
	if code, out, errs := w.run(s, ""); code != 0 || out != "first\nfrozen\n" {
		t.Errorf("exit %d, %q, %s", code, out, errs)
	}
}

// TestLiveControls: what an extra mount shows in the place of a part of the view
// is what is there now, replaced files too, and read-only.
func TestLiveControls(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{"view/agent", "view/agent/coder.d", "coder.d"} {
		w.mkdir(filepath.Join(w.dir, dir))
	}
	perm := filepath.Join(w.dir, "coder.d/perm")
	w.write(perm, "r\n")
	first, next := w.fifo("first"), w.fifo("next")
	s := w.spec("/bin/sh", "-c", "cat /ctx/agent/coder.d/perm; echo >first; cat next >/dev/null; cat /ctx/agent/coder.d/perm; "+
		"(echo rwx >/ctx/agent/coder.d/perm) 2>/dev/null && echo changed; true")
	s.Mounts = mount.Table{{Source: filepath.Join(w.dir, "coder.d"), Target: "/ctx/agent/coder.d", ReadOnly: true}}
	ended, _ := w.background(context.Background(), s)
	w.hear(first)
	w.write(perm+".new", "rw\n")
	if err := os.Rename(perm+".new", perm); err != nil {
		t.Fatal(err)
	}
	w.say(next)
	if o := <-ended; o.err != nil || o.out != "r\nrw\n" {
		t.Errorf("%v, %q", o.err, o.out)
	}
}

// TestGrace: a payload with a grace of its own has that to end after SIGTERM,
// and what it still says is heard.
func TestGrace(t *testing.T) {
	w := newWorld(t)
	ready, more := w.fifo("ready"), w.fifo("more")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := w.spec("/bin/sh", "-c", `trap 'echo asked; cat more >/dev/null; echo done; exit 7' TERM; echo >ready; while :; do sleep 1000 & wait; done`)
	s.Kind = sandbox.Terminal
	type end struct {
		r   Result
		err error
	}
	ended, asked := make(chan end, 1), make(chan struct{}, 8)
	var out bytes.Buffer
	go func() {
		r, err := w.l.Run(ctx, s, Stdio{Grace: time.Hour, Stdout: writerFunc(func(p []byte) {
			out.Write(p)
			asked <- struct{}{}
		})})
		ended <- end{r, err}
	}()
	w.hear(ready)
	cancel()
	<-asked
	w.say(more)
	e := <-ended
	if !errdefs.Is(e.err, errdefs.Cancelled) || e.r.ExitCode != 7 || out.String() != "asked\ndone\n" {
		t.Errorf("exit %d, %v, %q", e.r.ExitCode, e.err, out.String())
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }
