package mux

import (
	"bytes"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/inert"
)

// emitted is what emitters said and nobody has seen yet.
type emitted struct {
	text  []byte // inert, whole lines
	cut   bool   // its beginning was left out
	alone bool   // the program shows the alternate screen: it waits for the main one
	held  bool   // the program's next output waits for it
}

// cutMark stands for what was left out.
const cutMark = "[…]\n"

// Emit shows data above the line in which the program's cursor is: text lines in
// which everything but LF, TAB and SGR is made inert, so that it can act on
// nothing. It never is input. While the program shows the alternate screen the
// last libctx.MaxTermEmitted bytes are kept for later; else Emit waits for room.
// What is kept when the program ends there is shown to nobody: clients leave that
// screen with the program, and there is no other to draw on.
func (c *Client) Emit(data []byte) {
	text := lines(data)
	m := c.m
	m.cfg.Recorder.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	e := &m.emitted
	for len(e.text) > 0 && len(e.text)+len(text) > libctx.MaxTermEmitted && !e.alone && !m.ended && !c.gone {
		m.room.Wait()
	}
	if m.ended || c.gone {
		return
	}
	e.text = append(e.text, text...)
	if e.alone && len(e.text) > libctx.MaxTermEmitted {
		rest := e.text[len(e.text)-libctx.MaxTermEmitted:]
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			rest = rest[i+1:]
		}
		e.text, e.cut = bytes.Clone(rest), true
	}
	m.kick()
}

// emit shows what emitters said if the screen is up to date and shows the main
// screen, between two sequences of the program. Otherwise it has the program wait
// at the next such place.
func (m *Mux) emit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := &m.emitted
	e.alone = m.screen.Alternate()
	switch {
	case len(e.text) == 0 || e.alone:
		e.held = false
	case !m.ground && len(m.pending.program) == 0 && len(m.pending.marks) == 0:
		// The program has stopped in the middle of a sequence. That may be for ever,
		// and nobody waits for it.
		e.alone, e.held = true, true
		m.room.Broadcast()
		return
	case len(m.pending.program) > 0 || len(m.pending.marks) > 0 || !m.ground:
		e.held = true
		m.kickIfBehind()
		return
	default:
		text := e.text
		if e.cut {
			text = append([]byte(cutMark), text...)
		}
		shown := m.screen.Above(text)
		m.screen.Write(shown)
		m.publish(shown)
		m.changed()
		*e = emitted{}
	}
	m.room.Broadcast()
}

// kickIfBehind lets the painter go on if there is something for it.
func (m *Mux) kickIfBehind() {
	if len(m.pending.program) > 0 || len(m.pending.marks) > 0 {
		m.kick()
	}
}

// lines is the inert form of what an emitter says: LF, TAB and SGR stay, and the
// last line ends.
func lines(data []byte) []byte {
	var out []byte
	var t inert.Inert
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	for len(data) > 0 {
		n := sgr(data)
		if n > 0 {
			out = append(t.Flush(out), data[:n]...)
			data = data[n:]
			continue
		}
		next := 1 + bytes.IndexByte(data[1:], '\x1b')
		if next == 0 {
			next = len(data)
		}
		out = t.Append(out, data[:next])
		data = data[next:]
	}
	out = t.Flush(out)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	return out
}

// maxSGR is the bytes of the longest SGR that is let through.
const maxSGR = 64

// sgr is the length of the SGR sequence that b begins with, else 0.
func sgr(b []byte) int {
	if len(b) < 3 || b[0] != '\x1b' || b[1] != '[' {
		return 0
	}
	for i, c := range b[2:min(len(b), maxSGR)] {
		switch {
		case c == 'm':
			return i + 3
		case c < '0' || c > ';':
			return 0
		}
	}
	return 0
}
