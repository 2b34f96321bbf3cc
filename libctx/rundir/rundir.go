// Package rundir makes the directories that hold sockets and locks, and refuses
// ones that somebody else could have prepared. They may be empty or absent after
// every boot, so each program calls Ensure before it uses them.
package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// Ensure makes the runtime directory of a layout, its socket directories and its
// lock directory, with exact modes whatever the umask: in user mode 0700 and the
// user's own; in system mode root's, sockets reachable by everybody (each socket
// has its owner's mode; those of runs only by who knows their names) and locks by
// nobody. A directory that is a link, foreign
// or writable by others is errdefs.Denied.
func Ensure(l paths.Layout) error {
	public := fs.FileMode(0o700)
	if l.System {
		public = 0o755
	}
	// The parent of the per-tree directory is ours too (…/cortexfs), except
	// where the runtime directory is /run/cortexfs itself.
	if base := filepath.Dir(l.Runtime); base != "/run" {
		if err := ensure(base, public); err != nil {
			return err
		}
	}
	for _, d := range []struct {
		path string
		perm fs.FileMode
	}{{l.Runtime, public}, {l.Sockets(), public}, {l.Runs(), passage(l)}, {l.Locks, 0o700}} {
		if err := ensure(d.path, d.perm); err != nil {
			return err
		}
	}
	return nil
}

// passage is the mode of directories in which others reach what they know the name
// of.
func passage(l paths.Layout) fs.FileMode {
	if l.System {
		return 0o711
	}
	return 0o700
}

// EnsureCapabilities makes the directory of the capability sockets of an agent's
// runs, below those of Ensure, and refuses others as Ensure does.
func EnsureCapabilities(l paths.Layout, a libctx.Agent) error {
	return ensure(l.Capabilities(a), passage(l))
}

// EnsureTerminals makes the directory of the terminals' sockets (Layout.Terminals)
// and those above it that the suite makes, with the mode 0700 and the user's own
// in both modes, and refuses others as Ensure does.
func EnsureTerminals(l paths.Layout) error {
	dirs := []string{l.Terminals}
	for up := l.Terminals; !strings.HasPrefix(filepath.Base(up), "cortexfs") && up != "/"; {
		up = filepath.Dir(up)
		dirs = append(dirs, up)
	}
	for _, dir := range slices.Backward(dirs) {
		if err := ensure(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// For is the layout with the locks of this user's terminals: the tree's if it is
// theirs, else beside their runtime directory, since nothing of theirs may be in
// somebody else's tree (Layout.Aside). Of another user's runtime directory
// nothing is known: the caller's is taken.
func For(l paths.Layout, uid uint32) paths.Layout {
	var st unix.Stat_t
	switch err := unix.Stat(l.Root, &st); {
	case err != nil: // no tree, and no terminal in it
		return l
	case st.Uid != uid:
		return l.Aside()
	case l.System && uid != 0: // root looks at a user's tree
		l.Locks = filepath.Join(l.Root, ".lock")
	}
	return l
}

func ensure(path string, perm fs.FileMode) error {
	made := true
	if err := os.Mkdir(path, perm); errors.Is(err, fs.ErrExist) {
		made = false
	} else if err != nil {
		return errdefs.New(errdefs.KindOf(err), "runtime directory: %w", err)
	}
	fd, err := unix.Open(path, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return errdefs.New(errdefs.Denied, "runtime directory %s: %w", path, err)
	}
	defer unix.Close(fd)
	if made {
		if err := unix.Fchmod(fd, uint32(perm)); err != nil {
			return errdefs.New(errdefs.KindOf(err), "runtime directory %s: %w", path, err)
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return errdefs.New(errdefs.KindOf(err), "runtime directory %s: %w", path, err)
	}
	switch {
	case fault.Off("rundir:owner"):
	case int(st.Uid) != os.Geteuid():
		return errdefs.New(errdefs.Denied, "runtime directory %s: belongs to uid %d", path, st.Uid)
	case st.Mode&0o7777&^uint32(perm) != 0:
		return errdefs.New(errdefs.Denied, "runtime directory %s: mode %o is wider than %o", path, st.Mode&0o7777, perm).
			WithHint("chmod %o %s", perm, path)
	}
	return nil
}
