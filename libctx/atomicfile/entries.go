package atomicfile

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// ReadDir lists a directory in the order of names. Each entry was looked at by
// its name in the open directory, links themselves and not what they lead to;
// what vanished meanwhile is left out.
func (d *Dir) ReadDir(rel string) ([]fs.DirEntry, error) {
	sub, err := d.Sub(rel)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	names, err := sub.f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	list := make([]fs.DirEntry, 0, len(names))
	for _, name := range names {
		e := entry{name: name}
		switch err := unix.Fstatat(sub.FD(), name, &e.st, unix.AT_SYMLINK_NOFOLLOW); {
		case err == nil:
			list = append(list, fs.FileInfoToDirEntry(e))
		case !errors.Is(err, unix.ENOENT):
			return nil, &fs.PathError{Op: "stat", Path: sub.join(name), Err: err}
		}
	}
	return list, nil
}

// entry is the fs.FileInfo of an entry; Sys is its unix.Stat_t.
type entry struct {
	name string
	st   unix.Stat_t
}

func (e entry) Name() string       { return e.name }
func (e entry) Size() int64        { return e.st.Size }
func (e entry) ModTime() time.Time { return time.Unix(e.st.Mtim.Unix()) }
func (e entry) IsDir() bool        { return e.Mode().IsDir() }
func (e entry) Sys() any           { return e.st }

func (e entry) Mode() fs.FileMode {
	m := fs.FileMode(e.st.Mode & 0o777)
	switch e.st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFBLK:
		m |= fs.ModeDevice
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	}
	if e.st.Mode&unix.S_ISUID != 0 {
		m |= fs.ModeSetuid
	}
	if e.st.Mode&unix.S_ISGID != 0 {
		m |= fs.ModeSetgid
	}
	if e.st.Mode&unix.S_ISVTX != 0 {
		m |= fs.ModeSticky
	}
	return m
}

// Remove removes one entry: a file, a link itself, or an empty directory.
func (d *Dir) Remove(rel string) error {
	dir, name, err := d.parent(rel)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.remove(name)
}

func (d *Dir) remove(name string) error {
	err := unix.Unlinkat(d.FD(), name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		if e := unix.Unlinkat(d.FD(), name, unix.AT_REMOVEDIR); !errors.Is(e, unix.ENOTDIR) {
			err = e
		}
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: d.join(name), Err: err}
	}
	return nil
}

// RemoveAll removes an entry and, if it is a directory, all below it. Links are
// removed themselves. What is not there is no error. A directory without the
// write bit of its owner gets it first, if the caller may give it.
func (d *Dir) RemoveAll(rel string) error {
	dir, name, err := d.parent(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.removeAll(name)
}

func (d *Dir) removeAll(name string) error {
	err := d.remove(name)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST):
		return err
	}
	sub, err := d.Sub(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	var st unix.Stat_t
	if err := unix.Fstat(sub.FD(), &st); err == nil && st.Mode&0o300 != 0o300 {
		// Whether it helped shows when the first entry is removed.
		_ = unix.Fchmod(sub.FD(), st.Mode&0o7777|0o700)
	}
	names, err := sub.f.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := sub.removeAll(n); err != nil {
			return err
		}
	}
	return d.remove(name)
}
