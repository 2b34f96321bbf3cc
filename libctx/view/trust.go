package view

import (
	"errors"
	"io/fs"
	"os"

	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"golang.org/x/sys/unix"
)

// trusted says why a file or directory is not to be believed, or nil: it must
// belong to root or to owner, and nobody else may be able to write it. name is
// how the person who reads the message knows it.
func trusted(name string, st *unix.Stat_t, owner uint32) error {
	switch {
	case fault.Off("trust:files"):
	case st.Uid != 0 && st.Uid != owner:
		return distrust(errdefs.New(errdefs.Denied, "%s: belongs to uid %d, neither to root nor to uid %d", name, st.Uid, owner).
			WithHint("give it to its owner with chown, or remove it"))
	case st.Mode&0o022 != 0:
		return loose(name, st)
	}
	return nil
}

// loose is the refusal of what others could have written.
func loose(name string, st *unix.Stat_t) error {
	return distrust(errdefs.New(errdefs.Denied, "%s: can be written by others than its owner (mode %04o)", name, st.Mode&0o7777).
		WithHint("take the write bit from group and others: chmod go-w"))
}

// untrusted marks the errors that are about trust, not about reading.
type untrusted struct{ err *errdefs.Error }

func distrust(err *errdefs.Error) error { return untrusted{err} }

func (u untrusted) Error() string { return u.err.Error() }
func (u untrusted) Unwrap() error { return u.err }

func isDistrust(err error) bool {
	var u untrusted
	return errors.As(err, &u)
}

// notRegular is the refusal of an entry that is no regular file.
func notRegular(name string, st *unix.Stat_t) error {
	return distrust(errdefs.New(errdefs.Denied, "%s: is %s, not a regular file", name, kindOf(st)))
}

// open opens a regular file for reading and looks at what was opened: it must
// be trusted. The caller closes the file. What is there and is no regular file
// is errdefs.Denied; what is not there is errdefs.NotFound.
func open(d *atomicfile.Dir, rel, name string, owner uint32) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	f, err := d.Open(rel)
	if err != nil {
		return nil, st, blame(d, rel, name, err)
	}
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, st, errdefs.New(errdefs.IO, "%s: %w", name, err)
	}
	if err := trusted(name, &st, owner); err != nil {
		f.Close()
		return nil, st, err
	}
	return f, st, nil
}

// read reads a trusted regular file of at most max bytes, as open opens it.
func read(d *atomicfile.Dir, rel, name string, owner uint32, max int64) ([]byte, unix.Stat_t, error) {
	text, st, err := d.ReadStat(rel, max)
	if isRegular(&st) {
		if err := trusted(name, &st, owner); err != nil {
			return nil, st, err
		}
	}
	switch {
	case err == nil:
		return text, st, nil
	case errdefs.Is(err, errdefs.TooBig):
		return nil, st, errdefs.New(errdefs.TooBig, "%s: is longer than %d bytes", name, max)
	}
	return nil, st, blame(d, rel, name, err)
}

// blame turns the failure to open rel into one that says what stands there.
func blame(d *atomicfile.Dir, rel, name string, err error) error {
	st, lerr := d.Lstat(rel)
	switch {
	case lerr == nil && !isRegular(&st):
		return notRegular(name, &st)
	case errors.Is(err, unix.ELOOP):
		return distrust(errdefs.New(errdefs.Denied, "%s: is reached by a link", name))
	case errors.Is(err, fs.ErrNotExist):
		return errdefs.New(errdefs.NotFound, "%s: is not there", name)
	}
	return errdefs.New(errdefs.KindOf(err), "%s: %w", name, bare(err))
}

// bare is the errno of a path error, whose path the message has already.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// kindOf says what an entry is.
func kindOf(st *unix.Stat_t) string {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return "a regular file"
	case unix.S_IFLNK:
		return "a link"
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFIFO:
		return "a FIFO"
	case unix.S_IFSOCK:
		return "a socket"
	}
	return "a device"
}

func isRegular(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFREG }
func isDir(st *unix.Stat_t) bool     { return st.Mode&unix.S_IFMT == unix.S_IFDIR }

func modeOf(st *unix.Stat_t) fs.FileMode { return fs.FileMode(st.Mode & 0o777) }
