package shell

import (
	"io"

	"cortexfs.org/libctx/wire"
	"cortexfs.org/tsh/internal/tool/object"
)

// cleaner passes bytes on as valid text, with marks for what is none, whatever
// pieces they come in. Errors of the writer are dropped.
type cleaner struct {
	w    io.Writer
	rest []byte // begin of a character
	raw  int64  // bytes that came
}

func (c *cleaner) Write(p []byte) (int, error) {
	c.raw += int64(len(p))
	text := p
	if len(c.rest) > 0 {
		text = append(c.rest, p...)
	}
	whole := object.Boundary(text)
	if object.NotText(text[:whole]) < 0 {
		c.w.Write(text[:whole])
	} else {
		io.WriteString(c.w, wire.Clean(text[:whole]))
	}
	c.rest = append([]byte(nil), text[whole:]...)
	return len(p), nil
}

// flush passes on what is left of a character that never came.
func (c *cleaner) flush() {
	io.WriteString(c.w, wire.Clean(c.rest))
	c.rest = nil
}

// head passes on the first left bytes that it gets and takes the rest. Errors of
// the writer are dropped.
type head struct {
	w    io.Writer
	left int
}

func (h *head) Write(p []byte) (int, error) {
	if n := min(h.left, len(p)); n > 0 {
		h.w.Write(p[:n])
		h.left -= n
	}
	return len(p), nil
}
