package models

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// tree is an open tree and who, besides root, is believed in it.
type tree struct {
	root  *atomicfile.Dir
	owner uint32
}

// within runs fn on the open tree. In system mode the models are root's.
func within[T any](l paths.Layout, fn func(*tree) (T, error)) (T, error) {
	root, err := atomicfile.OpenDir(l.Root)
	if err != nil {
		var none T
		return none, errdefs.New(errdefs.KindOf(err), "tree %s: %w", l.Root, bare(err))
	}
	defer root.Close()
	t := &tree{root: root}
	if !l.System {
		t.owner = uint32(os.Geteuid())
	}
	return fn(t)
}

// check refuses directories that are links or not to be believed.
func (t *tree) check(rels ...string) error {
	for _, rel := range rels {
		dir, err := t.dir(rel)
		if err != nil {
			return err
		}
		dir.Close()
	}
	return nil
}

// dir opens a directory that is to be believed. One that is not there is
// errdefs.NotFound.
func (t *tree) dir(rel string) (*atomicfile.Dir, error) {
	return t.dirOf(rel, t.owner)
}

func (t *tree) dirOf(rel string, owner uint32) (*atomicfile.Dir, error) {
	dir, err := t.root.Sub(rel)
	if err != nil {
		return nil, t.blame(t.root, rel, rel, err)
	}
	var st unix.Stat_t
	err = unix.Fstat(dir.FD(), &st)
	if err == nil {
		err = trusted(path.Join(".", rel), &st, owner)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// blame says what stands where something could not be opened.
func (t *tree) blame(d *atomicfile.Dir, rel, name string, err error) error {
	st, lerr := d.Lstat(rel)
	switch {
	case errors.Is(err, unix.ELOOP), lerr == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return errdefs.New(errdefs.Denied, "%s: is, or is reached by, a link", name)
	case errors.Is(err, fs.ErrNotExist):
		return errdefs.New(errdefs.NotFound, "the tree has no such model").WithHint("ctx model ls lists them")
	case errdefs.Is(err, errdefs.Invalid), errdefs.Is(err, errdefs.TooBig):
		return err
	}
	return errdefs.New(errdefs.KindOf(err), "%s: %w", name, bare(err))
}

// trusted says why a file or directory is not to be believed, or nil: it must
// belong to root or to owner, and nobody else may be able to write it.
func trusted(name string, st *unix.Stat_t, owner uint32) error {
	switch {
	case st.Uid != 0 && st.Uid != owner:
		return errdefs.New(errdefs.Denied, "%s: belongs to uid %d, neither to root nor to uid %d", name, st.Uid, owner).
			WithHint("give it to its owner with chown, or remove it")
	case st.Mode&unix.S_IFMT != unix.S_IFLNK && st.Mode&0o022 != 0:
		return errdefs.New(errdefs.Denied, "%s: can be written by others than its owner (mode %04o)", name, st.Mode&0o7777).
			WithHint("take the write bit from group and others: chmod go-w")
	}
	return nil
}

// bare is the errno of a path error, whose path the message has already.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
