package control

import (
	"strings"

	"cortexfs.org/libctx/linefile"
	"cortexfs.org/libctx/paths"
)

// DefaultCwd is the current directory of an agent without the file cwd.
const DefaultCwd = paths.InWorkspace

func absolute(s string) (string, error) { return s, linefile.CheckAbsolute(s) }

// ParseCwd reads the file cwd: an absolute path as seen inside the sandbox.
func ParseCwd(text []byte) (string, error) { return value("cwd", text, absolute) }

var rootWord = oneOf(paths.InRoot)

// ParseRoot reads the file root; /ctx is the only value.
func ParseRoot(text []byte) (string, error) { return value("root", text, rootWord) }

// directory is an entry of CTX_PATH. It holds no colon, because CTX_PATH itself
// is a colon list.
func directory(s string) (string, error) {
	if strings.Contains(s, ":") {
		return "", linefile.Refuse(0, s, "holds a colon")
	}
	return absolute(s)
}

// ParsePath reads the file path: the directories of CTX_PATH in their order,
// one a line. A single line of several, joined by colons, is read too; the
// canonical text is List of the result.
func ParsePath(text []byte) ([]string, error) {
	if line, err := linefile.One(text); err == nil && strings.Contains(line, ":") {
		dirs, err := splitPath(line)
		return dirs, linefile.In("path", err)
	}
	return list("path", text, directory)
}

// splitPath reads a colon list, as on line 1 of a file.
func splitPath(s string) ([]string, error) {
	dirs, err := list("", List(strings.Split(s, ":")), directory)
	if err != nil {
		return nil, linefile.At(1, s, err)
	}
	return dirs, nil
}

// ParseProtect reads the file protect: paths below the workspace that stay
// read-only, one relative path a line.
func ParseProtect(text []byte) ([]string, error) {
	return list("protect", text, func(s string) (string, error) {
		switch {
		case s[0] == '/':
			return "", linefile.Refuse(0, s, "is not relative to the workspace")
		case s == ".":
			return "", linefile.Refuse(0, s, "is the workspace itself")
		}
		for part := range strings.SplitSeq(s, "/") {
			if part == ".." {
				return "", linefile.Refuse(0, s, "leads upwards")
			}
		}
		return s, linefile.CheckPath(s)
	})
}
