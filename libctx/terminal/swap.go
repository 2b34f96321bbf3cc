package terminal

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// swaps bounds how often a file is written again because somebody else wrote it
// at the same moment.
const swaps = 64

// swap replaces a small file by what to makes of its content, nil if it is
// missing, so that of two processes that do this at the same moment none undoes
// what the other did: the new file changes places with the old one, and if that
// is not the one to saw, to is asked again with what was found. A lock would be
// simpler, but a sandbox can open the directory and hold any lock there.
func swap(d *atomicfile.Dir, name string, perm fs.FileMode, to func([]byte) ([]byte, error)) error {
	there, err := d.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		text, err := to(nil)
		if err != nil {
			return err
		}
		return d.Replace(name, text, perm)
	}
	if err != nil {
		return err
	}
	seen := there // what to is told of; there is what ought to be in place
	defer func() { seen.Close(); there.Close() }()
	for range swaps {
		text, err := content(seen)
		if err != nil {
			return err
		}
		if text, err = to(text); err != nil {
			return err
		}
		mine, out, err := exchange(d, name, text, perm)
		if err != nil {
			return err
		}
		if out == nil || same(out, there) {
			mine.Close()
			if out != nil {
				out.Close()
			}
			return d.Sync()
		}
		seen.Close()
		there.Close()
		seen, there = out, mine
	}
	return errdefs.New(errdefs.Busy, "%s: others write it all the time", name)
}

// content reads a whole file from its beginning.
func content(f *os.File) ([]byte, error) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, libctx.MaxControlFile+1))
	if err == nil && len(text) > libctx.MaxControlFile {
		err = errdefs.New(errdefs.TooBig, "read %s: is longer than %d bytes", f.Name(), libctx.MaxControlFile)
	}
	return text, err
}

func same(a, b *os.File) bool {
	x, err1 := a.Stat()
	y, err2 := b.Stat()
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// exchange puts a new file in the place of name. Both files come back open, so
// that no other file can get their inode; out is nil if the file system can only
// replace.
func exchange(d *atomicfile.Dir, name string, text []byte, perm fs.FileMode) (mine, out *os.File, err error) {
	var random [8]byte
	rand.Read(random[:])
	temp := atomicfile.TempPrefix + hex.EncodeToString(random[:])
	fail := func(err error) (*os.File, *os.File, error) {
		if mine != nil {
			mine.Close()
		}
		unix.Unlinkat(d.FD(), temp, 0)
		return nil, nil, err
	}
	if mine, err = d.Create(temp, perm); err != nil {
		return fail(err)
	}
	if _, err = mine.Write(text); err == nil {
		err = mine.Sync()
	}
	if err != nil {
		return fail(err)
	}
	err = unix.Renameat2(d.FD(), temp, d.FD(), name, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOENT) {
		if err = unix.Renameat(d.FD(), temp, d.FD(), name); err == nil {
			return mine, nil, nil
		}
	}
	if err != nil {
		return fail(&fs.PathError{Op: "replace", Path: d.Path() + "/" + name, Err: err})
	}
	if out, err = d.Open(temp); err != nil {
		return fail(err)
	}
	if err = unix.Unlinkat(d.FD(), temp, 0); err != nil {
		out.Close()
		return fail(&fs.PathError{Op: "remove", Path: d.Path() + "/" + temp, Err: err})
	}
	return mine, out, nil
}
