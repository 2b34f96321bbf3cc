package atomicfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// Open opens a regular file for reading. Anything else, a FIFO or a device too,
// is errdefs.Invalid at once. The caller closes it.
func (d *Dir) Open(rel string) (*os.File, error) {
	// O_NONBLOCK: a FIFO without a writer must not stop us before we know it.
	fd, err := d.open(rel, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	return d.regular(fd, rel)
}

// OpenAppend opens a regular file for reading and for writing at its end. If it
// is not there it is made, with exactly the mode perm whatever the umask, and
// its entry is durable before OpenAppend returns. The caller closes it.
func (d *Dir) OpenAppend(rel string, perm fs.FileMode) (f *os.File, created bool, err error) {
	for range tries {
		fd, err := d.open(rel, unix.O_RDWR|unix.O_APPEND|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err == nil {
			f, err = d.regular(fd, rel)
			return f, false, err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, false, err
		}
		parent, name, err := d.parent(rel)
		if err != nil {
			return nil, false, err
		}
		f, err = parent.create(name, unix.O_RDWR|unix.O_APPEND, perm)
		if err == nil {
			err = parent.Sync()
		}
		parent.Close()
		if errors.Is(err, fs.ErrExist) {
			continue // made by somebody else in between: open theirs
		}
		if err != nil {
			if f != nil {
				f.Close()
			}
			return nil, false, err
		}
		return f, true, nil
	}
	return nil, false, &fs.PathError{Op: "open", Path: d.join(rel), Err: unix.EAGAIN}
}

// Create makes a new file for writing, with exactly the mode perm whatever the
// umask; one that is there, a dangling link too, is errdefs.Exists. Its entry is
// durable after Sync of its directory. The caller closes it.
func (d *Dir) Create(rel string, perm fs.FileMode) (*os.File, error) {
	return d.create(rel, unix.O_RDWR, perm)
}

func (d *Dir) create(rel string, flags int, perm fs.FileMode) (*os.File, error) {
	fd, err := d.open(rel, flags|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), d.join(rel))
	if err := unix.Fchmod(fd, bits(perm)); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "chmod", Path: d.join(rel), Err: err}
	}
	return f, nil
}

// regular makes a file of a descriptor that was opened with O_NONBLOCK.
func (d *Dir) regular(fd int, rel string) (*os.File, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	switch {
	case err != nil:
		err = &fs.PathError{Op: "stat", Path: d.join(rel), Err: err}
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = errdefs.New(errdefs.Invalid, "open %s: is a %s, not a regular file", d.join(rel), kind(st.Mode))
	default:
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), d.join(rel)), nil
}

func kind(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "directory"
	case unix.S_IFIFO:
		return "FIFO"
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFLNK:
		return "link"
	}
	return "device"
}

// ReadFile returns the content of a regular file of at most max bytes. A longer
// one is errdefs.TooBig.
func (d *Dir) ReadFile(rel string, max int64) ([]byte, error) {
	f, err := d.Open(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(f, max+1))
	switch {
	case err != nil:
		return nil, err
	case n > max:
		return nil, errdefs.New(errdefs.TooBig, "read %s: is longer than %d bytes", d.join(rel), max)
	}
	return b.Bytes(), nil
}

// Lstat describes an entry; a link in the last place is described itself.
func (d *Dir) Lstat(rel string) (unix.Stat_t, error) {
	var st unix.Stat_t
	// Only with both flags may the last component be a link.
	fd, err := d.open(rel, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return st, err
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &st); err != nil {
		return st, &fs.PathError{Op: "stat", Path: d.join(rel), Err: err}
	}
	return st, nil
}
