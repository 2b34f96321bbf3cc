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
}

func (c *cleaner) Write(p []byte) (int, error) {
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
