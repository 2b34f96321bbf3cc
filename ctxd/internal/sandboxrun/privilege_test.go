package sandboxrun

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// No mount of a sandbox lets a program gain anything, whoever it belongs to, and
// devices are the ones that bwrap shows.
func TestMountsGiveNothing(t *testing.T) {
	everyone(t, func(t *testing.T, w *world) {
		extra := filepath.Join(w.dir, "extra")
		w.mkdir(extra)
		got := w.python(`
for l in open("/proc/self/mountinfo"):
    f = l.split()
    at, options = f[4], f[5].split(",")
    if "nosuid" not in options: print("suid", at)
    if "nodev" not in options and not at.startswith("/dev/"): print("dev", at)
print(sum(1 for l in open("/proc/self/mountinfo") if l.split()[4] in ("/workspace", "/home/agent", "/usr", "/extra")))
`, func(s *sandbox.Spec) { s.Mounts = mount.Table{{Source: extra, Target: "/extra"}} })
		if got != "4" {
			t.Errorf("inside:\n%s", got)
		}
	})
}

// A set-user-ID program of another user in the workspace is one without that bit.
func TestSetUserIDInTheWorkspace(t *testing.T) {
	w := newWorld(t)
	program := filepath.Join(w.ws, "id")
	text, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		t.Fatal(err)
	}
	w.write(program, string(text))
	if os.Geteuid() == 0 {
		if err := os.Chown(program, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(program, 0o755|fs.ModeSetuid|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	if got, want := w.sh("/workspace/id -u; /workspace/id -ru"), fmt.Sprintf("%d\n%[1]d", w.id.UID); got != want {
		t.Errorf("it runs as\n%s\nwant\n%s", got, want)
	}
}

// Nor can one be made in there, for others to run outside.
func TestMakesNoSetUserID(t *testing.T) {
	everyone(t, func(t *testing.T, w *world) {
		w.python(`
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
shell = open("/bin/sh", "rb").read()
def fill(fd):
    try: os.write(fd, shell)
    finally: os.close(fd)
def attempt(f):
    try: f()
    except OSError: pass
os.umask(0)
fill(os.open("made", os.O_CREAT | os.O_WRONLY, 0o755))
attempt(lambda: os.chmod("made", 0o4755))
attempt(lambda: os.chmod("made", 0o6755))
fd = os.open("made", os.O_RDONLY)
attempt(lambda: os.fchmod(fd, 0o4755))
libc.fchmodat(-100, b"made", 0o4755, 0)
libc.syscall(452, -100, b"made", 0o4755, 0)
# One that is made with the bit is empty, and what fills it takes the bit away.
fill(os.open("created", os.O_CREAT | os.O_WRONLY, 0o4755))
attempt(lambda: os.mknod("node", 0o104755)); fill(os.open("node", os.O_WRONLY))
how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_RDWR, 0o4755, 0)
second = libc.syscall(437, -100, b"second", ctypes.byref(how), 24)
if second >= 0:
    import mmap
    os.ftruncate(second, len(shell))
    mmap.mmap(second, len(shell)).write(shell)
attempt(lambda: os.posix_fallocate(os.open("allocated", os.O_CREAT | os.O_RDWR, 0o4755), 0, 4096))
attempt(lambda: os.copy_file_range(fd, os.open("copied", os.O_CREAT | os.O_RDWR, 0o4755), len(shell)))
attempt(lambda: os.sendfile(os.open("sent", os.O_CREAT | os.O_RDWR, 0o4755), fd, 0, len(shell)))
`)
		for _, name := range []string{"made", "created", "node", "second", "allocated", "copied", "sent"} {
			var st unix.Stat_t
			if err := unix.Lstat(filepath.Join(w.ws, name), &st); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if st.Mode&unix.S_ISUID != 0 && st.Size > 0 {
				t.Errorf("%s has mode %o and %d bytes", name, st.Mode, st.Size)
			}
		}
	})
}

// TestAbstractSockets: without the network there are none of the host's. With it
// there are, and a kernel with Landlock's scopes keeps the sandbox from them; it
// has its own all the same.
func TestAbstractSockets(t *testing.T) {
	w := newWorld(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	name := "cortexfs" + strings.ReplaceAll(w.dir, "/", "-")
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 8); err != nil {
		t.Fatal(err)
	}
	program := fmt.Sprintf(`
import errno, os, socket
def reach(name):
    try: socket.socket(socket.AF_UNIX).connect("\0" + name); return "reached"
    except OSError as e: return errno.errorcode[e.errno]
own = socket.socket(socket.AF_UNIX); own.bind("\0own-%[1]s"); own.listen()
print(reach("%[1]s"), reach("own-%[1]s"))
`, name)
	if got := w.python(program); got != "ECONNREFUSED reached" {
		t.Errorf("without network: %s", got)
	}
	want := "reached reached"
	if version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno == 0 && version >= 6 {
		want = "EPERM reached"
	}
	if got := w.python(program, func(s *sandbox.Spec) { s.Network = true }); got != want {
		t.Errorf("with network: %s, want %s", got, want)
	}
}

// TestSpareHoldsNothing: a sandbox that waits for a call has nothing of the host,
// or of the call before, in any of its processes.
func TestSpareHoldsNothing(t *testing.T) {
	w := newWorld(t)
	dir, err := unix.Open(w.dir, unix.O_RDONLY|unix.O_DIRECTORY, 0) // for every child to have
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	first := w.prepared(w.spec()).PID
	launcher, err := procid.Parent(first)
	if err != nil {
		t.Fatal(err)
	}
	inside, err := procid.Children(first)
	if err != nil || len(inside) != 1 {
		t.Fatalf("in the sandbox are %v, %v", inside, err)
	}
	for _, pid := range []int{launcher, first, inside[0]} {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil && os.Geteuid() != 0 {
			continue // closed to its own user
		}
		if err != nil {
			t.Fatal(err)
		}
		sockets := 0
		for _, e := range entries {
			what, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name()))
			kind, _, _ := strings.Cut(what, ":")
			if err == nil && !slices.Contains([]string{os.DevNull, "pipe", "socket", "anon_inode"}, kind) {
				t.Errorf("process %d has %s open", pid, what)
			}
			if kind == "socket" {
				sockets++
			}
		}
		if sockets > 1 { // the channel
			t.Errorf("process %d has %d sockets", pid, sockets)
		}
	}
}
