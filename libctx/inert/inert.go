// Package inert makes text from models, tools, file names and remote programs
// harmless to show: nothing in it can act on a terminal, hide, or change how
// what stands around it reads. It is pure.
package inert

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"cortexfs.org/libctx/fault"
)

// Inert makes a stream of text harmless for a terminal. LF and TAB stay; every
// other control character, characters that change direction, characters nobody
// can see, line and paragraph separators and bytes that are not UTF-8 come out
// as escapes (\r, \x1b, \u202e). Chunks may be cut anywhere, also inside a
// character: the output does not depend on where. The zero value is ready.
type Inert struct {
	held [utf8.UTFMax]byte // an unfinished character at the end of the last chunk
	n    int
}

// Append appends the inert form of chunk to dst. At most three bytes are held
// back until the next chunk or Flush.
func (t *Inert) Append(dst, chunk []byte) []byte {
	for t.n > 0 && len(chunk) > 0 {
		t.held[t.n] = chunk[0]
		t.n++
		chunk = chunk[1:]
		if !utf8.FullRune(t.held[:t.n]) {
			continue
		}
		r, size := utf8.DecodeRune(t.held[:t.n])
		dst = appendInert(dst, r, t.held[:size])
		// What was not part of that character is read again.
		rest := t.n - size
		again := make([]byte, 0, rest+len(chunk))
		again = append(append(again, t.held[size:t.n]...), chunk...)
		chunk, t.n = again, 0
	}
	for len(chunk) > 0 {
		if !utf8.FullRune(chunk) {
			t.n = copy(t.held[:], chunk)
			return dst
		}
		r, size := utf8.DecodeRune(chunk)
		dst = appendInert(dst, r, chunk[:size])
		chunk = chunk[size:]
	}
	return dst
}

// Flush ends the stream: an unfinished character comes out byte by byte.
func (t *Inert) Flush(dst []byte) []byte {
	for _, b := range t.held[:t.n] {
		dst = fmt.Appendf(dst, `\x%02x`, b)
	}
	t.n = 0
	return dst
}

// Text is the inert form of a whole text.
func Text(s string) string {
	if isInert(s) {
		return s
	}
	var t Inert
	return string(t.Flush(t.Append(nil, []byte(s))))
}

// Line is the inert form of a text that must stay on one line: LF and TAB are
// escaped too.
func Line(s string) string {
	s = Text(s)
	var out []byte
	from := 0
	for i := range len(s) {
		switch s[i] {
		case '\n':
			out = append(append(out, s[from:i]...), `\n`...)
		case '\t':
			out = append(append(out, s[from:i]...), `\t`...)
		default:
			continue
		}
		from = i + 1
	}
	if from == 0 {
		return s
	}
	return string(append(out, s[from:]...))
}

// JSON makes a line of JSON harmless for a terminal without changing what it
// says: characters that Text would show are written as \u escapes, which is
// legal wherever they can occur, inside strings. LF and TAB stay.
func JSON(line []byte) []byte {
	if isInert(string(line)) {
		return line
	}
	out := make([]byte, 0, len(line)+64)
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, "\uFFFD"...)
		case !hidden(r):
			out = append(out, line[:size]...)
		case r > 0xFFFF:
			hi, lo := surrogates(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		line = line[size:]
	}
	return out
}

func surrogates(r rune) (hi, lo rune) {
	r -= 0x10000
	return 0xD800 + r>>10, 0xDC00 + r&0x3FF
}

func isInert(s string) bool {
	if fault.Off("inert:text") {
		return true
	}
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\t' || c == 0x7F {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || hidden(r) {
			return false
		}
		i += size
	}
	return true
}

func appendInert(dst []byte, r rune, raw []byte) []byte {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Appendf(dst, `\x%02x`, raw[0])
	case !hidden(r):
		return append(dst, raw...)
	case r == '\r':
		return append(dst, `\r`...)
	case r < 0x80:
		return fmt.Appendf(dst, `\x%02x`, r)
	case r <= 0xFFFF:
		return fmt.Appendf(dst, `\u%04x`, r)
	}
	return fmt.Appendf(dst, `\U%08x`, r)
}

// hidden reports whether a character does something other than showing itself.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ', r >= 0x7F && r < 0xA0: // C0, DEL, C1
		return true
	case r < 0xAD:
		return false
	case unicode.Is(unicode.Cf, r): // direction, zero width, tags
		return !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
	case unicode.In(r, unicode.Zl, unicode.Zp):
		return true
	case r == 0xFE0E || r == 0xFE0F: // text or emoji presentation
		return false
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true // fillers and selectors that show nothing
	}
	return false
}
