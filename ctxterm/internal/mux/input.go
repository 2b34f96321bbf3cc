package mux

import (
	"sync"

	"cortexfs.org/libctx"
)

// Type types b into the terminal. It never waits: if libctx.MaxTermTyped bytes
// wait for the program already, b is not taken, and room is closed when it is
// worth another try. Once the terminal is gone b is dropped.
func (m *Mux) Type(b []byte) (room <-chan struct{}, ok bool) { return m.keys.try(b) }

// keys is what was typed and the program has not read.
type keys struct {
	to Program

	mu      sync.Mutex
	waiting []byte
	writing int           // bytes the typist is writing
	closed  bool          // the terminal is gone
	room    chan struct{} // closed when some of it was written
	work    chan struct{} // one slot
	quit    chan struct{}
}

func newKeys(to Program) *keys {
	k := &keys{to: to, room: make(chan struct{}), work: make(chan struct{}, 1), quit: make(chan struct{})}
	return k
}

func (k *keys) try(b []byte) (room <-chan struct{}, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, true
	}
	wait := len(k.waiting) + k.writing
	if wait > 0 && wait+len(b) > libctx.MaxTermTyped {
		return k.room, false
	}
	if wait == 0 {
		// A key goes straight to the program.
		n, err := k.to.TryWrite(b)
		if b = b[n:]; err != nil || len(b) == 0 {
			return nil, true
		}
	}
	k.waiting = append(k.waiting, b...)
	select {
	case k.work <- struct{}{}:
	default:
	}
	return nil, true
}

// reply types an answer of the screen. It does not wait: a program that asks and
// does not read goes without answers.
func (k *keys) reply(b []byte) { k.try(b) }

// write writes what waits until quit, or until the terminal is gone.
func (k *keys) write() {
	for {
		select {
		case <-k.work:
		case <-k.quit:
			return
		}
		for {
			k.mu.Lock()
			b := k.waiting
			k.waiting, k.writing = nil, len(b)
			close(k.room)
			k.room = make(chan struct{})
			k.mu.Unlock()
			if len(b) == 0 {
				break
			}
			if _, err := k.to.Write(b); err != nil {
				k.close()
				return
			}
		}
	}
}

// close ends the typist as soon as its write ends, which it does when the
// terminal is closed.
func (k *keys) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.closed = true
		close(k.quit)
		close(k.room)
		k.room = make(chan struct{})
		k.waiting = nil
	}
}
