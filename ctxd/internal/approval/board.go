package approval

import (
	"slices"
	"sync"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// Board is the questions that are open on one connection, a few at a time: one of
// each run that the connection began. The zero Board is one of root's.
type Board struct {
	UID uint32 // of who answers over it

	mu    sync.Mutex
	slots []*Slot
	mute  bool
}

// Put lets answers that come over the connection reach a question, until remove.
// On one that can say nothing more the question ends at once.
func (b *Board) Put(s *Slot) (remove func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mute {
		s.Take(Event{Kind: Gone})
		return func() {}
	}
	b.slots = append(b.slots, s)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.slots = slices.DeleteFunc(b.slots, func(o *Slot) bool { return o == s })
	}
}

// Answer gives an answer to the question that it names. One that names none of
// those that are open here is errdefs.NotFound, and ends all of these as refused:
// who answers something else is not to be understood.
func (b *Board) Answer(a *wire.Approve) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.slots {
		if s.Asks(a) && s.Take(Event{Kind: Answered, Answer: a}) {
			return nil
		}
	}
	b.end(Event{Kind: Answered, Answer: a})
	return errdefs.New(errdefs.NotFound, "call %s of run %s: no such question is open on this connection", a.Call, a.Run)
}

// Malformed takes note that something came which is no request: the questions that
// are open end as refused.
func (b *Board) Malformed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(Event{Kind: Malformed})
}

// Mute takes note that nothing more can come over the connection.
func (b *Board) Mute() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mute = true
	b.end(Event{Kind: Gone})
}

// end ends what is open. Called with mu held.
func (b *Board) end(e Event) {
	for _, s := range b.slots {
		s.Take(e)
	}
	b.slots = nil
}
