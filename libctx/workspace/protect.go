package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// Protect says what of a workspace is shown read-only beside repository metadata.
// The zero value is nothing.
type Protect struct {
	// Lines are paths relative to the workspace. Each is kept, or the workspace is
	// refused.
	Lines []string
	// Usual adds Usual. Nobody asked for these in particular, so that one which is a
	// link, or no file, refuses nothing: what the link leads to is read-only, and
	// that the link itself was exchanged is seen afterwards.
	Usual bool
}

// maxLinks is how many links on the way of one path are followed.
const maxLinks = 40

// protect adds everything that must not be changed to what is shown read-only.
func protect(w *sandbox.Workspace, p Protect) error {
	for _, line := range slices.Concat(metadata, p.Lines) {
		if err := readOnly(w, line, true); err != nil {
			return err
		}
	}
	if isBare(w.Dir) {
		for _, name := range bare {
			if err := readOnly(w, name, false); err != nil {
				return err
			}
		}
	}
	if !p.Usual {
		return nil
	}
	for _, name := range there(w.Dir) {
		if err := readOnly(w, name, false); err != nil {
			return err
		}
	}
	return nil
}

// isBare reports whether git takes a directory for a repository.
func isBare(dir string) bool {
	for _, name := range bare[:3] {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(dir, name), &st) != nil {
			return false
		}
	}
	return true
}

// there are those of Usual that may be in a directory. Every call of a tool comes by
// here and most of them are not, so that reading the directory is cheaper than
// asking for each; unless it is very long, or may not be read.
func there(dir string) (names []string) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return usual
	}
	defer unix.Close(fd)
	buf := make([]byte, 32<<10)
	for range 4 {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil {
			break
		}
		if n == 0 {
			slices.Sort(names)
			return names
		}
		_, _, found := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range found {
			if listed, ok := usualNames[strings.ToLower(name)]; ok {
				names = append(names, listed)
			}
		}
	}
	return usual
}

// readOnly makes one path read-only, and what it is reached through: the entry of
// the workspace that it begins with, and of every link on its way the entry that
// that leads to. An entry that is a link itself can be exchanged by whoever may
// write to the workspace; if the path must be kept, that refuses the workspace.
func readOnly(w *sandbox.Workspace, line string, must bool) error {
	at, rest := w.Dir, components(line)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		top := at == w.Dir
		next := filepath.Join(at, name)
		var st unix.Stat_t
		switch err := unix.Lstat(next, &st); {
		case err == unix.ENOENT || err != nil && !top:
			return nil // not there; or below something that the agent can not enter
		case err != nil && must:
			return errdefs.New(errdefs.KindOf(err), "workspace %q: %s: %w", w.Dir, name, err)
		case err != nil:
			return nil
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			if top {
				if err := add(w, name, st, must); err != nil {
					return err
				}
			}
			at = next
			continue
		}
		if top && must {
			return refuse(w.Dir, name+" is a symbolic link, which can not be protected").
				WithHint("work where the link leads, or replace the link by what it leads to")
		}
		to, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return nil
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(components(to), rest...)
	}
	return nil
}

// components are those of a path, without the ones that stay where they are.
func components(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(c string) bool { return c == "" || c == "." })
}

// add shows an entry of the workspace read-only.
func add(w *sandbox.Workspace, name string, st unix.Stat_t, must bool) error {
	path := filepath.Join(w.Dir, name)
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFDIR, kind == unix.S_IFREG:
	case must:
		return refuse(w.Dir, name+" is neither a directory nor a file")
	default:
		return nil
	}
	if !slices.ContainsFunc(w.ReadOnly, func(b sandbox.Bind) bool { return b.Source == path }) {
		w.ReadOnly = append(w.ReadOnly, sandbox.Bind{
			Source: path, Target: filepath.Join(paths.InWorkspace, name),
			Dev: uint64(st.Dev), Ino: st.Ino,
		})
	}
	return nil
}
