// Package tree makes trees and changes what is in them: the tree itself with
// its built-in tools, agents, and single control files. Nothing half-made is
// ever seen under its final name, and no link below the tree is followed.
//
// A tree is changed with the rights of the user who owns it: that user, or root
// acting as that user. Everybody else gets errdefs.Denied.
package tree

import (
	"io/fs"
	"os"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// Modes of what a tree holds, whatever the umask.
const (
	dirPerm     fs.FileMode = 0o755
	privatePerm fs.FileMode = 0o700
	filePerm    fs.FileMode = 0o644
	execPerm    fs.FileMode = 0o755
)

// change runs fn on the open tree with the rights of the tree's owner.
func change(l paths.Layout, fn func(root *atomicfile.Dir) error) error {
	owner, err := ownerOf(l)
	if err != nil {
		return err
	}
	return owner.Do(func() error { return inside(l, fn) })
}

// inside runs fn on the open tree with the rights this thread has.
func inside(l paths.Layout, fn func(root *atomicfile.Dir) error) error {
	root, err := atomicfile.OpenDir(l.Root)
	if errdefs.Is(err, errdefs.NotFound) {
		return noTree(l)
	}
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "tree %s: %w", l.Root, err)
	}
	defer root.Close()
	return fn(root)
}

func noTree(l paths.Layout) error {
	return errdefs.New(errdefs.NotFound, "no tree at %s", l.Root).WithHint("make one: ctx init")
}

// ownerOf is the identity that changes the tree: its owner, if this process is
// or can become that user.
func ownerOf(l paths.Layout) (asuser.Identity, error) {
	var st unix.Stat_t
	if err := unix.Stat(l.Root, &st); err != nil {
		if errdefs.Is(err, errdefs.NotFound) {
			return asuser.Identity{}, noTree(l)
		}
		return asuser.Identity{}, errdefs.New(errdefs.KindOf(err), "tree %s: %w", l.Root, err)
	}
	self := asuser.Self()
	switch {
	case st.Uid == self.UID:
		return self, nil
	case os.Geteuid() != 0:
		return asuser.Identity{}, errdefs.New(errdefs.Denied, "tree %s: belongs to uid %d", l.Root, st.Uid).
			WithHint("change it as that user, or make your own tree: ctx init --root DIR")
	}
	id, _, err := asuser.Lookup(st.Uid)
	return id, err
}

// Agents lists the agents of the tree, sorted: names that have both an entry
// and a control directory.
func Agents(root *atomicfile.Dir) ([]libctx.Agent, error) {
	entries, err := root.ReadDir("agent")
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "tree %s: %w", root.Path(), err)
	}
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		seen[e.Name()] = true
	}
	var agents []libctx.Agent
	for _, e := range entries {
		if a, err := libctx.ParseAgent(e.Name()); err == nil && seen[e.Name()+".d"] {
			agents = append(agents, a)
		}
	}
	return agents, nil
}

// ListAgents is Agents for the tree at l, with the rights of the caller.
func ListAgents(l paths.Layout) (agents []libctx.Agent, err error) {
	err = inside(l, func(root *atomicfile.Dir) error {
		agents, err = Agents(root)
		return err
	})
	return agents, err
}
