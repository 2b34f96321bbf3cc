package view

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// Live is a prepared directory for one sandbox that stays for long: its tools
// can be made those that the agent may run now, while it is seen. All else in
// it stays as it was. It is for one goroutine.
type Live struct {
	Dir string // host path

	layout     paths.Layout
	agent      libctx.Agent
	executable bool
	base       *atomicfile.Dir
	name       string // of Dir in base
	lock       *os.File
}

// follows are the parts of a view where tools are. The others hold mount points,
// and a mount in a sandbox is gone when its place is touched here.
var follows = []string{"tool", "home", "shared"}

// PrepareLive makes a directory of its own, as Prepare makes one for everybody,
// with the same errors. The caller releases it.
func (a *Agent) PrepareLive(l paths.Layout, executable bool) (*Live, error) {
	p, err := a.Prepare(l, executable)
	if err != nil {
		return nil, err
	}
	defer p.Release()
	v := &Live{layout: l, agent: a.Name, executable: executable}
	if err := v.make(a, p.Dir); err != nil {
		v.Release()
		return nil, refused(a.Name, err)
	}
	return v, nil
}

func (v *Live) make(a *Agent, from string) (err error) {
	var random [8]byte
	rand.Read(random[:])
	v.name = "live-" + hex.EncodeToString(random[:])
	if v.base, err = a.base(v.layout); err != nil {
		return err
	}
	v.Dir = joinPath(v.base, v.name)
	if v.lock, err = lockView(v.layout, v.agent, v.name); err != nil {
		return err
	}
	if err := mkdir(v.base, v.name); err != nil {
		return err
	}
	return v.mirror(from, ".")
}

// Follow makes the tools those of the agent at this moment. While it works a
// program finds each of them as it was or as it is, and what is revoked goes
// first. Its errors are those of Prepare; the tools are then as they were.
func (v *Live) Follow(a *Agent) error {
	p, err := a.Prepare(v.layout, v.executable)
	if err != nil {
		return err
	}
	defer p.Release()
	if err := v.mirror(p.Dir, follows...); err != nil {
		return refused(v.agent, err)
	}
	return nil
}

// Clear removes all tools: what an agent may run is not known.
func (v *Live) Clear() error {
	for _, top := range follows {
		entries, err := v.base.ReadDir(path.Join(v.name, top))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := v.base.RemoveAll(path.Join(v.name, top, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Release removes the directory. Nobody sees it any more.
func (v *Live) Release() {
	if v.lock != nil {
		remove(v.base, v.name, v.lock)
		v.lock.Close()
	}
	if v.base != nil {
		v.base.Close()
	}
}

// mirror makes parts of the view equal to those of a prepared directory. Files
// are links to its, which nobody ever writes.
func (v *Live) mirror(dir string, parts ...string) error {
	from, err := atomicfile.OpenDir(dir)
	if err != nil {
		return err
	}
	defer from.Close()
	for _, step := range []func(*atomicfile.Dir, string) error{v.prune, v.link} {
		for _, part := range parts {
			if err := step(from, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// prune removes what the prepared directory does not have at rel.
func (v *Live) prune(from *atomicfile.Dir, rel string) error {
	entries, err := v.base.ReadDir(path.Join(v.name, rel))
	if err != nil {
		return err
	}
	// A tool before its control directory, NAME before NAME.d.
	for _, e := range entries {
		at := path.Join(rel, e.Name())
		st, err := from.Lstat(at)
		switch {
		case errdefs.Is(err, errdefs.NotFound) || err == nil && isDir(&st) != e.IsDir():
			err = v.base.RemoveAll(path.Join(v.name, at))
		case err == nil && e.IsDir():
			err = v.prune(from, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// link adds what the prepared directory has at rel.
func (v *Live) link(from *atomicfile.Dir, rel string) error {
	entries, err := from.ReadDir(rel)
	if err != nil {
		return err
	}
	// Control directories before their tools.
	slices.Reverse(entries)
	for _, e := range entries {
		at := path.Join(rel, e.Name())
		now, err := v.base.Lstat(path.Join(v.name, at))
		missing := errdefs.Is(err, errdefs.NotFound)
		if err != nil && !missing {
			return err
		}
		var st unix.Stat_t
		if st, err = from.Lstat(at); err != nil {
			return err
		}
		switch {
		case e.IsDir():
			if missing {
				if err := mkdir(v.base, path.Join(v.name, at)); err != nil {
					return err
				}
			}
			err = v.link(from, at)
		case missing || now.Dev != st.Dev || now.Ino != st.Ino:
			err = v.put(from, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// put makes one file the prepared directory's, in one step.
func (v *Live) put(from *atomicfile.Dir, rel string) error {
	temp := v.name + ".next" // beside the view: nobody sees it
	unix.Unlinkat(v.base.FD(), temp, 0)
	err := unix.Linkat(from.FD(), rel, v.base.FD(), temp, 0)
	if err == nil {
		err = unix.Renameat(v.base.FD(), temp, v.base.FD(), path.Join(v.name, rel))
	}
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "view %s: %s: %w", v.Dir, rel, err)
	}
	return nil
}
