package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"slices"

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
	err := d.fstat(fd, rel, &st)
	if err == nil {
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), d.join(rel)), nil
}

// fstat describes what was opened at rel, which must be a regular file.
func (d *Dir) fstat(fd int, rel string, st *unix.Stat_t) error {
	if err := unix.Fstat(fd, st); err != nil {
		return &fs.PathError{Op: "stat", Path: d.join(rel), Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errdefs.New(errdefs.Invalid, "open %s: is a %s, not a regular file", d.join(rel), kind(st.Mode))
	}
	return nil
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
	b, _, err := d.ReadStat(rel, max)
	return b, err
}

// ReadStat is ReadFile and describes the file that was read; one that is
// errdefs.TooBig too. It takes half the system calls of Open, Stat and a read.
func (d *Dir) ReadStat(rel string, max int64) (b []byte, st unix.Stat_t, err error) {
	fd, err := d.open(rel, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, st, err
	}
	defer unix.Close(fd)
	if err := d.fstat(fd, rel, &st); err != nil {
		return nil, st, err
	}
	b = make([]byte, 0, min(st.Size, max)+1) // one more: the read that finds the end
	for {
		n, err := retry(func() (int, error) { return unix.Read(fd, b[len(b):cap(b)]) })
		if err != nil {
			return nil, st, &fs.PathError{Op: "read", Path: d.join(rel), Err: err}
		}
		b = b[:len(b)+n]
		switch {
		case n == 0:
			return b, st, nil
		case int64(len(b)) > max:
			return nil, st, errdefs.New(errdefs.TooBig, "read %s: is longer than %d bytes", d.join(rel), max)
		case len(b) == cap(b): // it grows
			b = slices.Grow(b, 512)
		}
	}
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
