package sandboxrun

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// everyone runs a test as the agent of the world and, where that is possible,
// as root's own.
func everyone(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("user", func(t *testing.T) { test(t, newWorld(t)) })
	if self := asuser.Self(); self.UID == 0 {
		t.Run("root", func(t *testing.T) {
			test(t, newWorldOf(t, self))
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("PROVIDER_KEY", "hush-hush")
	w := newWorld(t)
	s := w.spec("/usr/bin/python3", "-I", "-S", "-c", `
import os
print(sorted(open("/proc/self/environ").read().split("\0")[:-1]))
for p in os.listdir("/proc"):
    if p.isdigit():
        for f in "environ", "cmdline":
            try: print(p, f, open(f"/proc/{p}/{f}", "rb").read())
            except OSError as e: print(p, f, e)
`)
	s.Env = []string{"A=b c", "E=", "X=1=2", "TOKEN=in-env"}
	_, out, _ := w.run(s, "")
	if first, _, _ := strings.Cut(out, "\n"); first != `['A=b c', 'E=', 'TOKEN=in-env', 'X=1=2']` {
		t.Errorf("environment %s", first)
	}
	if strings.Contains(out, "hush-hush") || strings.Contains(out, "PROVIDER") {
		t.Error("the daemon's environment is visible inside")
	}
	if !strings.Contains(out, "1 environ b''") {
		t.Errorf("the environment of pid 1 is not empty:\n%s", out)
	}
	// Command lines can be read by everybody on the machine.
	for line := range strings.Lines(out) {
		if strings.Contains(line, "cmdline") && (strings.Contains(line, "in-env") || strings.Contains(line, w.dir)) {
			t.Errorf("a command line tells the environment or host paths: %s", line)
		}
	}
}

// TestFirstProcess: what keeps a sandbox as short as its program and its daemon is
// the first process in it, which has the same user: it is out of reach.
func TestFirstProcess(t *testing.T) {
	everyone(t, func(t *testing.T, w *world) {
		_, out, _ := w.run(w.spec("/usr/bin/python3", "-I", "-S", "-c", `
import os
for p in "/proc/1/mem", "/proc/1/task/1/mem", "/proc/1/root/proc/1/mem", "/proc/1/cwd/proc/1/mem":
    for mode in os.O_RDONLY, os.O_WRONLY, os.O_RDWR:
        try: os.open(p, mode); print(p, "opened")
        except OSError as e: pass
for p in os.listdir("/proc"):
    if p.isdigit() and int(p) != os.getpid():
        for t in os.listdir(f"/proc/{p}/task"):
            try: os.open(f"/proc/{p}/task/{t}/mem", os.O_RDWR); print(p, t, "opened")
            except OSError: pass
print("tried")
`), "")
		if out != "tried\n" {
			t.Errorf("%s", out)
		}
	})
}

func TestDescriptors(t *testing.T) {
	w := newWorld(t)
	// Descriptors a careless parent left open for every child: a directory, a
	// listening socket.
	dir, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	ln, err := net.Listen("unix", filepath.Join(w.dir, "listener"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	lf, err := ln.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer lf.Close()
	if _, err := unix.FcntlInt(lf.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	got := w.python(`
import os
print([(f, os.readlink(f"/proc/self/fd/{f}").split(":")[0]) for f in sorted(os.listdir("/proc/self/fd")) if os.path.lexists(f"/proc/self/fd/{f}")])
for p in (1,):
    try: print([os.readlink(f"/proc/{p}/fd/{f}").split(":")[0] for f in os.listdir(f"/proc/{p}/fd")])
    except PermissionError: print("hidden")
`)
	want := "[('0', '/dev/null'), ('1', 'pipe'), ('2', 'pipe')]"
	lines := strings.Split(got, "\n")
	if lines[0] != want {
		t.Errorf("open inside: %s, want %s", lines[0], want)
	}
	if strings.Contains(lines[1], "/'") || strings.Contains(lines[1], "socket") {
		t.Errorf("pid 1 holds %s", lines[1])
	}
}

func TestPrivileges(t *testing.T) {
	everyone(t, func(t *testing.T, w *world) {
		got := w.python(`
import re
s = dict(l.rstrip("\n").split(":\t", 1) for l in open("/proc/self/status") if ":\t" in l)
print([s[k] for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")], s["NoNewPrivs"], s["Seccomp"], s["Umask"])
import os
print(os.getuid(), os.getgid(), os.getsid(0) == os.getpid() or os.getsid(0) < 3, len([p for p in os.listdir("/proc") if p.isdigit()]))
print(os.uname().nodename)
`)
		zero := "'0000000000000000'"
		want := fmt.Sprintf("[%s, %s, %s, %s, %s] 1 2 0022\n%d %d True 2\ncortexfs", zero, zero, zero, zero, zero, w.id.UID, w.id.GID)
		if got != want {
			t.Errorf("inside:\n%s\nwant:\n%s", got, want)
		}
	})
}

func TestNothingElseIsWritable(t *testing.T) {
	everyone(t, func(t *testing.T, w *world) {
		got := w.python(`
import os
places = ["/", "/etc", "/usr", "/usr/bin", "/dev", "/ctx", "/ctx/bin", "/home", "/var", "/proc", "/home/agent/session", "/sys"]
for p in places:
    try:
        os.close(os.open(p + "/probe", os.O_CREAT | os.O_WRONLY))
        print("created in", p)
    except OSError: pass
for f in ["/ctx/bin/ctxtool", "/bin/sh", "/etc/passwd", "/etc/hosts", "/usr/bin/env",
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches", "/proc/sys/kernel/modprobe",
    "/proc/sysrq-trigger", "/proc/sys/user/max_user_namespaces"]:
    try:
        os.close(os.open(f, os.O_WRONLY))
        print("opened", f)
    except OSError: pass
for p in ["/workspace", "/home/agent", "/tmp", "/run", "/dev/shm", "/var/tmp"]:
    open(p + "/probe", "w").write("x")
    os.remove(p + "/probe")
# The session directory stays where it is.
for f in [lambda: os.rename("/home/agent/session", "/home/agent/other"), lambda: os.rmdir("/home/agent/session"),
    lambda: os.rename("/home/agent", "/home/b"), lambda: os.rename("/workspace", "/w")]:
    try:
        f(); print("moved")
    except OSError: pass
`)
		if got != "" {
			t.Errorf("inside:\n%s", got)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	w := newWorld(t)
	got := w.python(`
import os
total = 0
for l in open("/proc/mounts"):
    dev, at, kind, opts = l.split()[:4]
    if kind == "tmpfs" and not os.statvfs(at).f_flag & os.ST_RDONLY:
        v = os.statvfs(at); total += v.f_blocks * v.f_frsize
        print(at)
print(total >> 20)
n = 0
try:
    with open("/run/fill", "wb", 0) as f:
        while n < 64: f.write(bytes(1 << 20)); n += 1
except OSError as e: print(e.strerror, n)
`)
	want := "/dev/shm\n/tmp\n/run\n592\nNo space left on device 16"
	if got != want {
		t.Errorf("writable memory:\n%s\nwant\n%s", got, want)
	}
}

func TestLimits(t *testing.T) {
	w := newWorld(t)
	got := w.python(`
import resource as r
for n in "NPROC", "NOFILE", "FSIZE", "CORE": print(n, r.getrlimit(getattr(r, "RLIMIT_" + n)))
import os, signal
n = 0
try:
    while n < 200:
        if os.fork() == 0: signal.pause()
        n += 1
except OSError as e: print(e.strerror, n <= 30)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try: open("/workspace/big", "wb").write(bytes(2 << 20))
except OSError as e: print(e.strerror)
`, func(s *sandbox.Spec) { s.Limits = sandbox.Limits{Processes: 30, OpenFiles: 100, FileBytes: 1 << 20} })
	want := "NPROC (30, 30)\nNOFILE (100, 100)\nFSIZE (1048576, 1048576)\nCORE (0, 0)\nResource temporarily unavailable True\nFile too large"
	if got != want {
		t.Errorf("limits:\n%s\nwant\n%s", got, want)
	}
}

func TestNetwork(t *testing.T) {
	w := newWorld(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	program := fmt.Sprintf(`
import socket
try: socket.create_connection(("127.0.0.1", %d), 5); print("connected")
except OSError as e: print(e.strerror)
print(socket.gethostbyname("localhost"), len(socket.if_nameindex()) > 1)
`, ln.Addr().(*net.TCPAddr).Port)
	if got := w.python(program); got != "Connection refused\n127.0.0.1 False" {
		t.Errorf("without network: %s", got)
	}
	got := w.python(program, func(s *sandbox.Spec) { s.Network = true })
	if first, _, _ := strings.Cut(got, "\n"); first != "connected" {
		t.Errorf("with network: %s", got)
	}
}

func TestRefusedSystemCalls(t *testing.T) {
	everyone(t, func(t *testing.T, w *world) {
		got := w.python(`
import ctypes, errno, os, pty, fcntl, socket, mmap
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *a):
    ctypes.set_errno(0)
    r = libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a])
    print(name, errno.errorcode.get(ctypes.get_errno(), r))
m, s = os.openpty()
try: fcntl.ioctl(s, 0x5412, b"x"); print("pushed")
except OSError as e: print("TIOCSTI", errno.errorcode[e.errno])
import platform
if platform.machine() == "x86_64":
    call("ioctl high", 16, s, 0x100005412, b"x")
    call("mount", 165, b"none", b"/tmp", b"tmpfs", 0, None)
    call("unshare", 272, 0x10000000)
    call("unshare high", 272, 0x110000000)
    call("clone3", 435, None, 0)
    call("clone newuser", 56, 0x10000000 | 17, 0, 0, 0, 0)
    call("keyctl", 250, 0, 0)
    call("bpf", 321, 0, None, 0)
    call("userfaultfd", 323, 0)
    call("io_uring", 425, 1, None)
    call("personality", 135, 0x0040000)
    call("personality query", 135, 0xffffffff)
    call("open_by_handle_at", 304, 3, None, 0)
    call("x32 getpid", 0x40000000 + 39)
    call("unshare files", 272, 0x400)
else:
    raise SystemExit("no numbers for this machine")
for family in (38, 40, 17):
    try: socket.socket(family, socket.SOCK_STREAM if family != 38 else 5); print("family", family)
    except OSError as e: print(family, errno.errorcode[e.errno])
try: open("/dev/tty"); print("has a terminal")
except OSError as e: print("tty", errno.errorcode[e.errno])
`)
		want := `TIOCSTI EPERM
ioctl high EPERM
mount EPERM
unshare EPERM
unshare high EPERM
clone3 ENOSYS
clone newuser EPERM
keyctl EPERM
bpf EPERM
userfaultfd EPERM
io_uring EPERM
personality EPERM
personality query 0
open_by_handle_at EPERM
x32 getpid ENOSYS
unshare files 0
38 EAFNOSUPPORT
40 EAFNOSUPPORT
17 EAFNOSUPPORT
tty ENXIO`
		if got != want {
			t.Errorf("inside:\n%s", got)
		}
	})
}

func TestForeignABI(t *testing.T) {
	w := newWorld(t)
	// getpid by the 32-bit entry of an x86 kernel: mov eax,20; int 0x80; ret.
	got := w.python(`
import ctypes, mmap
m = mmap.mmap(-1, 4096, prot=7)
m.write(bytes.fromhex("b814000000cd80c3"))
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))())
`)
	if got != fmt.Sprint(-int(syscall.ENOSYS)) {
		t.Errorf("a 32-bit system call returned %s", got)
	}
}

func TestToolsWork(t *testing.T) {
	w := newWorld(t)
	w.write(filepath.Join(w.ws, "a.c"), "#include <stdio.h>\n#include <pthread.h>\nstatic void*f(void*p){puts(\"threads\");return p;}\nint main(void){pthread_t t;pthread_create(&t,0,f,0);pthread_join(t,0);return 0;}\n")
	got := w.sh(`set -e
cc -pthread -o a a.c && ./a
python3 -c 'import subprocess, threading, ssl, multiprocessing; print(subprocess.check_output(["echo", "sub"], text=True), end="")'
git init -q r && cd r && git -c user.name=n -c user.email=e commit -q --allow-empty -m first && git log --format=%s
perl -e 'print "perl\n"'
id -un; whoami; getent passwd nobody | cut -d: -f1; tty || true`)
	want := fmt.Sprintf("threads\nsub\nfirst\nperl\n%d\n%d\nnobody\nnot a tty", w.id.UID, w.id.UID)
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestMounts(t *testing.T) {
	w := newWorld(t)
	for _, d := range []string{"data", "lib"} {
		w.mkdir(filepath.Join(w.dir, d))
		w.write(filepath.Join(w.dir, d, "f"), d)
	}
	s := w.spec("/bin/sh", "-c", "cat /data/f /srv/lib/f; echo new >/data/g; echo no >/srv/lib/g")
	s.Mounts = mount.Table{
		{Source: filepath.Join(w.dir, "data"), Target: "/data"},
		{Source: filepath.Join(w.dir, "lib"), Target: "/srv/lib", ReadOnly: true},
	}
	code, out, errs := w.run(s, "")
	if code == 0 || out != "datalib" || !strings.Contains(errs, "Read-only") {
		t.Errorf("code %d, out %q, err %q", code, out, errs)
	}
	if text, _ := os.ReadFile(filepath.Join(w.dir, "data/g")); string(text) != "new\n" {
		t.Errorf("written %q", text)
	}
}

func TestControlSocket(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(w.dir, "control.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	w.own(path)
	go func() {
		if c, err := ln.Accept(); err == nil {
			c.Write([]byte("here\n"))
			c.Close()
		}
	}()
	got := w.python(`
import socket
s = socket.socket(socket.AF_UNIX); s.connect("/run/cortexfs/control.sock"); print(s.recv(10).decode(), end="")
`, func(s *sandbox.Spec) { s.Control = path })
	if got != "here" {
		t.Errorf("read %q", got)
	}
}

func TestView(t *testing.T) {
	w := newWorld(t)
	w.mkdir(filepath.Join(w.dir, "view/tool"))
	w.write(filepath.Join(w.dir, "view/tool/hello"), "#!/ctx/bin/ctxtool\nhello\n")
	got := strings.Fields(w.sh("ls /ctx /ctx/tool; test -x /ctx/bin/ctxtool && echo entry"))
	if want := []string{"/ctx:", "bin", "tool", "/ctx/tool:", "hello", "entry"}; !slices.Equal(got, want) {
		t.Errorf("view %v", got)
	}
}
