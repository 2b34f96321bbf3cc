package session

import (
	"errors"
	"os"
	"path"
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// Place is where the private sessions of one agent are. All path work happens
// below Layout.Root, follows no link, and has the file system rights of Owner,
// so that what it makes belongs to the owner.
type Place struct {
	Layout paths.Layout
	Agent  libctx.Agent
	Owner  asuser.Identity
}

// Files of a session directory.
const (
	ledgerFile = "messages.jsonl"
	eventsFile = "events.jsonl"
	indexFile  = "context/ledger.idx"
)

// Modes of everything a session is made of.
const (
	dirPerm  = 0o700
	filePerm = 0o600
)

// sessions is the directory of the agent's sessions, relative to the tree.
func (p Place) sessions() string {
	return path.Join("home", strconv.FormatUint(uint64(p.Owner.UID), 10), "agent", string(p.Agent), "session")
}

// rel is the directory of one session, relative to the tree. Its hash names the
// lock files.
func (p Place) rel(name libctx.Session) string { return path.Join(p.sessions(), string(name)) }

// check refuses names before any path is made of them.
func (p Place) check(name libctx.Session) error {
	if _, err := libctx.ParseAgent(string(p.Agent)); err != nil {
		return err
	}
	_, err := libctx.ParseSession(string(name))
	return err
}

// Within runs fn with the owner's rights in the directory of a session, which is
// there as soon as the session has a run. fn does not keep the Dir.
func (p Place) Within(name libctx.Session, fn func(*atomicfile.Dir) error) error {
	if err := p.check(name); err != nil {
		return err
	}
	return p.in(p.rel(name), fn)
}

// in runs fn with the owner's rights in a directory given relative to the tree.
func (p Place) in(rel string, fn func(*atomicfile.Dir) error) error {
	return p.Owner.Do(func() error {
		root, err := atomicfile.OpenDir(p.Layout.Root)
		if err != nil {
			return err
		}
		defer root.Close()
		d, err := root.Sub(rel)
		if err != nil {
			return err
		}
		defer d.Close()
		return fn(d)
	})
}

// make is in, and makes what is missing of the directory, durably.
func (p Place) make(rel string, fn func(*atomicfile.Dir) error) error {
	return p.Owner.Do(func() error {
		root, err := atomicfile.OpenDir(p.Layout.Root)
		if err != nil {
			return err
		}
		defer root.Close()
		d, err := root.MkdirAll(rel, dirPerm)
		if err != nil {
			return err
		}
		defer d.Close()
		return fn(d)
	})
}

// openExisting opens a file for reading and appending only if it is there.
func openExisting(d *atomicfile.Dir, rel string) (*os.File, error) {
	if _, err := d.Lstat(rel); err != nil {
		return nil, err
	}
	f, _, err := d.OpenAppend(rel, filePerm)
	return f, err
}

// at says which session an error is about.
func (p Place) at(name libctx.Session, err error) error {
	if err == nil {
		return nil
	}
	return errdefs.New(kindOf(err), "session %s of agent %s: %w", name, p.Agent, err)
}

// kindOf is the kind of a storage error. That a file system is read-only is a
// failure of storage here, not somebody's missing right.
func kindOf(err error) errdefs.Kind {
	if errors.Is(err, unix.EROFS) {
		return errdefs.IO
	}
	return errdefs.KindOf(err)
}
