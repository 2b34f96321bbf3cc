package terminal

import (
	"errors"
	"io/fs"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// Listed is a terminal that a tree has a resource of. Err says why its meta.json
// could not be read; Meta is then zero.
type Listed struct {
	Place
	Meta Meta
	Err  error
}

// List finds the terminals of all agents and sessions of one owner, by agent and
// session in the order of names. It starts nothing and changes nothing.
func List(l paths.Layout, owner asuser.Identity) ([]Listed, error) {
	var places []Place
	err := owner.Do(func() error {
		root, err := atomicfile.OpenDir(l.Root)
		if err != nil {
			return err
		}
		defer root.Close()
		return each(root, agents(owner.UID), func(name string) error {
			a, err := libctx.ParseAgent(name)
			if err != nil {
				return nil
			}
			return each(root, sessions(owner.UID, a), func(name string) error {
				s, err := libctx.ParseSession(name)
				if err != nil {
					return nil
				}
				p := Place{Layout: l, Owner: owner, Agent: a, Session: s}
				if st, err := root.Lstat(p.rel()); err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
					places = append(places, p)
				}
				return nil
			})
		})
	})
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "terminals: %w", err)
	}
	list := make([]Listed, len(places))
	for i, p := range places {
		list[i].Place = p
		list[i].Meta, list[i].Err = p.Load()
	}
	return list, nil
}

// each calls fn for the directories in one; a directory that is missing has
// none.
func each(root *atomicfile.Dir, rel string, fn func(name string) error) error {
	entries, err := root.ReadDir(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := fn(e.Name()); err != nil {
			return err
		}
	}
	return nil
}
