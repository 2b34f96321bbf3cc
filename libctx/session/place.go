package session

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
)

// Place is where the sessions of one agent are. All path work runs with the
// owner's file system rights.
type Place struct {
	Layout paths.Layout
	Agent  libctx.Agent
	Owner  asuser.Identity
}

// Open opens a session for writing.
func (p Place) Open(name libctx.Session) (*Session, error) { return nil, errNot }

// Read opens a session for reading.
func (p Place) Read(name libctx.Session) (*Reader, error) { return nil, errNot }

// List describes the sessions.
func (p Place) List() ([]Info, error) { return nil, errNot }

// Current is the current session.
func (p Place) Current() (libctx.Session, error) { return "", errNot }

// SetCurrent sets it.
func (p Place) SetCurrent(name libctx.Session) error { return errNot }

var errNot = errdefs.New(errdefs.Unsupported, "session store")
