package approval

import (
	"fmt"
	"sync"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

const (
	runA = "01KB9QZ3M8T5V2N7X4C6D1E0FG"
	runB = "01KB9R0V6Q3W8Y1ZAB5E7G9J2K"
)

func says(run, call, decision string) *wire.Approve {
	return &wire.Approve{Run: libctx.Run(run), Call: libctx.Call(call), Decision: decision}
}

// TestDecide is every event in every state.
func TestDecide(t *testing.T) {
	q := Question{Run: runA, Call: "call-1"}
	for _, c := range []struct {
		name string
		e    Event
		want string
	}{
		{"allowed", Event{Kind: Answered, Answer: says(runA, "call-1", AllowOnce)}, AllowOnce},
		{"denied", Event{Kind: Answered, Answer: says(runA, "call-1", Deny)}, Deny},
		{"another word", Event{Kind: Answered, Answer: says(runA, "call-1", "allow_always")}, Invalid},
		{"no word", Event{Kind: Answered, Answer: says(runA, "call-1", "")}, Invalid},
		{"another call", Event{Kind: Answered, Answer: says(runA, "call-2", AllowOnce)}, Invalid},
		{"another run", Event{Kind: Answered, Answer: says(runB, "call-1", AllowOnce)}, Invalid},
		{"no answer", Event{Kind: Answered}, Invalid},
		{"malformed", Event{Kind: Malformed}, Invalid},
		{"gone", Event{Kind: Gone}, Disconnected},
		{"expired", Event{Kind: Expired}, Timeout},
		{"stopped", Event{Kind: Stopped}, Cancelled},
		{"something else", Event{Kind: 99}, Invalid},
	} {
		if got := decide(q, "", c.e); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		for _, over := range []string{AllowOnce, Deny, Timeout, Disconnected, Cancelled, Invalid} {
			if got := decide(q, over, c.e); got != over {
				t.Errorf("%s makes %s of %s", c.name, got, over)
			}
		}
		s := NewSlot(q)
		if !s.Take(c.e) || s.Take(Event{Kind: Answered, Answer: says(runA, "call-1", AllowOnce)}) {
			t.Errorf("%s: a question ends once", c.name)
		}
		if a := s.Answer(); a.Decision != c.want || a.Allowed != (c.want == AllowOnce) || a.Err != nil {
			t.Errorf("%s: %+v", c.name, a)
		}
	}
}

// TestFirstWins: however many events come at once, one ends the question.
func TestFirstWins(t *testing.T) {
	for range 200 {
		s := NewSlot(Question{Run: runA, Call: "c"})
		events := []Event{
			{Kind: Answered, Answer: says(runA, "c", AllowOnce)}, {Kind: Answered, Answer: says(runA, "c", Deny)},
			{Kind: Gone}, {Kind: Expired}, {Kind: Stopped},
		}
		won := make(chan Event, len(events))
		var all sync.WaitGroup
		for _, e := range events {
			all.Go(func() {
				if s.Take(e) {
					won <- e
				}
			})
		}
		all.Wait()
		if len(won) != 1 {
			t.Fatalf("%d events ended the question", len(won))
		}
		if e := <-won; s.Answer().Decision != decide(Question{Run: runA, Call: "c"}, "", e) {
			t.Fatalf("%+v ended it, and it is %+v", e, s.Answer())
		}
	}
}

// TestBoard: an answer reaches the question that it names, and one that names none
// ends all that are open.
func TestBoard(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*Board) error
		want string // decisions of the two questions, "" is open
		kind errdefs.Kind
	}{
		{"the first", func(b *Board) error { return b.Answer(says(runA, "c1", AllowOnce)) }, "allow_once,", ""},
		{"the second", func(b *Board) error { return b.Answer(says(runB, "c2", Deny)) }, ",deny", ""},
		{"mixed up", func(b *Board) error { return b.Answer(says(runA, "c2", AllowOnce)) }, "invalid,invalid", errdefs.NotFound},
		{"malformed", func(b *Board) error { b.Malformed(); return nil }, "invalid,invalid", ""},
		{"mute", func(b *Board) error { b.Mute(); return nil }, "disconnected,disconnected", ""},
	} {
		var b Board
		one, two := NewSlot(Question{Run: runA, Call: "c1"}), NewSlot(Question{Run: runB, Call: "c2"})
		defer b.Put(one)()
		defer b.Put(two)()
		if err := c.do(&b); (err == nil) != (c.kind == "") || err != nil && !errdefs.Is(err, c.kind) {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := fmt.Sprintf("%s,%s", one.decision, two.decision); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestBoardRemembersNothing: what is over or removed takes no answer, and a mute
// connection is not asked.
func TestBoardRemembersNothing(t *testing.T) {
	var b Board
	s := NewSlot(Question{Run: runA, Call: "c"})
	remove := b.Put(s)
	remove()
	if err := b.Answer(says(runA, "c", AllowOnce)); !errdefs.Is(err, errdefs.NotFound) || s.decision != "" {
		t.Errorf("%v, %q", err, s.decision)
	}
	b.Put(s)
	s.Take(Event{Kind: Expired})
	if err := b.Answer(says(runA, "c", AllowOnce)); !errdefs.Is(err, errdefs.NotFound) || s.Answer().Allowed {
		t.Errorf("%v", err)
	}
	b.Mute()
	late := NewSlot(Question{Run: runA, Call: "d"})
	b.Put(late)()
	if late.Answer().Decision != Disconnected {
		t.Errorf("%+v", late.Answer())
	}
}
