package run

import (
	"slices"

	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// Conclude keeps what a run changed for the batch that ends the run. Nothing else
// may be recorded after it.
func (r *Run) Conclude(f *wire.Changes) error {
	return r.hold([]session.Record{&session.Fact{Run: r.ID, Frame: f}})
}

// shed gives up what a run holds back of its changes, for want of room. It reports
// whether there was anything.
func (r *Run) shed() bool {
	n := len(r.held)
	r.held = slices.DeleteFunc(r.held, func(held session.Record) bool {
		fact, ok := held.(*session.Fact)
		if !ok {
			return false
		}
		_, ok = fact.Frame.(*wire.Changes)
		return ok
	})
	return len(r.held) < n
}
