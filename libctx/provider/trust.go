package provider

import (
	"io/fs"
	"os"
	"strings"

	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// Modes that a file or directory may not have.
const (
	looseWrite = 0o022 // others can change it
	looseRead  = 0o077 // others can do anything with it
)

func self() uint32 { return uint32(os.Geteuid()) }

// trust refuses a file or directory that neither me nor root made, or that
// others can change or look into. The kernel has followed no link to it.
func trust(path string, st *unix.Stat_t, loose, me uint32) error {
	switch {
	case st.Uid != me && st.Uid != 0:
		return errdefs.New(errdefs.Denied, "%s: belongs to uid %d", path, st.Uid)
	case st.Mode&loose != 0:
		hint := "chmod go-w "
		if loose == looseRead {
			hint = "chmod go-rwx "
		}
		return errdefs.New(errdefs.Denied, "%s: has mode %#o, which lets others in", path, st.Mode&0o777).WithHint("%s%s", hint, path)
	}
	return nil
}

// openDir opens a directory below a path that is trusted, though not to be
// closed to others. Each level from there on is checked.
func openDir(base, rel string, loose, me uint32) (*atomicfile.Dir, error) {
	return walk(base, rel, loose, me, func(d *atomicfile.Dir, name string) (*atomicfile.Dir, error) { return d.Sub(name) })
}

// makeDir is openDir and makes what is missing.
func makeDir(base, rel string, perm fs.FileMode, loose, me uint32) (*atomicfile.Dir, error) {
	if err := os.MkdirAll(base, perm); err != nil {
		return nil, err
	}
	return walk(base, rel, loose, me, func(d *atomicfile.Dir, name string) (*atomicfile.Dir, error) { return d.MkdirAll(name, perm) })
}

func walk(base, rel string, loose, me uint32, step func(*atomicfile.Dir, string) (*atomicfile.Dir, error)) (*atomicfile.Dir, error) {
	dir, err := atomicfile.OpenDir(base)
	if err != nil {
		return nil, err
	}
	check := func(loose uint32) error {
		var st unix.Stat_t
		if err := unix.Fstat(dir.FD(), &st); err != nil {
			return &fs.PathError{Op: "stat", Path: dir.Path(), Err: err}
		}
		return trust(dir.Path(), &st, loose, me)
	}
	for name := range strings.SplitSeq(rel, "/") {
		if err := check(looseWrite); err != nil {
			dir.Close()
			return nil, err
		}
		next, err := step(dir, name)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	if err := check(loose); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}
