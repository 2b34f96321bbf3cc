// Package toolshell is the tool shell: the rule by which a tool name becomes a
// file, the builtins that find, explain and load tools, and the set of loaded
// tools of a session. The program tsh, the tsh operation of an agent's server and
// an agent's own calls of tsh all are this package; what differs is the Catalog
// in which tools are found and the Store that keeps the set. Calling a tool is
// none of its business: that is decided and done by the agent's host.
//
// A name becomes a file by the directories of CTX_PATH alone, in order, first
// executable regular file wins. The host's PATH has no part in it.
package toolshell

import (
	"path"
	"strconv"
	"strings"

	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
)

// StartFile is the name of the start-up file of a standalone tsh, in CTX_HOME.
const StartFile = ".tshrc"

// DefaultPath is the path of a user who set none: the tree's tools, then the
// user's own. The directories are inside paths.
func DefaultPath(uid uint32) []string {
	return []string{
		path.Join(paths.InRoot, "tool"),
		path.Join(paths.InRoot, "home", strconv.FormatUint(uint64(uid), 10), "tool"),
	}
}

// Sources are the places a path can come from; absent ones are empty.
type Sources struct {
	InAgent bool     // CTX_AGENT is set: the process runs in an agent's view
	Tshrc   []string // of the start-up file (control.ParseTshrc); nil if it sets none
	Process string   // CTX_PATH of the environment
	UID     uint32
}

// SearchPath is the path in force. In an agent's view it is CTX_PATH of the
// process alone, because that is part of the view. Elsewhere it is the start-up
// file's, else that of the process, else DefaultPath. Errors are those of Split.
func SearchPath(s Sources) ([]string, error) {
	switch {
	case !s.InAgent && s.Tshrc != nil:
		return s.Tshrc, nil
	case s.Process != "":
		return Split(s.Process)
	case s.InAgent:
		return nil, errdefs.New(errdefs.Invalid, "CTX_PATH: is not set in an agent's environment")
	}
	return DefaultPath(s.UID), nil
}

// Split takes a CTX_PATH apart: absolute clean directories with colons between,
// as control.ParsePath has them. Anything else is errdefs.Invalid; an empty
// element, which elsewhere means the current directory, is too.
func Split(text string) ([]string, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errdefs.New(errdefs.Invalid, "CTX_PATH: holds a line end")
	}
	dirs, err := control.ParsePath(control.Line(text))
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "CTX_PATH: %w", err)
	}
	if len(dirs) == 0 {
		return nil, errdefs.New(errdefs.Invalid, "CTX_PATH: is empty")
	}
	return dirs, nil
}
