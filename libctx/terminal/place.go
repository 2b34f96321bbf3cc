package terminal

import (
	"path"
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
)

// Place is where the terminal of one session is. Path work happens below
// Layout.Root, follows no link, and has the file system rights of Owner.
type Place struct {
	Layout  paths.Layout
	Owner   asuser.Identity
	Agent   libctx.Agent
	Session libctx.Session
}

// Files of the resource directory, and the mode of all of them; directories are
// 0700.
const (
	MetaFile = "meta.json"
	filePerm = 0o600
	dirPerm  = 0o700
)

// ID is the terminal's id.
func (p Place) ID() string { return ID(p.Agent, p.Session) }

// String is AGENT/SESSION, by which people name a terminal whose id is
// ambiguous.
func (p Place) String() string { return string(p.Agent) + "/" + string(p.Session) }

// check refuses names before any path is made of them.
func (p Place) check() error {
	if _, err := libctx.ParseAgent(string(p.Agent)); err != nil {
		return err
	}
	_, err := libctx.ParseSession(string(p.Session))
	return err
}

// rel is the resource directory, relative to the tree.
func (p Place) rel() string {
	return path.Join(sessions(p.Owner.UID, p.Agent), string(p.Session), "terminal", p.ID())
}

func sessions(uid uint32, a libctx.Agent) string {
	return path.Join(agents(uid), string(a), "session")
}

func agents(uid uint32) string {
	return path.Join("home", strconv.FormatUint(uint64(uid), 10), "agent")
}

// Open opens the resource directory; errdefs.NotFound if the session never had
// a terminal. The caller closes it.
func (p Place) Open() (*atomicfile.Dir, error) { return p.dir((*atomicfile.Dir).Sub) }

// dir opens the resource directory in the given way.
func (p Place) dir(open func(*atomicfile.Dir, string) (*atomicfile.Dir, error)) (*atomicfile.Dir, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	var d *atomicfile.Dir
	err := p.Owner.Do(func() error {
		root, err := atomicfile.OpenDir(p.Layout.Root)
		if err != nil {
			return err
		}
		defer root.Close()
		d, err = open(root, p.rel())
		return err
	})
	return d, p.at(err)
}

// within runs fn with the owner's rights in the resource directory.
func (p Place) within(fn func(*atomicfile.Dir) error) error {
	d, err := p.Open()
	if err != nil {
		return err
	}
	defer d.Close()
	return p.at(p.Owner.Do(func() error { return fn(d) }))
}

// at says which terminal an error is about.
func (p Place) at(err error) error {
	if err == nil {
		return nil
	}
	return errdefs.New(errdefs.KindOf(err), "terminal %s: %w", p, err)
}
