package tree

import (
	"bytes"
	"crypto/rand"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// NewAgent makes an agent: its entry, its control directory, and the home of
// its owner's data. Everything is written and synced under temporary names and
// renamed into place, controls first, so that nobody meets half an agent. A name
// that is taken is errdefs.Exists, a model that is not there errdefs.NotFound;
// bad values are errdefs.Invalid and leave nothing behind.
func NewAgent(l paths.Layout, spec AgentSpec) error {
	if err := spec.check(); err != nil {
		return err
	}
	if err := spec.findModel(l); err != nil {
		return err
	}
	entry, err := entryOf(&spec) // opened with the caller's rights
	if err != nil {
		return err
	}
	defer entry.Close()
	owner, err := ownerOf(l)
	if err != nil {
		return err
	}
	if owner.UID != 0 && owner.UID != spec.Owner.UID {
		return errdefs.New(errdefs.Denied, "agent %s: the tree of uid %d can not hold an agent of uid %d", spec.Name, owner.UID, spec.Owner.UID)
	}
	return owner.Do(func() error {
		return inside(l, func(root *atomicfile.Dir) error { return newAgent(root, &spec, entry) })
	})
}

func newAgent(root *atomicfile.Dir, spec *AgentSpec, entry io.Reader) error {
	for _, taken := range []string{string(spec.Name), string(spec.Name) + ".d"} {
		if _, err := root.Lstat("agent/" + taken); err == nil {
			return exists(spec.Name)
		} else if !errdefs.Is(err, errdefs.NotFound) {
			return err
		}
	}
	files, err := spec.files(root)
	if err != nil {
		return err
	}
	if err := makeHome(root, spec); err != nil {
		return err
	}
	dir, err := root.Sub("agent")
	if err != nil {
		return err
	}
	defer dir.Close()
	temp := ".new-" + rand.Text()
	defer dir.RemoveAll(temp)            // gone after a success
	defer removeControls(dir, temp+".d") // likewise
	as := asuser.Self()
	if spec.Own {
		as = spec.Owner
	}
	if err := writeControls(dir, temp+".d", files, as); err != nil {
		return err
	}
	if err := writeEntry(dir, temp, entry, as); err != nil {
		return err
	}
	return publish(dir, temp, spec.Name)
}

func exists(a libctx.Agent) error {
	return errdefs.New(errdefs.Exists, "agent %s: it is there already", a).
		WithHint("ctx agent rm %s removes it", a)
}

// writeControls writes the control files as those of a user.
func writeControls(dir *atomicfile.Dir, name string, files map[string][]byte, as asuser.Identity) error {
	controls, err := dir.MkdirAll(name, dirPerm)
	if err != nil {
		return err
	}
	defer controls.Close()
	if err := give(controls.FD(), as); err != nil {
		return err
	}
	return as.Do(func() error {
		for _, file := range slices.Sorted(maps.Keys(files)) {
			f, err := controls.Create(file, filePerm)
			if err != nil {
				return err
			}
			_, err = f.Write(files[file])
			if err := finish(f, err); err != nil {
				return err
			}
		}
		return controls.Sync()
	})
}

// give gives a file that was just made to a user.
func give(fd int, to asuser.Identity) error {
	if to.IsSelf() {
		return nil
	}
	if err := unix.Fchown(fd, int(to.UID), int(to.GID)); err != nil {
		return errdefs.New(errdefs.KindOf(err), "give a file to uid %d: %w", to.UID, err)
	}
	return nil
}

func writeEntry(dir *atomicfile.Dir, name string, entry io.Reader, as asuser.Identity) error {
	f, err := dir.Create(name, execPerm)
	if err != nil {
		return err
	}
	if err := give(int(f.Fd()), as); err != nil {
		return finish(f, err)
	}
	n, err := io.Copy(f, io.LimitReader(entry, libctx.MaxToolFile+1))
	if err == nil && n > libctx.MaxToolFile {
		err = errdefs.New(errdefs.TooBig, "program: is over the limit of %d bytes", libctx.MaxToolFile)
	}
	return finish(f, err)
}

func finish(f *os.File, err error) error {
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// publish gives the agent its name. Of two that want the same name one wins.
func publish(dir *atomicfile.Dir, temp string, a libctx.Agent) error {
	name := string(a)
	rename := func(from, to string) error {
		err := unix.Renameat2(dir.FD(), from, dir.FD(), to, unix.RENAME_NOREPLACE)
		if err == unix.EEXIST {
			return exists(a)
		}
		if err != nil {
			return errdefs.New(errdefs.KindOf(err), "agent %s: %w", a, err)
		}
		return nil
	}
	if err := rename(temp+".d", name+".d"); err != nil {
		return err
	}
	if err := rename(temp, name); err != nil {
		removeControls(dir, name+".d")
		return err
	}
	return dir.Sync()
}

// makeHome makes the agent's home. What lies below the home of a user is made
// with the rights of that user.
func makeHome(root *atomicfile.Dir, spec *AgentSpec) error {
	uid := strconv.FormatUint(uint64(spec.Owner.UID), 10)
	home := path.Join("home", uid)
	st, err := root.Lstat(home)
	if errdefs.Is(err, errdefs.NotFound) {
		d, err := root.MkdirAll(home, privatePerm)
		if err != nil {
			return err
		}
		defer d.Close()
		if err := give(d.FD(), spec.Owner); err != nil { // another's: then we are root, and the tree is root's
			return errdefs.New(errdefs.KindOf(err), "%s: %w", home, err)
		}
	} else if err != nil {
		return err
	} else if st.Uid != spec.Owner.UID {
		return errdefs.New(errdefs.Denied, "%s: belongs to uid %d", home, st.Uid)
	}
	return spec.Owner.Do(func() error {
		for _, part := range []string{"session", "root", "data", "cache", "log"} {
			d, err := root.MkdirAll(path.Join(home, "agent", string(spec.Name), part), privatePerm)
			if err != nil {
				return err
			}
			d.Close()
		}
		return nil
	})
}

// entryOf is the content of the agent's entry.
func entryOf(spec *AgentSpec) (io.ReadCloser, error) {
	switch {
	case spec.Exec != "":
		return OpenExec(spec.Exec)
	case spec.Program != nil:
		start := make([]byte, len(elf))
		n, err := io.ReadFull(spec.Program, start)
		switch {
		case err != nil && err != io.ErrUnexpectedEOF && err != io.EOF:
			return nil, errdefs.New(errdefs.KindOf(err), "program of %s: %w", spec.Name, err)
		case !runs(start[:n]):
			return nil, neither("of " + string(spec.Name))
		}
		return io.NopCloser(io.MultiReader(bytes.NewReader(start[:n]), spec.Program)), nil
	}
	return io.NopCloser(modelEntry(spec.Name)), nil
}

// RemoveAgent removes an agent's entry, controls, socket link and prepared
// views; with purge its home too, sessions included. Whoever calls it has seen
// to it that no process serves the agent. Part of an agent, left by somebody
// else's accident, is removed as well. Nothing there is errdefs.NotFound.
func RemoveAgent(l paths.Layout, a libctx.Agent, purge bool) error {
	var owner uint32
	if purge {
		var err error
		if owner, err = Owner(l, a); err != nil {
			return err
		}
	}
	err := change(l, func(root *atomicfile.Dir) error { return removeAgent(root, a) })
	if err != nil || !purge {
		return err
	}
	id, err := identity(owner)
	if err != nil {
		return err
	}
	return id.Do(func() error {
		return inside(l, func(root *atomicfile.Dir) error {
			err := root.RemoveAll(path.Join("home", strconv.FormatUint(uint64(owner), 10), "agent", string(a)))
			if errdefs.Is(err, errdefs.NotFound) {
				return nil
			}
			return err
		})
	})
}

// removeControls removes a control directory: what is in one of another user's
// with that user's rights, which is all that root then has there.
func removeControls(dir *atomicfile.Dir, rel string) error {
	st, err := dir.Lstat(rel)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		var id asuser.Identity
		if id, err = identity(st.Uid); err == nil {
			err = id.Do(func() error { return empty(dir, rel) })
		}
	}
	if err != nil {
		return err
	}
	return dir.RemoveAll(rel)
}

// empty removes all that is in a directory.
func empty(dir *atomicfile.Dir, rel string) error {
	sub, err := dir.Sub(rel)
	if err != nil {
		return err
	}
	defer sub.Close()
	entries, err := sub.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := sub.RemoveAll(e.Name()); err != nil {
			return err
		}
	}
	return nil
}

func removeAgent(root *atomicfile.Dir, a libctx.Agent) error {
	found := false
	for _, rel := range []string{string(a), string(a) + ".d", string(a) + ".sock"} {
		rel = path.Join("agent", rel)
		if _, err := root.Lstat(rel); errdefs.Is(err, errdefs.NotFound) {
			continue
		} else if err != nil {
			return err
		}
		found = true
		remove := root.RemoveAll
		if strings.HasSuffix(rel, ".d") {
			remove = func(rel string) error { return removeControls(root, rel) }
		}
		if err := remove(rel); err != nil && !errdefs.Is(err, errdefs.NotFound) {
			return err
		}
	}
	if !found {
		return errdefs.New(errdefs.NotFound, "no agent %q", a).WithHint("ctx agent ls lists them")
	}
	if err := root.RemoveAll(path.Join(".view", string(a))); err != nil && !errdefs.Is(err, errdefs.NotFound) {
		return err
	}
	return nil
}
