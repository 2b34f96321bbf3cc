package atomicfile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"golang.org/x/sys/unix"
)

// TempPrefix begins the name of every file that Replace writes before it
// renames it. One that is found later was left by a process that died.
const TempPrefix = ".tmp-"

// Replace puts data in place of a file, or makes it, with exactly the mode perm
// whatever the umask: a new file beside it is written, synced and renamed over
// it, then the directory is synced. After any error the old content is there and
// no other file, but for one case: if only the last sync failed, the new
// content is there and may not outlive a power loss. What is there and is not a
// regular file is errdefs.Invalid and stays.
func (d *Dir) Replace(rel string, data []byte, perm fs.FileMode) error {
	return d.replace(rel, data, perm, true)
}

// ReplaceLazy is Replace without the syncs, for files that can be made again
// from others: after a power loss the content may be old, new or empty.
func (d *Dir) ReplaceLazy(rel string, data []byte, perm fs.FileMode) error {
	return d.replace(rel, data, perm, false)
}

func (d *Dir) replace(rel string, data []byte, perm fs.FileMode, sync bool) error {
	dir, name, err := d.parent(rel)
	if err != nil {
		return err
	}
	defer dir.Close()
	switch st, err := dir.Lstat(name); {
	case err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG:
		return errdefs.New(errdefs.Invalid, "replace %s: is a %s, not a regular file", dir.join(name), kind(st.Mode))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	temp, err := dir.writeTemp(data, perm, sync)
	if err != nil {
		// Name the file that was to be replaced: the other is gone again.
		return &fs.PathError{Op: "replace", Path: dir.join(name), Err: unwrap(err)}
	}
	fault.Point("atomicfile.rename")
	if err := unix.Renameat(dir.FD(), temp, dir.FD(), name); err != nil {
		unix.Unlinkat(dir.FD(), temp, 0)
		return &fs.PathError{Op: "replace", Path: dir.join(name), Err: err}
	}
	if sync {
		return dir.Sync()
	}
	return nil
}

// writeTemp writes a file of a fresh name into d and returns the name. It leaves
// nothing behind if it fails.
func (d *Dir) writeTemp(data []byte, perm fs.FileMode, sync bool) (name string, err error) {
	var random [8]byte
	rand.Read(random[:])
	name = TempPrefix + hex.EncodeToString(random[:])
	f, err := d.create(name, unix.O_RDWR, perm)
	if err != nil {
		unix.Unlinkat(d.FD(), name, 0) // create may fail after it made the file
		return "", err
	}
	_, err = fault.Write(fault.At("atomicfile.write"), f, data)
	if err == nil && sync {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		unix.Unlinkat(d.FD(), name, 0)
		return "", err
	}
	return name, nil
}

// Sweep removes what Replace left in the directory when its process was killed.
// The caller knows that nobody replaces a file there now. What can not be
// removed stays; it is in nobody's way.
func (d *Dir) Sweep() {
	entries, err := d.ReadDir(".")
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), TempPrefix) {
			d.Remove(e.Name())
		}
	}
}
