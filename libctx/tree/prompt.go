package tree

import (
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/capwire"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// SetPrompt replaces a prompt text of an agent, or makes it, atomically, with the
// rights of whoever owns the agent's control directory. It is for the agent's own
// host: no other file but those of capwire.Controls, and no text over
// libctx.MaxCapContent or with a NUL or bytes that are not UTF-8, is accepted;
// these are errdefs.Invalid. An agent whose control directory is a link is refused
// too. What is wrong with storage is errdefs.IO.
func SetPrompt(l paths.Layout, a libctx.Agent, file, text string) error {
	switch {
	case !slices.Contains(capwire.Controls(), file):
		return errdefs.New(errdefs.Invalid, "control %.80q can not be changed from inside a run", file)
	case len(text) > libctx.MaxCapContent:
		return errdefs.New(errdefs.Invalid, "control %s: %d bytes are over the limit of %d", file, len(text), libctx.MaxCapContent)
	}
	if err := control.CheckAgent(file, []byte(text)); err != nil {
		return errdefs.New(errdefs.Invalid, "control %w", err)
	}
	return inside(l, func(root *atomicfile.Dir) error {
		dir, err := openControls(root, a)
		if err != nil {
			return err
		}
		defer dir.Close()
		owner, err := ownerOfDir(l, dir)
		if err != nil {
			return err
		}
		err = owner.Do(func() error { return dir.Replace(file, []byte(text), filePerm) })
		if err != nil && !errdefs.Is(err, errdefs.Invalid) && !errdefs.Is(err, errdefs.Denied) {
			return errdefs.New(errdefs.IO, "control %s: %w", file, err)
		}
		return err
	})
}

// ownerOfDir is the identity that changes files of an open directory: outside of
// system mode this process's own.
func ownerOfDir(l paths.Layout, dir *atomicfile.Dir) (asuser.Identity, error) {
	if !l.System {
		return asuser.Self(), nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(dir.FD(), &st); err != nil {
		return asuser.Identity{}, errdefs.New(errdefs.IO, "%s: %w", dir.Path(), err)
	}
	return identity(st.Uid)
}
