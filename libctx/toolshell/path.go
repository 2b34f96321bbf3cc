// Package toolshell is the rule by which a tool name becomes a file: the
// directories of CTX_PATH, in order, first executable regular file wins. The
// host's PATH has no part in it. Apart from Lookup, which looks at files,
// everything here is a function of its arguments.
package toolshell

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"cortexfs.org/libctx"
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
	Tshrc   []string // of the start-up file (ParseTshrc)
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

// Split takes a CTX_PATH apart: 1 to libctx.MaxSearchDirs absolute clean
// directories, colons between. Anything else is errdefs.Invalid; an empty
// element, which elsewhere means the current directory, is too.
func Split(text string) ([]string, error) {
	dirs := strings.Split(text, ":")
	if len(dirs) > libctx.MaxSearchDirs {
		return nil, errdefs.New(errdefs.Invalid, "CTX_PATH: holds more than %d directories", libctx.MaxSearchDirs)
	}
	for _, d := range dirs {
		if !path.IsAbs(d) || path.Clean(d) != d || strings.ContainsAny(d, "\x00\n\r") || !utf8.ValidString(d) {
			return nil, errdefs.New(errdefs.Invalid, "CTX_PATH: %.80q is not an absolute clean directory", d)
		}
	}
	return dirs, nil
}

// ParseTshrc reads a start-up file: at most one line CTX_PATH=DIRS, blank lines,
// and lines that begin with #. It is data: nothing in it is expanded or run. A
// file without the line gives nil. Anything else is errdefs.Invalid and names
// the line, as is a file over libctx.MaxControlFile bytes.
func ParseTshrc(text []byte) ([]string, error) {
	if len(text) > libctx.MaxControlFile {
		return nil, errdefs.New(errdefs.Invalid, "%s: longer than %d bytes", StartFile, libctx.MaxControlFile)
	}
	var dirs []string
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if strings.Trim(line, " \t") == "" || line[0] == '#' {
			continue
		}
		value, ok := strings.CutPrefix(line, "CTX_PATH=")
		switch {
		case !ok:
			return nil, errdefs.New(errdefs.Invalid, "%s: line %d: only CTX_PATH=DIRECTORIES is understood", StartFile, n)
		case dirs != nil:
			return nil, errdefs.New(errdefs.Invalid, "%s: line %d: a second CTX_PATH", StartFile, n)
		}
		var err error
		if dirs, err = Split(value); err != nil {
			return nil, errdefs.New(errdefs.Invalid, "%s: line %d: %w", StartFile, n, err)
		}
	}
	return dirs, nil
}
