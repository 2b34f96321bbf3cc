package object

import (
	"bytes"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// TooBig is the error of a file of that many bytes, over libctx.MaxFileRead.
func TooBig(p string, size int64) error {
	return errdefs.New(errdefs.TooBig, "%s: %d bytes, over the limit of %d", Show(p), size, libctx.MaxFileRead)
}

// Boundary is the length of the longest head of p that does not end inside a
// character. Bytes that can not become one count as whole.
func Boundary(p []byte) int {
	for i := 1; i <= min(utf8.UTFMax-1, len(p)); i++ {
		if tail := p[len(p)-i:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return len(p)
			}
			return len(p) - i
		}
	}
	return len(p)
}

// NotText is where p stops being text, or -1: at a NUL or at the first bytes
// that are not UTF-8.
func NotText(p []byte) int {
	nul := bytes.IndexByte(p, 0)
	if nul < 0 && utf8.Valid(p) {
		return -1
	}
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRune(p[i:])
		if r == 0 || r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return nul
}
