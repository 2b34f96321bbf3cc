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
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// Resolve checks that dir can be the workspace of an agent with identity id and
// says how to show it. dir is absolute and may lead through symbolic links.
// protected are host directories that the workspace must not be, contain, lie
// in or lead to; what p names is shown read-only if it exists. What the kernel
// fills (/proc, /sys, /dev) is no workspace.
//
// Errors name dir: errdefs.Invalid (refused, and why), errdefs.NotFound (not
// there), errdefs.Denied (id may not enter it). A kind of protection that can
// not be had is refused (a link where repository metadata should be); what is
// only a claim is ignored (a pointer file whose repository does not point back).
func Resolve(dir string, id asuser.Identity, protected []string, p Protect) (sandbox.Workspace, error) {
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
		w, err = resolve(dir, guard, p)
		return err
	})
	if err != nil {
		return sandbox.Workspace{}, err
	}
	return w, nil
}

func resolve(dir string, guard *guard, p Protect) (w sandbox.Workspace, err error) {
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
	if err := protect(&w, p); err != nil {
		return sandbox.Workspace{}, err
	}
	repository(&w, guard)
	return w, nil
}

func refuse(dir, why string) *errdefs.Error {
	return errdefs.New(errdefs.Invalid, "workspace %q: %s", dir, why)
}
