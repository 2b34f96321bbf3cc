package view

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// entry is a directory entry as lstat describes it.
type entry struct {
	name string
	st   unix.Stat_t
}

// list describes the entries of a directory whose names keep wants, in the
// order of names. A directory of more than libctx.MaxToolDir entries is
// errdefs.TooBig: it is read on every call, with nobody to wait for it.
func list(d *atomicfile.Dir, rel string, keep func(string) bool) ([]entry, error) {
	sub, err := d.Sub(rel)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	names, err := names(sub)
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, name := range names {
		if !keep(name) {
			continue
		}
		e := entry{name: name}
		switch err := unix.Fstatat(sub.FD(), name, &e.st, unix.AT_SYMLINK_NOFOLLOW); {
		case err == nil:
			all = append(all, e)
		case !errors.Is(err, unix.ENOENT):
			return nil, err
		}
	}
	return all, nil
}

func names(d *atomicfile.Dir) ([]string, error) {
	var all []string
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(d.FD(), buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n <= 0:
			slices.Sort(all)
			return all, nil
		}
		_, _, all = unix.ParseDirent(buf[:n], -1, all)
		if len(all) > libctx.MaxToolDir {
			return nil, errdefs.New(errdefs.TooBig, "%s: has more than %d entries", d.Path(), libctx.MaxToolDir)
		}
	}
}

// known reports whether a sorted list has a name.
func known(sorted []string, name string) bool {
	_, ok := slices.BinarySearch(sorted, name)
	return ok
}

// print is the fingerprint of files: equal when no file was replaced, changed
// or given other rights.
type print [sha256.Size]byte

// fingerprint is the print of entries in their order. Of directories only what
// they are counts, since their own times change with every file written beside
// another.
func fingerprint(entries []entry) print {
	b := make([]byte, 0, 96*len(entries))
	for _, e := range entries {
		b = append(append(b, e.name...), 0)
		numbers := []uint64{e.st.Dev, e.st.Ino, uint64(e.st.Mode), uint64(e.st.Uid)<<32 | uint64(e.st.Gid)}
		if !isDir(&e.st) {
			numbers = append(numbers, uint64(e.st.Size), uint64(e.st.Mtim.Nano()), uint64(e.st.Ctim.Nano()))
		}
		for _, n := range numbers {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
	}
	return sha256.Sum256(b)
}
