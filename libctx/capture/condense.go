package capture

import (
	"bytes"
	"io"
)

// Condenser passes an output on to a writer as it would look in the end: of a
// line that was written over, with a carriage return that ends no line, only the
// last state goes on. So a progress bar is one line. Errors of the writer are
// dropped. It is for one goroutine.
type Condenser struct {
	w       io.Writer
	line    []byte // begin of the line that is not passed on yet
	cr      bool   // a CR followed it
	dropped int64
}

// maxPending is the number of bytes of a line that may be written over; of a
// longer one the begin is passed on.
const maxPending = 64 << 10

// NewCondenser passes on to w, which stays the caller's.
func NewCondenser(w io.Writer) *Condenser { return &Condenser{w: w} }

// Write takes everything.
func (c *Condenser) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if c.cr {
			switch p[0] {
			case '\n':
				c.line = append(c.line, '\r')
			case '\r': // several are as good as one
				c.dropped++
				p = p[1:]
				continue
			default:
				c.dropped += int64(len(c.line)) + 1
				c.line = c.line[:0]
			}
			c.cr = false
		}
		// Whole lines without a CR need no look.
		plain := p
		if i := bytes.IndexByte(p, '\r'); i >= 0 {
			plain = p[:i]
		}
		whole := bytes.LastIndexByte(plain, '\n') + 1
		if whole > 0 {
			c.pass()
			c.w.Write(plain[:whole])
		}
		c.line = append(c.line, plain[whole:]...)
		if len(c.line) > maxPending {
			c.pass()
		}
		if c.cr = len(plain) < len(p); c.cr {
			p = p[1:]
		}
		p = p[len(plain):]
	}
	return n, nil
}

// Flush passes on the last line, if it has no end.
func (c *Condenser) Flush() {
	if c.cr {
		c.line = append(c.line, '\r')
		c.cr = false
	}
	c.pass()
}

// Dropped is the number of bytes that were not passed on.
func (c *Condenser) Dropped() int64 { return c.dropped }

func (c *Condenser) pass() {
	if len(c.line) > 0 {
		c.w.Write(c.line)
		c.line = c.line[:0]
	}
}
