package view

import (
	"errors"
	"io/fs"
	"sync"

	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// Prepared is a directory that a sandbox sees read-only at /ctx. It stays as it
// is until Release.
type Prepared struct {
	Dir  string // host path
	done func()
}

// Release gives the directory up. It is removed once nobody uses it and a newer
// one is there. More than one call does nothing.
func (p *Prepared) Release() { p.done() }

// tries bounds how often a view is made again because its sources changed
// while they were copied.
const tries = 4

// Prepare makes the directory that the agent's sandboxes see at /ctx: copies of
// exactly the tools some call of which would be admitted, with their control
// files, and the agent's own control files; executable adds the agent's
// executable. What has not changed since the last time costs a stat for each
// file and no copy. The caller releases it.
//
// A tool that was looked up and admitted before is passed in checked: what the
// sandbox then finds at its path is a copy of the file that was opened and of
// the texts that were read, whatever was put in their place since.
//
// Errors: errdefs.Denied naming the file or directory that is not trusted (the
// prepared directories included: one that somebody else made is never used);
// errdefs.TooBig over libctx.MaxToolFile, MaxToolDir or MaxViewBytes;
// errdefs.NoSpace; errdefs.Busy if the sources kept changing.
func (a *Agent) Prepare(l paths.Layout, executable bool, checked ...*Tool) (*Prepared, error) {
	views.Lock()
	defer views.Unlock()
	root, err := atomicfile.OpenDir(l.Root)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "tree %s: %w", l.Root, bare(err))
	}
	defer root.Close()
	for range tries {
		src, err := a.scan(l, root, executable, checked)
		if err != nil {
			return nil, refused(a.Name, err)
		}
		v := views.get(l, a.Name, src.key)
		if v == nil {
			v, err = a.make(l, root, src)
		}
		switch {
		case err == nil:
			views.use(v)
			return &Prepared{v.dir, sync.OnceFunc(func() { views.release(v) })}, nil
		case !errors.Is(err, errChanged):
			return nil, refused(a.Name, err)
		}
	}
	return nil, errdefs.New(errdefs.Busy, "agent %s: its tools kept changing while they were copied", a.Name)
}

// make finds or builds the directory for src and takes its lock.
func (a *Agent) make(l paths.Layout, root *atomicfile.Dir, src *sources) (*shared, error) {
	base, err := a.base(l)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	if views.first(l, a.Name) {
		sweep(l, a.Name, base, src.key)
	}
	lock, err := lockView(l, a.Name, src.key)
	if err != nil {
		return nil, err
	}
	if err := a.build(l, root, base, src); err != nil {
		remove(base, src.key, lock)
		lock.Close()
		return nil, err
	}
	return views.add(l, a.Name, src.key, lock), nil
}

// base opens the directory of the agent's views and makes it if need be. In
// system mode the sandboxes of the agent reach it by its group.
func (a *Agent) base(l paths.Layout) (*atomicfile.Dir, error) {
	parent, name := splitPath(l.Views)
	up, err := atomicfile.OpenDir(parent)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "%s: %w", parent, bare(err))
	}
	defer up.Close()
	topPerm, perm, gid := uint32(0o700), uint32(0o700), -1
	if l.System {
		topPerm, perm, gid = 0o711, 0o750, int(a.Owner.GID)
	}
	top, err := ownDir(up, name, topPerm, -1)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	return ownDir(top, string(a.Name), perm, gid)
}

// ownDir opens a directory that must be the process's own and writable by it
// alone, and makes it if it is missing.
func ownDir(up *atomicfile.Dir, name string, perm uint32, gid int) (*atomicfile.Dir, error) {
	d, err := up.Sub(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := unix.Mkdirat(up.FD(), name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, errdefs.New(errdefs.KindOf(err), "make %s: %w", joinPath(up, name), err)
		}
		d, err = up.Sub(name)
	}
	where := joinPath(up, name)
	if err != nil {
		if st, lerr := up.Lstat(name); lerr == nil && !isDir(&st) {
			return nil, errdefs.New(errdefs.Denied, "%s: is %s, not a directory", where, kindOf(&st)).WithHint("remove it")
		}
		return nil, errdefs.New(errdefs.KindOf(err), "%s: %w", where, bare(err))
	}
	if err := settle(d, where, perm, gid); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// settle checks whose the directory is and gives it its mode and group.
func settle(d *atomicfile.Dir, where string, perm uint32, gid int) error {
	var st unix.Stat_t
	if err := unix.Fstat(d.FD(), &st); err != nil {
		return errdefs.New(errdefs.IO, "%s: %w", where, err)
	}
	if self := selfUID(); st.Uid != self {
		return errdefs.New(errdefs.Denied, "%s: belongs to uid %d, not to uid %d", where, st.Uid, self).WithHint("remove it")
	}
	if st.Mode&0o022 != 0 {
		return errdefs.New(errdefs.Denied, "%s: can be written by others than its owner (mode %04o)", where, st.Mode&0o7777).WithHint("remove it")
	}
	if gid >= 0 && st.Gid != uint32(gid) {
		if err := unix.Fchown(d.FD(), -1, gid); err != nil {
			return errdefs.New(errdefs.KindOf(err), "%s: give it to group %d: %w", where, gid, err)
		}
	}
	if st.Mode&0o7777 != perm {
		if err := unix.Fchmod(d.FD(), perm); err != nil {
			return errdefs.New(errdefs.KindOf(err), "%s: %w", where, err)
		}
	}
	return nil
}
