package terminal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/terminal"
	"golang.org/x/sys/unix"
)

// dirs are directories of the tree that a start made.
type dirs struct {
	layout paths.Layout
	made   []string // relative to the tree, the upper ones first
}

// makeDirs makes the directory of the terminals of a session, and with it those
// of the session and of the agent's home, as far as they are missing. A terminal
// can be there before anything was ever said in its session. What was made is
// returned with an error too.
func makeDirs(p terminal.Place) (dirs, error) {
	d := dirs{layout: p.Layout}
	dir := filepath.Dir(p.Layout.TerminalLink(p.Owner.UID, p.Agent, p.Session))
	rel, err := filepath.Rel(p.Layout.Root, dir)
	if err != nil {
		return d, errdefs.New(errdefs.Internal, "%s: %w", dir, err)
	}
	root, err := atomicfile.OpenDir(p.Layout.Root)
	if err != nil {
		return d, err
	}
	defer root.Close()
	steps := strings.Split(rel, "/")
	for i := range steps {
		at := filepath.Join(steps[:i+1]...)
		_, err := root.Lstat(at)
		missing := errors.Is(err, fs.ErrNotExist)
		if err == nil || missing {
			var sub *atomicfile.Dir
			if sub, err = root.MkdirAll(at, 0o700); err == nil {
				sub.Close()
			}
		}
		if err != nil {
			e := errdefs.New(errdefs.KindOf(err), "session %s of agent %s: %w", p.Session, p.Agent, err)
			if missing && errdefs.Is(err, errdefs.Denied) {
				// In a tree of root the homes of users are the server's to make.
				e.WithHint("a first message makes it: ctx agent send %s hello", p.Agent)
			}
			return d, e
		}
		if missing {
			d.made = append(d.made, at)
		}
	}
	return d, nil
}

// remove removes what was made and is empty.
func (d dirs) remove() {
	root, err := atomicfile.OpenDir(d.layout.Root)
	if err != nil {
		return
	}
	defer root.Close()
	for i := len(d.made) - 1; i >= 0; i-- {
		up, name := filepath.Split(d.made[i])
		if sub, err := root.Sub(filepath.Clean(up)); err == nil {
			unix.Unlinkat(sub.FD(), name, unix.AT_REMOVEDIR)
			sub.Close()
		}
	}
}

// link makes the terminal's name in its session lead to the socket; the result
// takes it away again. What is there and is no link stays.
func link(p terminal.Place) (remove func(), err error) {
	path := p.Layout.TerminalLink(p.Owner.UID, p.Agent, p.Session)
	target := p.Layout.TerminalSocket(p.Agent, p.Session)
	fail := func(err error) (func(), error) {
		return nil, errdefs.New(errdefs.KindOf(err), "link %s: %w", path, err)
	}
	rel, err := filepath.Rel(p.Layout.Root, filepath.Dir(path))
	if err != nil {
		return fail(err)
	}
	root, err := atomicfile.OpenDir(p.Layout.Root)
	if err != nil {
		return fail(err)
	}
	defer root.Close()
	dir, err := root.Sub(rel)
	if err != nil {
		return fail(err)
	}
	name := filepath.Base(path)
	if st, err := dir.Lstat(name); err == nil && st.Mode&unix.S_IFMT != unix.S_IFLNK {
		dir.Close()
		return nil, errdefs.New(errdefs.Exists, "%s is in the way of the terminal's socket", path).WithHint("remove it")
	}
	temp := "." + name + "." + strconv.Itoa(os.Getpid())
	unix.Unlinkat(dir.FD(), temp, 0) // of a process that died
	if err = unix.Symlinkat(target, dir.FD(), temp); err == nil {
		if err = unix.Renameat(dir.FD(), temp, dir.FD(), name); err != nil {
			unix.Unlinkat(dir.FD(), temp, 0)
		}
	}
	if err != nil {
		dir.Close()
		return fail(err)
	}
	return func() {
		defer dir.Close()
		if now, err := readlink(dir, name); err == nil && now == target {
			unix.Unlinkat(dir.FD(), name, 0)
		}
	}, nil
}

func readlink(d *atomicfile.Dir, name string) (string, error) {
	b := make([]byte, 4096)
	n, err := unix.Readlinkat(d.FD(), name, b)
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}
