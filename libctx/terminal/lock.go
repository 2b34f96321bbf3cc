package terminal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/rundir"
	"golang.org/x/sys/unix"
)

// Lock is the exclusive hold of a terminal: that of its lock file, which tells
// people who has it (docs/reference/supervisors.md, "Direct"). It ends with the
// process.
type Lock struct {
	place Place
	f     *os.File
}

// tries bounds how often what somebody else just removed is made again.
const tries = 16

// Own takes a terminal for this process and makes the directory of its socket;
// errdefs.Exists if another launcher has it, from whatever environment. The
// layout's lock directory is there (rundir.Ensure). The caller calls Release.
func (p Place) Own() (*Lock, error) {
	var f *os.File
	err := again(func() (err error) {
		f, err = p.take(unix.O_CREAT)
		return err
	})
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, errdefs.New(errdefs.Exists, "terminal %s: runs already", p).
			WithHint("ctx agent attach %s --session %s joins it", p.Agent, p.Session)
	case err != nil:
		return nil, errdefs.New(errdefs.KindOf(err), "terminal %s: lock: %w", p, err)
	}
	k := &Lock{p, f}
	if err = k.sign(); err == nil {
		err = p.socketDir()
	}
	if err != nil {
		k.Release()
		return nil, err
	}
	return k, nil
}

// again does something until it does not fail for what was just removed.
func again(do func() error) (err error) {
	for range tries {
		if err = do(); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// socketDir makes the directory of the socket. That above it is removed by
// whoever ends in it last.
func (p Place) socketDir() error {
	return again(func() error {
		if err := rundir.EnsureTerminals(p.Layout); err != nil {
			return err
		}
		top, err := atomicfile.OpenDir(p.Layout.Terminals)
		if err != nil {
			return err
		}
		defer top.Close()
		rel, err := filepath.Rel(p.Layout.Terminals, p.Layout.TerminalDir(p.Agent, p.Session))
		if err != nil {
			return err
		}
		dir, err := top.MkdirAll(rel, dirPerm)
		if err != nil {
			return err
		}
		return dir.Close()
	})
}

// take opens and locks the lock file. ENOENT means that there is none, or that
// its holder's end removed it meanwhile.
func (p Place) take(flag int) (*os.File, error) {
	path := p.Layout.TerminalLock(p.Agent, p.Session)
	dir, err := atomicfile.OpenDir(p.Layout.Locks)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd, err := unix.Openat(dir.FD(), filepath.Base(path), flag|unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, filePerm)
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
func (k *Lock) sign() error {
	me, err := procid.Of(os.Getpid())
	if err != nil {
		return err
	}
	boot, err := procid.Boot()
	if err != nil {
		return err
	}
	if err = k.f.Truncate(0); err == nil {
		_, err = k.f.WriteString(me.Line(boot))
	}
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "terminal %s: lock: %w", k.place, err)
	}
	return nil
}

// Release removes what the terminal has in the runtime directory, as far as
// nobody else uses it, and gives the terminal up. The socket is closed before.
func (k *Lock) Release() {
	Sweep(k.place.Layout.TerminalSocket(k.place.Agent, k.place.Session))
	os.Remove(k.f.Name())
	k.f.Close()
}

// Sweep removes the directories of a terminal's socket that is gone, and what
// kept two processes from binding it at once. The terminal's lock is held.
func Sweep(socket string) {
	dir, name := filepath.Split(socket)
	dir = filepath.Clean(dir)
	os.Remove(filepath.Join(dir, "."+name+".lock")) // of unixsock
	if os.Remove(dir) == nil {
		os.Remove(filepath.Dir(dir))
	}
}

// IsSocket reports whether a path is one at which the terminal of a session
// listens, with whatever runtime directory.
func IsSocket(socket string, a libctx.Agent, s libctx.Session) bool {
	own := paths.Layout{Terminals: "/terminal"}.TerminalSocket(a, s)
	return filepath.IsAbs(socket) && filepath.Clean(socket) == socket && strings.HasSuffix(socket, own)
}

// killed is the exit code of what SIGKILL ended.
const killed = 128 + int(unix.SIGKILL)

// Clear does what the launcher of this launch would have done at its end, if it
// was killed before: its link, its socket and its lock are removed, and it has
// exited. The launcher is proven and gone. What another one has taken by now
// stays, and what there is not is no error. It reports whether the terminal was
// this launch's.
func (p Place) Clear(l Launch) (ours bool, err error) {
	err = p.Owner.Do(func() error {
		f, err := p.take(0)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		text := make([]byte, libctx.MaxControlFile)
		n, _ := f.ReadAt(text, 0) // what is shorter is read with io.EOF
		if string(text[:n]) != (procid.ID{PID: l.PID, Start: l.Start}).Line(l.Boot) {
			return nil
		}
		link := p.Layout.TerminalLink(p.Owner.UID, p.Agent, p.Session)
		if to, err := os.Readlink(link); err == nil && to == l.Socket.Path {
			os.Remove(link)
		}
		if st, err := os.Lstat(l.Socket.Path); err == nil && st.Mode().Type() == fs.ModeSocket {
			os.Remove(l.Socket.Path)
		}
		Sweep(l.Socket.Path)
		ours = true
		return os.Remove(f.Name())
	})
	if err != nil || !ours {
		return ours, p.at(err)
	}
	m, err := p.Load()
	if errdefs.Is(err, errdefs.NotFound) { // it had come no further
		return true, nil
	}
	if err != nil || m.State != Running && m.State != Created {
		return true, err
	}
	code := killed
	return true, p.SetState(Exited, func(m *Meta) { m.ExitCode = &code })
}
