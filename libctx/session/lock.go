package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// locks are the two lock files of a session open for writing. They are files of
// their own, in no sandbox's view: flock works through a read-only bind, so a
// lock on the ledger itself could be taken by a tool. The kernel gives both up
// when the process ends, however it ends.
type locks struct {
	own *os.File // locked while the session is open
	io  *os.File // locked around each append
}

// lockBase is the path of the session's lock files without their ending.
func (p Place) lockBase(name libctx.Session) string {
	sum := sha256.Sum256([]byte(p.rel(name)))
	return filepath.Join(p.Layout.Locks, hex.EncodeToString(sum[:16]))
}

// lock takes the session; errdefs.Busy if another owner has it.
func (p Place) lock(name libctx.Session) (*locks, error) {
	if err := makeLockDir(p.Layout.Locks); err != nil {
		return nil, errdefs.New(kindOf(err), "lock directory %s: %w", p.Layout.Locks, err)
	}
	base := p.lockBase(name)
	own, err := openLock(base + ".own")
	if err != nil {
		return nil, err
	}
	if err := flock(own, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		own.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errdefs.New(errdefs.Busy, "session %s: another process has it open", name)
		}
		return nil, errdefs.New(errdefs.IO, "lock %s: %w", base, err)
	}
	io, err := openLock(base + ".io")
	if err != nil {
		own.Close()
		return nil, err
	}
	return &locks{own: own, io: io}, nil
}

// exclusive runs fn while no reader measures the ledger.
func (l *locks) exclusive(fn func() error) error {
	if err := flock(l.io, unix.LOCK_EX); err != nil {
		return errdefs.New(errdefs.IO, "lock %s: %w", l.io.Name(), err)
	}
	defer flock(l.io, unix.LOCK_UN)
	return fn()
}

// close gives both up at once. Closing alone would not: a process that is being
// started has every descriptor until it executes its program.
func (l *locks) close() {
	l.io.Close()
	flock(l.own, unix.LOCK_UN)
	l.own.Close()
}

// measure runs fn while no writer appends. A reader that may not open the lock
// (it belongs to another user) or finds none measures without it: then the last
// line may be one that is being written.
func (p Place) measure(name libctx.Session, fn func() error) error {
	f, err := os.OpenFile(p.lockBase(name)+".io", os.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fn()
	}
	defer f.Close()
	if err := flock(f, unix.LOCK_SH); err != nil {
		return errdefs.New(errdefs.IO, "lock %s: %w", f.Name(), err)
	}
	return fn()
}

func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, errdefs.New(kindOf(err), "lock: %w", err)
	}
	return f, nil
}

// makeLockDir makes the lock directory private whatever the umask. What it lies
// in belongs to the tree or the runtime directory and is not private.
func makeLockDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o700)
	switch {
	case err == nil:
		return os.Chmod(dir, 0o700)
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	return nil
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}
