// Package unixsock makes and reaches Unix stream sockets by path: paths longer
// than the kernel's 107 bytes, dead sockets left by a crash, several starters
// at once, and no moment at which a socket is reachable with wrong rights.
package unixsock

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/peercred"
	"golang.org/x/sys/unix"
)

// Listener is a listening socket bound to a path. Accept returns the peer with
// the connection, so that nobody is served before the kernel has named them.
type Listener struct {
	sock *net.UnixListener
	path string
	ino  uint64
	lock *os.File // held while the listener lives; nil for an inherited socket
}

// Options of Listen.
type Options struct {
	Perm     os.FileMode // exact mode of the socket file, whatever the umask
	UID, GID int         // owner of the socket file; -1 leaves it
}

// Listen binds path. A dead socket there is replaced; a live one is never
// touched and the error is errdefs.Exists. Of several starters exactly one wins:
// the winner holds an exclusive lock on ".NAME.lock" beside the socket until
// Close or its death. The caller owns the listener and closes it.
func Listen(path string, o Options) (*Listener, error) {
	dir, err := os.OpenFile(filepath.Dir(path), unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "listen on %s: %w", path, err)
	}
	defer dir.Close()
	l := &Listener{path: path}
	if err := l.bind(dir, filepath.Base(path), o); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Listener) bind(dir *os.File, name string, o Options) error {
	fail := func(what string, err error) error {
		return errdefs.New(errdefs.KindOf(err), "listen on %s: %s: %w", l.path, what, err)
	}
	lock, err := unix.Openat(int(dir.Fd()), "."+name+".lock", unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fail("lock", err)
	}
	l.lock = os.NewFile(uintptr(lock), "."+name+".lock")
	taken := func() error {
		return errdefs.New(errdefs.Exists, "listen on %s: another process listens there", l.path)
	}
	if err := unix.Flock(lock, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return taken()
	} else if err != nil {
		return fail("lock", err)
	}
	// Somebody who does not know our lock (systemd, an older version) may be
	// alive behind the file all the same.
	if c, err := dialAt(dir, name); err == nil {
		c.Close()
		return taken()
	}
	return l.make(dir, name, o)
}

// make binds the socket and moves it to its name.
func (l *Listener) make(dir *os.File, name string, o Options) error {
	fail := func(what string, err error) error {
		return errdefs.New(errdefs.KindOf(err), "listen on %s: %s: %w", l.path, what, err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fail("socket", err)
	}
	f := os.NewFile(uintptr(fd), l.path)
	defer f.Close()
	// The mode of the socket itself is what bind gives the file, so it is never
	// wider than this; it becomes reachable only by the rename at the end.
	if err := unix.Fchmod(fd, 0o600); err != nil {
		return fail("mode", err)
	}
	temp := "." + name + "." + strconv.Itoa(os.Getpid())
	if err := unix.Unlinkat(int(dir.Fd()), temp, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return fail("unlink", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: procPath(dir, temp)}); err != nil {
		return fail("bind", err)
	}
	if err := l.publish(dir, temp, name, fd, o); err != nil {
		unix.Unlinkat(int(dir.Fd()), temp, 0)
		return fail("publish", err)
	}
	sock, err := net.FileListener(f)
	if err != nil {
		return fail("listener", err)
	}
	l.sock = sock.(*net.UnixListener)
	return nil
}

// publish gives the bound socket its rights, lets it listen, and only then
// moves it to its name.
func (l *Listener) publish(dir *os.File, temp, name string, fd int, o Options) error {
	at := int(dir.Fd())
	// The mode first: once it is somebody else's, setting it would take one more
	// capability of root's.
	if err := unix.Fchmodat(at, temp, uint32(o.Perm.Perm()), 0); err != nil {
		return err
	}
	if o.UID >= 0 || o.GID >= 0 {
		if err := unix.Fchownat(at, temp, o.UID, o.GID, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	if err := unix.Listen(fd, 1024); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(at, temp, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	l.ino = st.Ino
	var old unix.Stat_t
	if err := unix.Fstatat(at, name, &old, unix.AT_SYMLINK_NOFOLLOW); err == nil && old.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return errdefs.New(errdefs.Exists, "a file that is not a socket is in the way")
	}
	return unix.Renameat(at, temp, at, name)
}

// Inherit takes over a listening socket passed by descriptor (LISTEN_FDS). The
// passer keeps the path: Close does not remove it.
func Inherit(f *os.File) (*Listener, error) {
	defer f.Close()
	got, err := net.FileListener(f)
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "inherited descriptor is not a listening socket: %w", err)
	}
	sock, ok := got.(*net.UnixListener)
	if !ok {
		got.Close()
		return nil, errdefs.New(errdefs.Invalid, "inherited descriptor is not a Unix socket")
	}
	sock.SetUnlinkOnClose(false)
	return &Listener{sock: sock}, nil
}

// Accept waits for a connection and returns it with its peer. A peer that the
// kernel can not name is closed and skipped.
func (l *Listener) Accept() (*net.UnixConn, peercred.Peer, error) {
	for {
		c, err := l.sock.AcceptUnix()
		if err != nil {
			return nil, peercred.Peer{}, err
		}
		peer, err := peercred.Of(c)
		if err == nil {
			return c, peer, nil
		}
		c.Close()
	}
}

// AcceptQueued takes a connection that waits already; with none it returns an
// error soon.
func (l *Listener) AcceptQueued() (*net.UnixConn, error) {
	// A process that the socket was passed to may have made it blocking for
	// everybody who holds it.
	if raw, err := l.sock.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.SetNonblock(int(fd), true) })
	}
	l.sock.SetDeadline(time.Now().Add(10 * time.Millisecond))
	defer l.Continue()
	return l.sock.AcceptUnix()
}

// File is a duplicate of the listening descriptor, for a child that inherits
// it; the caller closes it.
func (l *Listener) File() (*os.File, error) { return l.sock.File() }

// Close stops listening; a socket file of our own making is removed if it is
// still ours.
func (l *Listener) Close() error {
	var err error
	if l.lock != nil && l.sock != nil {
		var st unix.Stat_t
		if unix.Lstat(l.path, &st) == nil && st.Ino == l.ino {
			os.Remove(l.path)
		}
	}
	if l.sock != nil {
		err = l.sock.Close()
	}
	if l.lock != nil {
		l.lock.Close()
	}
	return err
}

// procPath reaches name inside dir by a short path, whatever dir's own length.
func procPath(dir *os.File, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name
}

// Interrupt makes a waiting and every later Accept return an error without
// closing the socket, so that a queue shared with another holder survives.
func (l *Listener) Interrupt() { l.sock.SetDeadline(time.Unix(1, 0)) }

// Continue undoes Interrupt.
func (l *Listener) Continue() { l.sock.SetDeadline(time.Time{}) }
