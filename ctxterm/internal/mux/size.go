package mux

import "cortexfs.org/libctx/termwire"

// Resize says the size of an attached client's own terminal now.
func (c *Client) Resize(size termwire.Size) {
	m := c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.pending.marks) >= maxMarks && !c.gone && !m.ended {
		m.room.Wait()
	}
	if c.gone || m.ended || c.view.Size == size {
		return
	}
	c.view.Size = size
	if !m.fit() {
		m.want(c)
	}
}

// fit gives the terminal the size that the rule says and reports whether it has
// changed. Called with mu held.
func (m *Mux) fit() bool {
	var size termwire.Size
	for c := range m.clients {
		switch {
		case c.mode != Attach:
		case size == termwire.Size{}:
			size = c.view.Size
		default:
			size = termwire.Size{Cols: min(size.Cols, c.view.Cols), Rows: min(size.Rows, c.view.Rows)}
		}
	}
	if size == (termwire.Size{}) || size == m.size || m.ended {
		return false
	}
	// The program's side first: it may act on the signal before anybody is told,
	// and what it prints then is meant for the new size.
	m.cfg.Program.Resize(size)
	m.size = size
	m.mark(mark{at: len(m.pending.program), size: size})
	m.cfg.Recorder.Resize(size)
	line, err := termwire.MarshalFrame(&termwire.Resized{Size: size})
	if err == nil {
		m.grown(m.out.frame(line))
	}
	m.changed()
	for c := range m.clients {
		if c.place.in != nil && !c.joining {
			c.told, c.news = size, m.out.end
		}
		if c.here && c.mode != Emit && !c.lagging {
			m.want(c)
		}
	}
	return true
}
