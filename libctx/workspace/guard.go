package workspace

import (
	"os"
	"path/filepath"

	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// guard recognises directories that overlap with guarded ones. It compares three
// ways, because each can be fooled alone: canonical paths, the identity of every
// directory above, and places within a file system, which stay the same however
// often and wherever parts of it are mounted.
type guard struct {
	mounts *mounts
	dirs   []place
}

// place is where a directory is.
type place struct {
	path  string // canonical as far as it exists
	up    []node // the directory and those above it, nearest first
	fs    within
	known bool // whether fs is
}

type node struct{ dev, ino uint64 }

// newGuard looks the guarded directories up. One that does not exist yet is
// guarded by its path.
func newGuard(protected []string) (*guard, error) {
	if len(protected) == 0 {
		return &guard{}, nil
	}
	m, err := readMounts()
	if err != nil {
		return nil, err
	}
	g := &guard{mounts: m}
	for _, dir := range protected {
		g.dirs = append(g.dirs, g.locate(filepath.Clean(dir)))
	}
	return g, nil
}

// hit is the guarded directory that dir, a canonical path, is, contains or lies
// in; "" if there is none.
func (g *guard) hit(dir string) (string, error) {
	if len(g.dirs) == 0 || fault.Off("guard:workspace") {
		return "", nil
	}
	// A mount may have come since; its id would be unknown.
	if err := g.mounts.refresh(dir); err != nil {
		return "", err
	}
	w := g.locate(dir)
	for _, d := range g.dirs {
		if overlaps(w, d) {
			return d.path, nil
		}
	}
	return "", nil
}

func overlaps(a, b place) bool {
	return paths.Below(a.path, b.path) || paths.Below(b.path, a.path) ||
		above(a, b) || above(b, a) ||
		a.known && b.known && a.fs.overlaps(b.fs)
}

// above reports whether a's directory is among those above b, or b's own.
func above(a, b place) bool {
	if len(a.up) == 0 {
		return false
	}
	for _, n := range b.up {
		if n == a.up[0] {
			return true
		}
	}
	return false
}

// locate finds a place. What does not exist is placed by the nearest directory
// above it that does.
func (g *guard) locate(dir string) place {
	real, rest := dir, ""
	for {
		if p, err := filepath.EvalSymlinks(real); err == nil {
			real = p
			break
		}
		if real == "/" {
			break
		}
		rest = filepath.Join(filepath.Base(real), rest)
		real = filepath.Dir(real)
	}
	p := place{path: filepath.Join(real, rest)}
	p.fs, p.known = g.mounts.within(real)
	p.fs.path = filepath.Join(p.fs.path, rest)
	if rest != "" {
		// It has no identity of its own; a directory above it that is the
		// workspace is found by path or by place.
		p.up = append(p.up, node{})
	}
	for at := real; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err == nil {
			p.up = append(p.up, node{uint64(st.Dev), st.Ino})
		} else if !os.IsPermission(err) {
			break
		}
		if at == "/" {
			break
		}
	}
	return p
}
