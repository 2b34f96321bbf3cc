package mux

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/termwire"
)

// want gives a client a screen, and its place again if it is to have one. Both
// begin at the same byte of the output, which has to be between two sequences:
// the client's terminal could not read on in the middle of one. Called with mu
// held.
func (m *Mux) want(c *Client) {
	if c.view.Size == (termwire.Size{}) {
		if c.place.in == nil {
			c.place = m.out.here()
		}
		return
	}
	c.wish++
	if c.joining { // it has read nothing from its place on
		c.place, c.fresh, c.stop, c.joining = place{}, nil, -1, false
	}
	if c.place.in == nil && (!m.raw(c) || !m.ground) {
		// Of a drawn client nothing has to be exact. One that waits for ground is
		// drawn until then, so that a program which stops in the middle of a
		// sequence does not leave it without a picture.
		c.draw(true)
		c.shown = m.version - 1
		m.kick()
	}
	switch {
	case c.place.in == nil && !m.raw(c):
	case m.ground:
		m.serve(c)
	case !c.wanting:
		c.wanting = true
		m.wanting = append(m.wanting, c)
	}
}

// raw reports whether the client gets the program's bytes.
func (m *Mux) raw(c *Client) bool { return c.view.Size == (termwire.Size{}) || c.view.Size == m.size }

// serveWanting serves those that waited for ground. Called with mu held, at
// ground.
func (m *Mux) serveWanting() {
	for _, c := range m.wanting {
		if c.wanting && !c.gone {
			c.wanting = false
			m.serve(c)
		}
	}
	m.wanting = m.wanting[:0]
}

// serve has the painter make a screen of exactly this moment for a client that
// has a place or gets one. Called with mu held, at ground.
func (m *Mux) serve(c *Client) {
	c.follow = m.raw(c)
	if c.place.in == nil {
		if !c.follow {
			return // it is drawn already
		}
		c.place, c.joining = m.out.here(), true
	}
	c.draw(false)
	c.busy = false
	c.stop, c.fresh = m.out.end, nil
	m.mark(mark{at: len(m.pending.program), client: c, wish: c.wish, seq: m.seq, version: m.version})
	m.kick()
}

// maxScreen is the bytes of a redraw that one frame holds.
const maxScreen = (libctx.MaxFrame - 256) / 4 * 3

// screenFrame is the screen as a frame; what does not fit into it follows as
// output frames of the same seq.
func screenFrame(dst []byte, size termwire.Size, seq uint64, data []byte) []byte {
	first := data[:min(len(data), maxScreen)]
	line, err := termwire.MarshalFrame(&termwire.Screen{Seq: seq, Size: size, Data: first})
	if err != nil {
		return dst
	}
	dst = append(dst, line...)
	for data = data[len(first):]; len(data) > 0; {
		n := min(len(data), maxScreen)
		dst = termwire.AppendOutput(dst, seq, data[:n])
		data = data[n:]
	}
	return dst
}

// redraw is the bytes that show the screen in a view.
func (m *Mux) redraw(view View) []byte {
	if view.Scrollback > 0 {
		return m.screen.Replay(view.Size, view.Scrollback)
	}
	return m.screen.Redraw(view.Size)
}
