package run

import (
	"context"
	"testing"

	"cortexfs.org/libctx/session"
)

// TestEndSettlesWhatWasCarried: a send that ends without having given results to
// the calls that were carried into it says what is known of them, in front of
// its end; a tool operation leaves them alone.
func TestEndSettlesWhatWasCarried(t *testing.T) {
	c := converse(t, scripted{})
	c.store.carried = []session.OpenCall{{Call: "call-1-1", Name: "fs.read", Begun: true}, {Call: "call-1-2", Name: "fs.read"}}
	r := c.send("m1")
	if got, err := r.Carried(); err != nil || len(got) != 2 {
		t.Errorf("carried %v, %v", got, err)
	}
	c.said("follow_up", "i1", "then")
	c.end(nil)
	c.batches("user head start", "accepted", "tool tool user follow_up_delivered completed")
	entries, err := c.store.Conversation(0)
	if err != nil || entries[1].Content[0].Text != session.OutcomeUnknown || entries[1].Content[0].Call != "call-1-1" || entries[1].Run != r.ID ||
		entries[2].Content[0].Text != session.NeverBegun {
		t.Errorf("entries %+v, %v", entries, err)
	}

	store := &batches{memory: newMemory("s"), carried: c.store.carried}
	operate(t, store, func(context.Context, *Run) error { return nil })
	if len(store.seen) != 1 || store.seen[0] != "start completed" {
		t.Errorf("batches %q", store.seen)
	}
}
