package asuser

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// Who listens sees the user that the caller is meanwhile; afterwards the process is
// what it was.
func TestBe(t *testing.T) {
	if os.Geteuid() != 0 {
		ran := false
		if err := other.Be(func() error { ran = true; return nil }); errdefs.KindOf(err) != errdefs.Denied || ran {
			t.Errorf("ran %v, %v", ran, err)
		}
		checkThreads(t)
		return
	}
	dir, err := os.MkdirTemp("", "be")
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chmod(dir, 0o755))
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	must(t, err)
	defer l.Close()
	must(t, os.Chmod(path, 0o666))
	for _, id := range []Identity{other, Self()} {
		var c net.Conn
		must(t, id.Be(func() (err error) {
			c, err = net.Dial("unix", path)
			return err
		}))
		defer c.Close()
		server, err := l.Accept()
		must(t, err)
		defer server.Close()
		raw, err := server.(*net.UnixConn).SyscallConn()
		must(t, err)
		var cred *unix.Ucred
		must(t, raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }))
		must(t, err)
		if cred.Uid != id.UID || cred.Gid != id.GID || int(cred.Pid) != os.Getpid() {
			t.Errorf("the peer is %+v, not %+v", cred, id)
		}
	}
	checkThreads(t)
	if uid, euid := os.Getuid(), os.Geteuid(); uid != 0 || euid != 0 {
		t.Errorf("the process has uids %d, %d", uid, euid)
	}
	must(t, os.Chmod(path, 0o600))
	if err := other.Be(func() error { _, err := net.Dial("unix", path); return err }); errdefs.KindOf(err) != errdefs.Denied {
		t.Errorf("a socket that is root's alone: %v", err)
	}
}
