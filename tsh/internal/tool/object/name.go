// Package object reaches what the path argument of a tool names: by descriptor,
// following no symbolic link at any component, opening nothing but regular files
// and directories. It also says how paths are written and how failures read.
package object

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"cortexfs.org/libctx/errdefs"
)

// Show makes a path printable in one line and unambiguous: as it is, or, if it
// holds anything that is not plain to see, as a Go string literal. Plain returns
// the path from either form.
func Show(p string) string {
	if p == "" || strings.ContainsAny(p, `"\`) || strings.HasPrefix(p, " ") || strings.HasSuffix(p, " ") || !utf8.ValidString(p) {
		return strconv.Quote(p)
	}
	for _, r := range p {
		if !strconv.IsPrint(r) {
			return strconv.Quote(p)
		}
	}
	return p
}

// Plain reads a path argument: a text that begins with a double quote is a
// quoted path as Show prints it, any other is the path itself. A file whose name
// begins with a double quote is named in quotes, or with ./ in front.
func Plain(arg string) (string, error) {
	p := arg
	if strings.HasPrefix(arg, `"`) {
		var err error
		if p, err = strconv.Unquote(arg); err != nil {
			return "", errdefs.New(errdefs.Invalid, "path %.200q begins with a quote and is not a quoted path", arg)
		}
	}
	switch {
	case p == "":
		return "", errdefs.New(errdefs.Invalid, "path is missing or empty")
	case strings.ContainsRune(p, 0):
		return "", errdefs.New(errdefs.Invalid, "path holds a NUL character")
	}
	return p, nil
}

// Join is the path of an entry below base, such that it can be given back: an
// entry of the current directory that begins with a dash gets ./ in front.
func Join(base, rel string) string {
	if p := path.Join(base, rel); p[0] != '-' {
		return p
	}
	return "./" + path.Join(base, rel)
}
