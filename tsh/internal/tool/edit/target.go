package edit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool/object"
	"golang.org/x/sys/unix"
)

// target is the file that a call changes: its directory, held open from here to
// the commit, and what was found there under its name.
type target struct {
	path string // as it was named
	name string // last component
	dir  int    // its directory, O_PATH
	made []made // directories that were made for it, from the top

	there bool
	st    unix.Stat_t
	file  *os.File // open for reading, if there
	old   []byte   // its content
}

// find opens the directory of p and looks at the file. With create a directory
// that is missing is made, and removed again by close unless the file was
// written (keep). Everything that can be known to go wrong is refused here, before
// the file is written.
func find(ctx context.Context, p string, create bool) (*target, error) {
	dir, name := path.Split(p)
	if name == "" || name == "." || name == ".." {
		return nil, errdefs.New(errdefs.Invalid, "%s: names a directory, not a file", object.Show(p))
	}
	if err := object.CheckCwd(p); err != nil {
		return nil, err
	}
	if dir == "" {
		dir = "."
	}
	t := &target{path: p, name: name}
	var err error
	t.dir, err = object.Openat(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY)
	if create && errors.Is(err, unix.ENOENT) {
		err = t.makeDirs(dir)
	} else if err != nil {
		err = object.Explain(p, err)
	}
	if err != nil {
		t.dir = -1
	} else {
		err = t.look(ctx)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// close gives back what the target holds, and removes directories that were made
// for nothing.
func (t *target) close() {
	for _, d := range slices.Backward(t.made) {
		unix.Unlinkat(d.parent, d.name, unix.AT_REMOVEDIR) // stays if somebody put something there
		unix.Close(d.parent)
	}
	if t.dir >= 0 {
		unix.Close(t.dir)
	}
	if t.file != nil {
		t.file.Close()
	}
}

// keep says that the directories that were made have something in them.
func (t *target) keep() {
	for _, d := range t.made {
		unix.Close(d.parent)
	}
	t.made = nil
}

// made is a directory that a call made. Its parent is an open one of its own.
type made struct {
	parent int
	name   string
}

// makeDirs makes what is missing of a directory and opens it as the target's.
// New directories have mode 0755 less the umask; each is durable in its parent.
func (t *target) makeDirs(dir string) error {
	at := "."
	if path.IsAbs(dir) {
		at = "/"
	}
	fd, err := object.Openat(unix.AT_FDCWD, at, unix.O_PATH|unix.O_DIRECTORY)
	for _, name := range strings.Split(dir, "/") {
		if err != nil {
			break
		}
		if name == "" {
			continue
		}
		var next int
		next, err = object.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY)
		if errors.Is(err, unix.ENOENT) {
			next, err = t.makeDir(fd, name)
		}
		unix.Close(fd)
		fd = next
	}
	if errors.Is(err, unix.ELOOP) {
		return object.Explain(t.path, err)
	}
	if err != nil {
		return t.failed("its directory can not be made", err)
	}
	t.dir = fd
	return nil
}

// makeDir makes one directory and opens it. Another one may have been first.
func (t *target) makeDir(parent int, name string) (int, error) {
	err := unix.Mkdirat(parent, name, 0o755)
	if err == nil {
		own, err := unix.FcntlInt(uintptr(parent), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
			return -1, err
		}
		t.made = append(t.made, made{own, name})
		if err := syncDir(parent); err != nil {
			return -1, err
		}
	} else if !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	return object.Openat(parent, name, unix.O_PATH|unix.O_DIRECTORY)
}

// syncDir makes the entries of a directory durable. One that may be written and
// not read can not be synced.
func syncDir(dir int) error {
	fd, err := object.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fsync(fd)
}

// look finds out what is there and reads it.
func (t *target) look(ctx context.Context) error {
	if object.Pseudo(t.dir) {
		return errdefs.New(errdefs.Invalid, "%s: lies on a file system of the kernel, which stores no files", object.Show(t.path))
	}
	if err := t.attributes(t.dir, "its directory"); err != nil {
		return err
	}
	fd, err := object.Openat(t.dir, t.name, unix.O_PATH|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return object.Explain(t.path, err)
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &t.st); err != nil {
		return object.Explain(t.path, err)
	}
	t.there = true
	if err := object.CheckReadable(t.path, fd, t.st); err != nil {
		return err
	}
	if t.st.Nlink > 1 {
		return errdefs.New(errdefs.Invalid, "%s: has %d hard links, and a changed file would be apart from the others", object.Show(t.path), t.st.Nlink).
			WithHint("make it a file of its own first: copy it and move the copy over it")
	}
	if err := t.attributes(fd, "it"); err != nil {
		return err
	}
	if err := t.writable(); err != nil {
		return err
	}
	return t.read(ctx)
}

// attributes refuses what chattr has made unchangeable: a replaced file would
// fail halfway, or lose the attribute.
func (t *target) attributes(fd int, what string) error {
	var sx unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, 0, &sx); err != nil {
		return object.Explain(t.path, err)
	}
	if word := fixed(sx.Attributes); word != "" {
		return errdefs.New(errdefs.Denied, "%s: %s is %s and can not be changed (see chattr)", object.Show(t.path), what, word)
	}
	return nil
}

// fixed names the attribute that forbids a replacement.
func fixed(attributes uint64) string {
	switch {
	case attributes&unix.STATX_ATTR_IMMUTABLE != 0:
		return "immutable"
	case attributes&unix.STATX_ATTR_APPEND != 0:
		return "append-only"
	}
	return ""
}

// writable asks for the right to write to the file, which a replacement would
// not need.
func (t *target) writable() error {
	fd, err := object.Openat(t.dir, t.name, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.ETXTBSY): // it runs; the program goes on with the old file
		return nil
	case errors.Is(err, unix.EROFS):
		return t.readOnly()
	case errors.Is(err, unix.EACCES):
		return errdefs.New(errdefs.Denied, "%s: mode %04o of uid %d does not let you write to it", object.Show(t.path), t.st.Mode&0o7777, t.st.Uid)
	}
	return object.Explain(t.path, err)
}

// read takes the content of the file into memory.
func (t *target) read(ctx context.Context) error {
	fd, err := object.Openat(t.dir, t.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return object.Explain(t.path, err)
	}
	t.file = os.NewFile(uintptr(fd), t.path)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Dev != t.st.Dev || st.Ino != t.st.Ino {
		return t.changed()
	}
	if st.Size > libctx.MaxFileRead {
		return object.TooBig(t.path, st.Size)
	}
	t.old = make([]byte, 0, st.Size+512)
	for {
		n, err := t.file.Read(t.old[len(t.old):cap(t.old)])
		t.old = t.old[:len(t.old)+n]
		switch {
		case len(t.old) > libctx.MaxFileRead:
			return object.TooBig(t.path, int64(len(t.old)))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return object.Explain(t.path, err)
		case ctx.Err() != nil:
			return object.Explain(t.path, context.Cause(ctx))
		case len(t.old) == cap(t.old):
			t.old = append(t.old, 0)[:len(t.old)]
		}
	}
}

// expect holds the content against the hash that the caller knows.
func (t *target) expect(hash string) error {
	switch sum := sha(t.old); {
	case hash == "":
		return nil
	case !t.there:
		return errdefs.New(errdefs.NotFound, "%s: is not there, though a hash of it was expected", object.Show(t.path))
	case !strings.EqualFold(hash, sum):
		return errdefs.New(errdefs.Busy, "%s: has another content than expected, sha256 %s", object.Show(t.path), sum).
			WithHint("it was changed meanwhile: read it again")
	}
	return nil
}

func (t *target) changed() error {
	return errdefs.New(errdefs.Busy, "%s: was changed by somebody else meanwhile; nothing was written", object.Show(t.path)).
		WithHint("read it again")
}

func sha(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
