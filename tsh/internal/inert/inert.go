// Package inert makes text from files, tools and models safe to show on a
// terminal.
package inert

import (
	"strings"
	"unicode"
)

// Text keeps LF and TAB and makes other control and direction characters
// visible, so that nothing in s can act on the terminal or hide.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20:
			return '\u2400' + r
		case r == 0x7f:
			return '\u2421'
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
