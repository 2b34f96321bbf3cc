// Package linefile reads the small text files of the tree: whole lines, each
// ended by LF, in valid UTF-8, within one size limit. What it refuses it
// refuses with the line and the piece of text that is wrong, so that a person
// who edited the file finds the place. The grammars themselves are in the
// packages control, policy and mount.
package linefile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// Error says what is wrong in a text file, and where.
type Error struct {
	File  string // name of the file, may be empty
	Line  int    // from 1; 0 if no single line is meant
	Token string // the offending piece as it stands in the file, may be empty
	Why   string
}

// maxToken is the number of bytes of a token that a message shows.
const maxToken = 60

// Error is one line; the token is quoted, clipped and free of control
// characters.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ": ")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if t := e.Token; t != "" {
		more := ""
		if len(t) > maxToken {
			t, more = strings.ToValidUTF8(t[:maxToken], ""), "…"
		}
		b.WriteString(strconv.QuoteToGraphic(t) + more + ": ")
	}
	return b.String() + e.Why
}

// Refuse is an errdefs.Invalid error that wraps an *Error without a file.
func Refuse(line int, token, why string, args ...any) error {
	return wrap(&Error{Line: line, Token: token, Why: fmt.Sprintf(why, args...)})
}

// In names the file in an error of Refuse; any other error is kept as the
// reason. The result is errdefs.Invalid and wraps an *Error.
func In(file string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Why: err.Error()}
	}
	named := *e
	named.File = file
	return wrap(&named)
}

// At gives the error of a value's parser its line. The token is shown if the
// error names none itself. Bad names (libctx.NameError) lose their own wording,
// which the token replaces.
func At(line int, token string, err error) error {
	var e *Error
	var name *libctx.NameError
	why := ""
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		token, why = cmp.Or(e.Token, token), e.Why
	case errors.As(err, &name) && name.Value == "":
		why = "has an empty name"
	case errors.As(err, &name):
		token, why = name.Value, name.Why
	default:
		why = err.Error()
	}
	return wrap(&Error{Line: line, Token: token, Why: why})
}

func wrap(e *Error) error { return errdefs.New(errdefs.Invalid, "%w", e) }

// Check tests what every text file must be: at most libctx.MaxControlFile
// bytes of valid UTF-8 without NUL.
func Check(text []byte) error {
	if len(text) > libctx.MaxControlFile {
		return Refuse(0, "", "is longer than %d bytes", libctx.MaxControlFile)
	}
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return Refuse(lineAt(text, i), "", "holds a NUL byte")
	}
	if !utf8.Valid(text) {
		i := firstInvalid(text)
		return Refuse(lineAt(text, i), "", "holds a byte that is not UTF-8 (0x%02x)", text[i])
	}
	return nil
}

// Split returns the lines of a text that passes Check, holds no carriage return
// and no byte order mark, and is either empty (no lines) or ends in LF.
func Split(text []byte) ([]string, error) {
	if err := Check(text); err != nil {
		return nil, err
	}
	if len(text) == 0 {
		return nil, nil
	}
	if i := bytes.IndexByte(text, '\r'); i >= 0 {
		return nil, Refuse(lineAt(text, i), "", "holds a carriage return; lines end in LF alone")
	}
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		return nil, Refuse(1, "", "begins with a byte order mark")
	}
	lines := strings.Split(string(text), "\n")
	last := len(lines) - 1
	if lines[last] != "" {
		return nil, Refuse(len(lines), lines[last], "has no newline at its end")
	}
	return lines[:last], nil
}

// One returns the only line of a text. It may not be empty.
func One(text []byte) (string, error) {
	lines, err := Split(text)
	switch {
	case err != nil:
		return "", err
	case len(lines) == 0:
		return "", Refuse(1, "", "is empty")
	case len(lines) > 1:
		return "", Refuse(2, lines[1], "is one line too many")
	case lines[0] == "":
		return "", Refuse(1, "", "is empty")
	}
	return lines[0], nil
}

// CheckPath tests what every path in a text file is: not empty, at most
// libctx.MaxPath bytes of valid UTF-8, in its shortest form, without control
// characters.
func CheckPath(s string) error {
	if !utf8.ValidString(s) {
		return Refuse(0, s, "is not UTF-8")
	}
	if _, bad := Control(s, ""); bad {
		return Refuse(0, s, "holds a control character")
	}
	switch {
	case s == "":
		return Refuse(0, "", "is empty where a path should be")
	case len(s) > libctx.MaxPath:
		return Refuse(0, s, "is longer than a path can be")
	case path.Clean(s) != s:
		return Refuse(0, s, "is not in its shortest form: %.80q", path.Clean(s))
	}
	return nil
}

// CheckAbsolute is CheckPath for a path that begins at the root.
func CheckAbsolute(s string) error {
	if s != "" && s[0] != '/' {
		return Refuse(0, s, "is not an absolute path")
	}
	return CheckPath(s)
}

// Control reports the first control character of s other than those in except.
// C1 controls and the line and paragraph separators count: a terminal or a
// reader of lines may act on them.
func Control(s, except string) (rune, bool) {
	for _, r := range s {
		bad := r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029
		if bad && !strings.ContainsRune(except, r) {
			return r, true
		}
	}
	return 0, false
}

func lineAt(text []byte, i int) int { return 1 + bytes.Count(text[:i], []byte("\n")) }

func firstInvalid(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return 0
}
