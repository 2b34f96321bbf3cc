// Package atomicfile reads and replaces files below a directory without ever
// following a link. Everything is reached from an open directory by openat2
// with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS, so that
// a component that is a link, or is swapped for one at any moment, is refused
// and what it leads to stays untouched.
//
// A replaced file has its old content or its new one, whenever the power goes.
//
// Paths given as rel are relative, with single slashes and without "..";
// anything else is errdefs.Invalid. Errors of the system are *fs.PathError with
// the errno inside, of which errdefs.KindOf makes the kind: a link ELOOP
// (Invalid), a missing file ENOENT (NotFound), a full disk ENOSPC (NoSpace).
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"golang.org/x/sys/unix"
)

// Dir is an open directory. It may be used from any goroutine; the one who
// opened it closes it, after the last use.
type Dir struct {
	f    *os.File
	path string
}

// OpenDir opens a directory. The path itself is trusted: links in it are
// followed.
func OpenDir(path string) (*Dir, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return newDir(fd, path), nil
}

func newDir(fd int, path string) *Dir { return &Dir{os.NewFile(uintptr(fd), path), path} }

// Close closes the directory; files opened through it stay open.
func (d *Dir) Close() error { return d.f.Close() }

// FD is the directory's descriptor, close-on-exec, valid until Close.
func (d *Dir) FD() int { return int(d.f.Fd()) }

// Path is how the directory was reached, for messages.
func (d *Dir) Path() string { return d.path }

// Sub opens a directory below d; "." is d once more. The caller closes it.
func (d *Dir) Sub(rel string) (*Dir, error) {
	fd, err := d.open(rel, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return newDir(fd, d.join(rel)), nil
}

// MkdirAll opens a directory below d and makes what is missing of it. Each new
// directory has exactly the mode perm, whatever the umask, and is durable, entry
// included, before MkdirAll returns. Directories that exist stay as they are.
// The caller closes the result.
func (d *Dir) MkdirAll(rel string, perm fs.FileMode) (*Dir, error) {
	sub, err := d.Sub(rel)
	if !errors.Is(err, fs.ErrNotExist) {
		return sub, err
	}
	parent, name := path.Split(rel)
	above, err := d.MkdirAll(path.Clean("./"+parent), perm)
	if err != nil {
		return nil, err
	}
	defer above.Close()
	return above.mkdir(name, perm)
}

func (d *Dir) mkdir(name string, perm fs.FileMode) (*Dir, error) {
	fail := func(op string, err error) (*Dir, error) {
		return nil, &fs.PathError{Op: op, Path: d.join(name), Err: err}
	}
	// Nobody else may look in before the mode is right.
	switch err := unix.Mkdirat(d.FD(), name, 0o700); {
	case errors.Is(err, unix.EEXIST): // somebody was faster: theirs, if it is a directory
		return d.Sub(name)
	case err != nil:
		return fail("mkdir", err)
	}
	sub, err := d.Sub(name)
	if err != nil {
		return nil, err
	}
	err = unix.Fchmod(sub.FD(), bits(perm))
	if err == nil {
		err = sub.Sync()
	}
	if err == nil {
		err = d.Sync()
	}
	if err != nil {
		sub.Close()
		return fail("mkdir", unwrap(err))
	}
	return sub, nil
}

// Sync makes the entries of the directory durable.
func (d *Dir) Sync() error {
	_, err := retry(func() (int, error) { return 0, unix.Fsync(d.FD()) })
	if err != nil {
		return &fs.PathError{Op: "fsync", Path: d.path, Err: err}
	}
	return nil
}

func (d *Dir) join(rel string) string { return filepath.Join(d.path, rel) }

// open is the one way by which anything below d is reached.
func (d *Dir) open(rel string, flags int, perm uint32) (int, error) {
	if err := checkRel(rel); err != nil {
		return -1, err
	}
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC),
		Mode:    uint64(perm),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	if fault.Off("atomicfile:links") {
		how.Resolve = 0
	}
	fd, err := retry(func() (int, error) { return unix.Openat2(d.FD(), rel, &how) })
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.ENOSYS):
		return -1, errdefs.New(errdefs.Unsupported, "open %s: the kernel has no openat2: %w", d.join(rel), err)
	}
	return -1, &fs.PathError{Op: "open", Path: d.join(rel), Err: err}
}

// parent opens the directory that holds rel and returns the last name.
func (d *Dir) parent(rel string) (*Dir, string, error) {
	if err := checkRel(rel); err != nil {
		return nil, "", err
	}
	dir, name := path.Split(rel)
	if name == "." {
		return nil, "", errdefs.New(errdefs.Invalid, "path %q: names no entry", rel)
	}
	sub, err := d.Sub(path.Clean("./" + dir))
	return sub, name, err
}

func checkRel(rel string) error {
	ok := rel != "" && rel[0] != '/' && path.Clean(rel) == rel && !strings.ContainsRune(rel, 0)
	if !ok || rel == ".." || strings.HasPrefix(rel, "../") {
		return errdefs.New(errdefs.Invalid, "path %q: is not a plain relative path", rel)
	}
	return nil
}

// tries bounds how often a call that lost a race with a rename is made again.
const tries = 128

// retry repeats a system call that a signal interrupted, or that openat2 gave
// up (EAGAIN) because something was renamed beside it.
func retry(call func() (int, error)) (int, error) {
	var n int
	var err error
	for range tries {
		n, err = call()
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return n, err
}

// unwrap is the errno of a path error, for wrapping under another path.
func unwrap(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// bits is a mode as the kernel has it.
func bits(perm fs.FileMode) uint32 {
	b := uint32(perm.Perm())
	if perm&fs.ModeSticky != 0 {
		b |= unix.S_ISVTX
	}
	if perm&fs.ModeSetgid != 0 {
		b |= unix.S_ISGID
	}
	return b
}
