package wire

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Clean makes bytes from outside into text that JSON can carry: each invalid
// byte becomes U+FFFD, NUL becomes the visible U+2400.
func Clean(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	return strings.ReplaceAll(s, "\x00", "\u2400")
}

// Clip bounds a text to max bytes by keeping its head and its tail around a
// line that says how much is missing; characters stay whole. It reports whether
// it cut.
func Clip(s string, max int) (string, bool) {
	if len(s) <= max {
		return s, false
	}
	note := fmt.Sprintf("\n[… %d bytes in all, middle left out …]\n", len(s))
	keep := max - len(note)
	if keep <= 0 {
		return s[:floor(s, max)], true
	}
	head := floor(s, keep*2/3)
	tail := ceil(s, len(s)-(keep-head))
	return s[:head] + note + s[tail:], true
}

// floor is the last character boundary at or before i.
func floor(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// ceil is the first character boundary at or after i.
func ceil(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}
