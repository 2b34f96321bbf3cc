package shell

import (
	"fmt"
	"unicode/utf8"

	"cortexfs.org/libctx/wire"
)

// capture keeps the head and the tail of a stream in bounded memory.
type capture struct {
	head []byte // the first headMax bytes
	tail []byte // a ring of the last bytes after the head
	at   int    // where in a full ring the oldest byte is
	size int64  // bytes of the whole stream

	headMax, tailMax int
}

// newCapture keeps about max bytes of a stream, half of them from its end.
func newCapture(max int) *capture { return &capture{headMax: max / 2, tailMax: max - max/2} }

// Write takes the next piece of the stream; it never fails.
func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	c.size += int64(n)
	if free := c.headMax - len(c.head); free > 0 {
		take := min(free, len(p))
		c.head = append(c.head, p[:take]...)
		p = p[take:]
	}
	if len(p) > c.tailMax {
		p = p[len(p)-c.tailMax:]
	}
	if free := c.tailMax - len(c.tail); free > 0 {
		take := min(free, len(p))
		c.tail = append(c.tail, p[:take]...)
		p = p[take:]
	}
	for len(p) > 0 {
		k := copy(c.tail[c.at:], p)
		c.at = (c.at + k) % c.tailMax
		p = p[k:]
	}
	return n, nil
}

// text is what was kept, as valid text of at most the kept size: what is no
// UTF-8 is replaced by marks, and where something is missing a line says how
// much. The second result tells whether something is.
func (c *capture) text() (string, bool) {
	tail := append(append([]byte(nil), c.tail[c.at:]...), c.tail[:c.at]...)
	if missing := c.size - int64(len(c.head)+len(tail)); missing == 0 {
		// Head and tail meet, perhaps inside a character.
		all := wire.Clean(append(c.head[:len(c.head):len(c.head)], tail...))
		return clip(all, c.headMax, c.tailMax)
	}
	head, tailText := wire.Clean(cutEnd(c.head)), wire.Clean(cutStart(tail))
	head = head[:back(head, c.headMax)]
	tailText = tailText[forth(tailText, len(tailText)-c.tailMax):]
	return head + fmt.Sprintf("\n[… %d bytes in all, the middle left out …]\n", c.size) + tailText, true
}

// clip bounds a text that the replacement marks have made longer.
func clip(s string, head, tail int) (string, bool) {
	if len(s) <= head+tail {
		return s, false
	}
	return s[:back(s, head)] + "\n[… the middle left out …]\n" + s[forth(s, len(s)-tail):], true
}

// back is the last character boundary of s at or before i.
func back(s string, i int) int {
	for i = min(i, len(s)); i > 0 && i < len(s) && !utf8.RuneStart(s[i]); i-- {
	}
	return i
}

// forth is the first character boundary of s at or after i.
func forth(s string, i int) int {
	for i = max(i, 0); i < len(s) && !utf8.RuneStart(s[i]); i++ {
	}
	return i
}

// cutEnd drops the beginning of a character that the head ends in.
func cutEnd(p []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if tail := p[len(p)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return p[:len(p)-i]
			}
			break
		}
	}
	return p
}

// cutStart drops the end of a character that the tail begins with.
func cutStart(p []byte) []byte {
	for i := 0; i < utf8.UTFMax && i < len(p); i++ {
		if utf8.RuneStart(p[i]) {
			return p[i:]
		}
	}
	return p
}
