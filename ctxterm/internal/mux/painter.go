package mux

import (
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/termwire"
)

// batch is what the screen has still to see: bytes of the program, and what
// happened between them.
type batch struct {
	program []byte
	marks   []mark
}

// keptBytes is the memory that is kept for the next batch after a small one.
const keptBytes = 256 << 10

// maxMarks is how many marks wait before those who make them do.
const maxMarks = 1024

// mark is what happens before the byte at: the screen gets another size, or one
// is made for a client.
type mark struct {
	at      int
	size    termwire.Size // zero: none
	client  *Client       // nil: none
	wish    int
	seq     uint64
	version uint64
}

// mark adds a mark. When there are many, those that mean nothing any more go: of
// clients that are gone or want another screen by now, and sizes that another one
// follows at the same byte. So there is one for each client at most, and one for
// each byte at which the size changed. Called with mu held.
func (m *Mux) mark(k mark) {
	if p := &m.pending; len(p.marks) >= maxMarks {
		kept := p.marks[:0]
		for _, o := range p.marks {
			if o.client != nil && (o.client.gone || o.wish != o.client.wish) {
				continue
			}
			if n := len(kept); n > 0 && o.client == nil && kept[n-1].client == nil && kept[n-1].at == o.at {
				kept = kept[:n-1]
			}
			kept = append(kept, o)
		}
		clear(p.marks[len(kept):])
		p.marks = kept
	}
	m.pending.marks = append(m.pending.marks, k)
}

// paint keeps the screen until quit.
func (m *Mux) paint() {
	var done batch
	timer := time.NewTimer(0) // for the next client that has to wait
	defer timer.Stop()
	for {
		m.mu.Lock()
		next, now := m.pending, m.now()
		m.pending = batch{done.program[:0], done.marks[:0]}
		m.dozing, m.dozed = false, 0
		m.room.Broadcast()
		m.mu.Unlock()

		m.feed(next)
		clear(next.marks)
		if done = next; cap(done.program) > keptBytes && len(next.program) < keptBytes {
			done.program = nil // the flood is over
		}
		if due := m.draw(now); !due.IsZero() {
			timer.Reset(time.Until(due))
		}
		m.emit()
		m.settle()
		select {
		case <-m.work:
		case <-timer.C:
		case <-m.quit:
			return
		}
	}
}

// moment is a state of the terminal.
type moment struct {
	size    termwire.Size
	seq     uint64
	version uint64
}

// now is the present moment. Called with mu held.
func (m *Mux) now() moment { return moment{m.size, m.seq, m.version} }

// feed brings the screen up to the end of a batch.
func (m *Mux) feed(b batch) {
	from := 0
	var made map[View][]byte // screens of the present mark's place
	for i, k := range b.marks {
		if k.at > from || k.size != (termwire.Size{}) || i == 0 {
			made = map[View][]byte{}
		}
		m.screen.Flood(b.program[from:k.at])
		from = k.at
		if k.size != (termwire.Size{}) {
			m.screen.Resize(k.size)
		}
		if k.client != nil {
			m.answer(k, made)
		}
	}
	m.screen.Flood(b.program[from:])
}

// answer makes the screen that a client waits for, unless its wish is void.
func (m *Mux) answer(k mark, made map[View][]byte) {
	c := k.client
	m.mu.Lock()
	view, size, valid := c.view, m.size, c.wish == k.wish && !c.gone
	m.mu.Unlock()
	if !valid {
		return
	}
	if view.Scrollback > 0 && m.unread() > libctx.MaxTermUnread {
		view.Scrollback = 0
	}
	data, ok := made[view]
	if !ok {
		data = m.redraw(view)
		made[view] = data
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.wish == k.wish && !c.gone {
		c.fresh = screenFrame(c.resized(size), size, k.seq, data)
		c.view.Scrollback = 0 // it has them now
		c.shown = k.version
		c.rouse()
	}
}

// unread is the bytes of the screens that clients have not read yet.
func (m *Mux) unread() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for c := range m.clients {
		n += len(c.fresh)
	}
	return n
}

// resized is the frame that tells a client the terminal's size if it does not
// know it.
func (c *Client) resized(size termwire.Size) []byte {
	if c.told == size {
		return nil
	}
	c.told = size
	line, err := termwire.MarshalFrame(&termwire.Resized{Size: size})
	if err != nil {
		return nil
	}
	return line
}

// draw gives clients that are drawn the screen of now if they do not have it and
// it is their time. It returns when it is that of the next one, if any has to
// wait.
func (m *Mux) draw(now moment) (next time.Time) {
	var made map[View][]byte
	for _, c := range m.undrawn(now.version) {
		m.mu.Lock()
		view, due := c.view, c.due
		if m.ended {
			due = time.Time{}
		}
		m.mu.Unlock()
		if time.Now().Before(due) {
			if next.IsZero() || due.Before(next) {
				next = due
			}
			continue
		}
		data, ok := made[view]
		if !ok {
			data = m.redraw(view)
			if made == nil {
				made = map[View][]byte{}
			}
			made[view] = data
		}
		m.mu.Lock()
		if c.drawn && !c.gone && c.view == view {
			c.own = append(c.own, screenFrame(c.resized(now.size), now.size, now.seq, data)...)
			c.view.Scrollback = 0
			c.shown, c.busy, c.due = now.version, true, time.Now().Add(libctx.TermRedraw)
			c.rouse()
		}
		m.mu.Unlock()
	}
	return next
}

// undrawn are the clients that are drawn and do not have a version of the screen
// but can take it.
func (m *Mux) undrawn(version uint64) []*Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []*Client
	for c := range m.clients {
		if c.drawn && !c.busy && c.shown != version {
			found = append(found, c)
		}
	}
	return found
}

// settle tells when the end of the output has reached the screen.
func (m *Mux) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended && len(m.pending.program) == 0 && len(m.pending.marks) == 0 && !m.emitted.held {
		select {
		case <-m.settled:
		default:
			close(m.settled)
		}
	}
}
