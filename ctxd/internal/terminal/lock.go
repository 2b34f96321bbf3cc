package terminal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/rundir"
	"cortexfs.org/libctx/terminal"
	"golang.org/x/sys/unix"
)

// lock is the exclusive hold of a terminal: that of its lock file, which tells
// people who has it. It ends with the process.
type lock struct {
	layout paths.Layout
	place  terminal.Place
	f      *os.File
}

// tries bounds how often a directory that somebody else just removed is made
// again.
const tries = 16

// own takes a terminal and makes the directory of its socket; errdefs.Exists if
// another launcher has it.
func own(l paths.Layout, p terminal.Place) (*lock, error) {
	if err := rundir.EnsureTerminals(l); err != nil {
		return nil, err
	}
	path := l.TerminalLock(p.Agent, p.Session)
	var err error
	for range tries {
		var f *os.File
		f, err = take(l, path)
		switch {
		case err == nil:
			k := &lock{l, p, f}
			if err = k.sign(); err != nil {
				k.release()
				return nil, err
			}
			return k, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return nil, errdefs.New(errdefs.Exists, "terminal %s: runs already", p).
				WithHint("ctx agent attach %s --session %s joins it", p.Agent, p.Session)
		case !errors.Is(err, unix.ENOENT):
			return nil, errdefs.New(errdefs.KindOf(err), "terminal %s: lock: %w", p, err)
		}
	}
	return nil, errdefs.New(errdefs.Busy, "terminal %s: its directory is made and removed all the time: %w", p, err)
}

// take opens and locks a lock file. ENOENT means that another launcher's end
// removed it, or its directory, meanwhile.
func take(l paths.Layout, path string) (*os.File, error) {
	top, err := atomicfile.OpenDir(l.Terminals)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	rel, err := filepath.Rel(l.Terminals, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	dir, err := top.MkdirAll(rel, 0o700)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd, err := unix.Openat(dir.FD(), filepath.Base(path), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err == nil && st.Nlink == 0 {
		err = unix.ENOENT
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// sign writes whose lock it is: pid, start time and boot, on one line.
func (k *lock) sign() error {
	me, err := procid.Of(os.Getpid())
	if err != nil {
		return err
	}
	boot, err := procid.Boot()
	if err != nil {
		return err
	}
	if err = k.f.Truncate(0); err == nil {
		_, err = fmt.Fprintf(k.f, "%d %d %s\n", me.PID, me.Start, boot)
	}
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "terminal %s: lock: %w", k.place, err)
	}
	return nil
}

// release removes what the terminal has in the runtime directory, as far as
// nobody else uses it, and gives the terminal up. The socket is closed before.
func (k *lock) release() {
	dir := k.layout.TerminalDir(k.place.Agent, k.place.Session)
	os.Remove(filepath.Join(dir, "."+filepath.Base(k.layout.TerminalSocket(k.place.Agent, k.place.Session))+".lock")) // of unixsock
	os.Remove(k.f.Name())
	if os.Remove(dir) == nil {
		os.Remove(filepath.Dir(dir))
	}
	k.f.Close()
}
