package editor

import (
	"bytes"
	"strings"

	"cortexfs.org/libctx"
)

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// keystream tells pastes and reports of the terminal from keys, wherever the
// chunks are cut.
type keystream struct {
	held    []byte // the beginning of a sequence, or the paste so far
	pasting bool
	skipped int // bytes of a paste that were too many
}

// take appends to dst what the library is to read of a chunk: keys as they are,
// pastes as paste makes them, reports not at all.
func (k *keystream) take(dst, chunk []byte, paste func(string) string) []byte {
	in := append(k.held, chunk...)
	k.held = nil
	for len(in) > 0 {
		if k.pasting {
			text, rest, whole := bytes.Cut(in, []byte(pasteEnd))
			if !whole {
				k.held = in
				if over := len(in) - libctx.MaxPaste - len(pasteEnd); over > 0 { // the beginning is kept, and what may be the end
					tail := in[len(in)-len(pasteEnd):]
					k.held = append(in[:libctx.MaxPaste:libctx.MaxPaste], tail...)
					k.skipped += over
				}
				return dst
			}
			k.pasting, k.skipped = false, 0
			dst = append(dst, pasteBegin...)
			dst = append(dst, paste(lines(text))...)
			dst = append(dst, pasteEnd...)
			in = rest
			continue
		}
		i := bytes.IndexByte(in, 0x1b)
		if i < 0 {
			return append(dst, in...)
		}
		dst = append(dst, in[:i]...)
		in = in[i:]
		if len(in) > 1 && in[1] == 0x1b { // or what is left out would join what stands around it
			in = in[1:]
			continue
		}
		if len(in) > 1 && in[1] != '[' {
			dst = append(dst, in[:2]...)
			in = in[2:]
			continue
		}
		n := sequence(in)
		if n == 0 { // not whole yet
			k.held = bytes.Clone(in)
			return dst
		}
		switch one := string(in[:n]); {
		case one[n-1] < 0x40 || one[n-1] == '[' && n == 2: // it has no end
		case one == pasteBegin:
			k.pasting = true
		case one[n-1] == 'R' && strings.ContainsRune(one, ';'): // where the cursor is; F3 with a modifier looks the same
		default:
			dst = append(dst, one...)
		}
		in = in[n:]
	}
	return dst
}

// sure is how many bytes can be read at once that hold no key behind a line's end:
// one, and in a paste as many as its end is certain to be away at least.
func (k *keystream) sure() int {
	if !k.pasting {
		return 1
	}
	for n := len(pasteEnd) - 1; n > 0; n-- {
		if bytes.HasSuffix(k.held, []byte(pasteEnd[:n])) {
			return len(pasteEnd) - n
		}
	}
	return len(pasteEnd)
}

// waiting reports whether the beginning of a sequence is held back.
func (k *keystream) waiting() bool { return len(k.held) > 0 && !k.pasting }

// release appends to dst what is held: nothing came to make more of it than what
// a person typed, as Escape.
func (k *keystream) release(dst []byte) []byte {
	dst = append(dst, k.held...)
	k.held = nil
	return dst
}

// sequence is the length of the control sequence that in begins with, 0 if more
// has to come. What does not go on like one ends there.
func sequence(in []byte) int {
	for i := 2; i < len(in); i++ {
		switch c := in[i]; {
		case c >= 0x20 && c < 0x40: // parameters
		case c >= 0x40 && c < 0x7F:
			return i + 1
		default:
			return i
		}
		if i >= 64 {
			return i + 1
		}
	}
	return 0
}

// lines is a pasted text with LF at the ends of its lines: terminals send CR.
func lines(text []byte) string {
	return strings.ReplaceAll(strings.ReplaceAll(string(text), "\r\n", "\n"), "\r", "\n")
}
