// Package workspace turns the directory a human works in into what a sandbox
// may show of it: the directory itself, writable, and below it what must not be
// changed. All of it is looked up with the rights of the agent's identity, and
// nothing is ever created on the host.
//
// What Resolve found can be exchanged until the sandbox stands; that is why
// everything it returns carries device and inode, which the entry step compares
// from inside.
package workspace

import (
	"path/filepath"
	"strings"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// metadata are the names of repository directories, which hold hooks and
// configuration that the human's own tools execute.
var metadata = []string{".git", ".hg", ".svn", ".jj"}

// Resolve checks that dir can be the workspace of an agent with identity id and
// says how to show it. dir is absolute and may lead through symbolic links.
// protected are host directories that the workspace must not be, contain, lie
// in or lead to; protect are lines of the agent's protect control, relative to
// the workspace: the first component of each is shown read-only if it exists,
// since a mount further down is undone by renaming its parent. What the kernel
// fills (/proc, /sys, /dev) is no workspace.
//
// Errors name dir: errdefs.Invalid (refused, and why), errdefs.NotFound (not
// there), errdefs.Denied (id may not enter it). A kind of protection that can
// not be had is refused (a link where repository metadata should be); what is
// only a claim is ignored (a pointer file whose repository does not point back).
func Resolve(dir string, id asuser.Identity, protected, protect []string) (sandbox.Workspace, error) {
	if !filepath.IsAbs(dir) || strings.IndexByte(dir, 0) >= 0 {
		return sandbox.Workspace{}, refuse(dir, "is not an absolute path")
	}
	// The guarded directories may be such that the agent can not see them: their
	// side is looked up with the rights of this process.
	guard, err := newGuard(protected)
	if err != nil {
		return sandbox.Workspace{}, errdefs.New(errdefs.KindOf(err), "workspace %q: %w", dir, err)
	}
	var w sandbox.Workspace
	err = id.Do(func() (err error) {
		w, err = resolve(dir, guard, protect)
		return err
	})
	if err != nil {
		return sandbox.Workspace{}, err
	}
	return w, nil
}

func resolve(dir string, guard *guard, protect []string) (w sandbox.Workspace, err error) {
	fail := func(err error) (sandbox.Workspace, error) {
		kind := errdefs.KindOf(err)
		if kind == errdefs.Internal {
			kind = errdefs.Invalid // links that go in circles
		}
		return sandbox.Workspace{}, errdefs.New(kind, "workspace %q: %w", dir, err)
	}
	if w.Dir, err = filepath.EvalSymlinks(dir); err != nil {
		return fail(err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(w.Dir, &st); err != nil {
		return fail(err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return w, refuse(dir, "is not a directory")
	}
	w.Dev, w.Ino = uint64(st.Dev), st.Ino
	if kernels, err := madeByKernel(w.Dir, st); err != nil {
		return fail(err)
	} else if kernels {
		return w, refuse(dir, "is the kernel's and no place to work in").
			WithHint("name another directory with --workspace")
	}
	// Looking up a name in it is what entering takes.
	if err := unix.Lstat(w.Dir+"/.", &st); err != nil {
		return fail(err)
	}
	if hit, err := guard.hit(w.Dir); err != nil {
		return fail(err)
	} else if hit != "" {
		return w, errdefs.New(errdefs.Invalid, "workspace %q: is, contains or lies in %s, which belongs to the runtime", dir, hit).
			WithHint("name another directory with --workspace")
	}
	for _, name := range names(protect) {
		if err := readOnly(&w, name); err != nil {
			return sandbox.Workspace{}, err
		}
	}
	repository(&w, guard)
	return w, nil
}

// names are the entries of the workspace that are shown read-only if they exist.
func names(protect []string) []string {
	all := append([]string(nil), metadata...)
	seen := map[string]bool{}
	for _, n := range all {
		seen[n] = true
	}
	for _, line := range protect {
		name, _, _ := strings.Cut(filepath.Clean(line), "/")
		if name == "." || name == ".." || name == "" || seen[name] {
			continue // the grammar of the control refuses these
		}
		seen[name] = true
		all = append(all, name)
	}
	return all
}

// readOnly adds an entry of the workspace to what is shown read-only.
func readOnly(w *sandbox.Workspace, name string) error {
	path := filepath.Join(w.Dir, name)
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "workspace %q: %s: %w", w.Dir, name, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR, unix.S_IFREG:
	case unix.S_IFLNK:
		return refuse(w.Dir, name+" is a symbolic link, which can not be protected").
			WithHint("work where the link leads, or replace the link by what it leads to")
	default:
		return refuse(w.Dir, name+" is neither a directory nor a file")
	}
	w.ReadOnly = append(w.ReadOnly, sandbox.Bind{
		Source: path, Target: filepath.Join(paths.InWorkspace, name),
		Dev: uint64(st.Dev), Ino: st.Ino,
	})
	return nil
}

func refuse(dir, why string) *errdefs.Error {
	return errdefs.New(errdefs.Invalid, "workspace %q: %s", dir, why)
}
