package edit

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool/object"
	"golang.org/x/sys/unix"
)

// beforeCompare is called between the new file and the last look at the old one;
// tests change things there.
var beforeCompare = func() {}

// commit makes content the file: a new file beside it, complete and durable,
// takes its name, if the old one is still what was found. Whatever fails, the
// old file stays and the new one is removed.
func (t *target) commit(ctx context.Context, content []byte) error {
	name := ".ctx-" + strings.ToLower(rand.Text()) + ".tmp"
	perm := uint32(0o644) // less the umask, for a file that is new
	if t.there {
		perm = 0o600
	}
	fd, err := object.Create(t.dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, perm)
	if err != nil {
		return t.failed("a new file in its directory can not be made", err)
	}
	err = t.fill(os.NewFile(uintptr(fd), t.path), content)
	if err == nil && ctx.Err() != nil {
		err = object.Explain(t.path, context.Cause(ctx))
	}
	if err == nil {
		beforeCompare()
		err = t.swap(name)
	}
	if err != nil {
		unix.Unlinkat(t.dir, name, 0)
		return err
	}
	t.keep()
	if err := syncDir(t.dir); err != nil {
		return t.failed("was written, and may not survive a power failure", err)
	}
	return nil
}

// fill writes the new file, which it closes, and gives it what the old one had.
func (t *target) fill(f *os.File, content []byte) error {
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		return t.failed("the new content can not be stored", err)
	}
	if t.there {
		if err := t.inherit(int(f.Fd())); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return t.failed("the new content can not be stored", err)
	}
	if err := f.Close(); err != nil {
		return t.failed("the new content can not be stored", err)
	}
	return nil
}

// inherit gives the new file owner, group, mode but for the set-id bits, access
// list and user attributes of the old one, or fails: a file that changes hands on being edited would open
// it to others, or close it to its owner.
func (t *target) inherit(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return t.failed("fstat", err)
	}
	if st.Uid != t.st.Uid || st.Gid != t.st.Gid {
		if err := unix.Fchown(fd, int(t.st.Uid), int(t.st.Gid)); err != nil {
			return errdefs.New(errdefs.Denied, "%s: belongs to uid %d, gid %d, and you can not make a new file that does",
				object.Show(t.path), t.st.Uid, t.st.Gid)
		}
	}
	// A directory may give new files an access list; the old file's counts.
	err := unix.Fremovexattr(fd, accessList)
	if err == nil || errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		err = t.copyAttributes(fd)
	}
	if err != nil {
		return t.failed("its access list or attributes can not be kept", err)
	}
	// Set-id bits vouch for the content that the file had, as they do for the
	// kernel: whoever writes to it takes them off.
	mode := t.st.Mode & 0o1777
	if err := unix.Fchmod(fd, mode); err != nil {
		return t.failed("its mode can not be kept", err)
	}
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&0o7777 != mode {
		return errdefs.New(errdefs.Denied, "%s: its mode %04o can not be kept", object.Show(t.path), mode)
	}
	return nil
}

// accessList is the attribute that holds a file's POSIX access list.
const accessList = "system.posix_acl_access"

// copyAttributes copies the extended attributes that belong to users, and the
// access control list.
func (t *target) copyAttributes(fd int) error {
	from := int(t.file.Fd())
	size, err := unix.Flistxattr(from, nil)
	if errors.Is(err, unix.ENOTSUP) || err == nil && size == 0 {
		return nil
	}
	names := make([]byte, size)
	if err == nil {
		size, err = unix.Flistxattr(from, names)
	}
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names[:size]), "\x00"), "\x00") {
		if name != accessList && !strings.HasPrefix(name, "user.") {
			continue
		}
		value := make([]byte, 64<<10) // the most that the kernel lets one be
		n, err := unix.Fgetxattr(from, name, value)
		if err == nil {
			err = unix.Fsetxattr(fd, name, value[:n], 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// swap gives the new file the target's name.
func (t *target) swap(name string) error {
	if !t.there {
		err := unix.Renameat2(t.dir, name, t.dir, t.name, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not every file system has it
			if err = unix.Linkat(t.dir, name, t.dir, t.name, 0); err == nil {
				err = unix.Unlinkat(t.dir, name, 0)
			}
		}
		if errors.Is(err, unix.EEXIST) {
			return t.changed()
		}
		if err != nil {
			return t.failed("can not be created", err)
		}
		return nil
	}
	if err := t.compare(); err != nil {
		return err
	}
	err := unix.Renameat(t.dir, name, t.dir, t.name)
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return errdefs.New(errdefs.Denied, "%s: its directory lets only the owner replace it (sticky)", object.Show(t.path))
	case errors.Is(err, unix.EBUSY):
		return errdefs.New(errdefs.Denied, "%s: is a mount point and can not be replaced", object.Show(t.path))
	case err != nil:
		return t.failed("can not be replaced", err)
	}
	return nil
}

// compare looks at the target once more: it must be the object that was read,
// with the content that was read.
func (t *target) compare() error {
	fd, err := object.Openat(t.dir, t.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return t.changed()
	}
	f := os.NewFile(uintptr(fd), t.path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return object.Explain(t.path, err)
	}
	was := t.st
	if st.Dev != was.Dev || st.Ino != was.Ino || st.Size != int64(len(t.old)) || st.Mtim != was.Mtim || st.Ctim != was.Ctim {
		return t.changed()
	}
	buf := make([]byte, min(256<<10, len(t.old)+1))
	for rest := t.old; ; {
		n, err := f.Read(buf)
		if n > len(rest) || !bytes.Equal(buf[:n], rest[:n]) {
			return t.changed()
		}
		rest = rest[n:]
		switch {
		case errors.Is(err, io.EOF) && len(rest) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return t.changed()
		case err != nil:
			return object.Explain(t.path, err)
		}
	}
}

// failed says what failed and why, in a word that helps more than the kernel's
// where there is one.
func (t *target) failed(what string, err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err // the path in it is ours already
	}
	if errors.Is(err, unix.EROFS) {
		return t.readOnly()
	}
	why := ""
	switch {
	case errors.Is(err, unix.EPERM):
		why = "; it may be immutable or append-only (see chattr)"
	case errors.Is(err, unix.ENOENT):
		why = "; its directory was removed meanwhile"
	}
	return errdefs.New(errdefs.KindOf(err), "%s: %s: %w%s", object.Show(t.path), what, err, why)
}
