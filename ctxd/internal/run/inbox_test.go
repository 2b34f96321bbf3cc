package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/ctxd/internal/approval"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// mute is a client that reads nothing.
type mute struct{}

func (mute) Push([]byte) bool                    { return true }
func (mute) Note([]byte)                         {}
func (mute) Write(context.Context, []byte) error { return nil }
func (mute) Gone() context.Context               { return context.Background() }
func (mute) Hold() (func(), error)               { return func() {}, nil }
func (mute) Asked() *approval.Board              { return new(approval.Board) }

// conversation is a session whose run waits at its boundaries for the test.
type conversation struct {
	*testing.T
	hub   *Hub
	live  *Live
	store *batches
	ready chan *Run  // the run has come to a boundary
	turn  chan error // what its worker returns; errGoOn: takes what was said and goes on
}

var errGoOn = errdefs.New(errdefs.Busy, "go on")

// converse starts a run whose worker asks the test at every boundary.
func converse(t *testing.T, w scripted) *conversation {
	c := &conversation{T: t, store: &batches{memory: newMemory("s")},
		ready: make(chan *Run), turn: make(chan error)}
	w.drive = func(ctx context.Context, r *Run) error {
		for {
			c.ready <- r
			if err := <-c.turn; err != errGoOn {
				return err
			}
			if err := r.Deliver(); err != nil {
				return err
			}
		}
	}
	c.hub = New(Config{Agent: "a", Worker: w, Log: log.Discard()})
	c.live = newLive(c.hub, "s", func([]session.Ended) (ledger, error) { return c.store, nil })
	c.hub.lives["s"] = c.live
	return c
}

// send starts a run and waits until it works.
func (c *conversation) send(id libctx.ClientID) *Run {
	c.Helper()
	if err := c.hub.Send(c.Context(), &wire.Send{ID: id, Session: "s", Scope: "private", Workspace: "/w", Input: "x"}, mute{}); err != nil {
		c.Fatal(err)
	}
	return <-c.ready
}

// goOn lets the run take what was said to it.
func (c *conversation) goOn() {
	c.turn <- errGoOn
	<-c.ready
}

// end lets the run end.
func (c *conversation) end(err error) {
	c.turn <- err
	c.hub.runs.Wait()
}

func (c *conversation) say(op, id, text string) (libctx.Run, error) {
	return c.hub.Say("s", session.Input{Client: libctx.ClientID(id), Op: op, Text: text}, mute{})
}

// said fails unless the input was taken.
func (c *conversation) said(op, id, text string) libctx.Run {
	c.Helper()
	run, err := c.say(op, id, text)
	if err != nil {
		c.Fatalf("%s %s: %v", op, id, err)
	}
	return run
}

func (c *conversation) refused(kind errdefs.Kind, op, id, text string) {
	c.Helper()
	if _, err := c.say(op, id, text); !errdefs.Is(err, kind) {
		c.Errorf("%s %s = %v, want %s", op, id, err, kind)
	}
}

func (c *conversation) batches(want ...string) {
	c.Helper()
	if !slices.Equal(c.store.seen, want) {
		c.Errorf("batches %q, want %q", c.store.seen, want)
	}
}

// TestSay: an input is durable when it is acknowledged, and becomes a message at
// the next boundary.
func TestSay(t *testing.T) {
	c := converse(t, scripted{})
	c.refused(errdefs.NotFound, "steer", "i0", "too early")
	r := c.send("m1")
	if run := c.said("steer", "i1", "left"); run != r.ID {
		t.Errorf("accepted by %s, not %s", run, r.ID)
	}
	c.batches("user head start", "accepted")
	c.goOn()
	c.batches("user head start", "accepted", "user steering_delivered")
	c.goOn()
	c.end(nil)
	c.batches("user head start", "accepted", "user steering_delivered", "completed")
	c.refused(errdefs.NotFound, "steer", "i2", "too late")
	entries, err := c.store.Conversation(0)
	if err != nil || len(entries) != 2 || entries[1].Text() != "left" || entries[1].Origin != "steer" || entries[1].ClientID != "i1" {
		t.Errorf("entries %+v, %v", entries, err)
	}
}

// TestSayAgain: an id means one thing in a session.
func TestSayAgain(t *testing.T) {
	c := converse(t, scripted{})
	r := c.send("m1")
	c.said("steer", "i1", "left")
	c.said("steer", "i1", "left")
	c.refused(errdefs.Invalid, "steer", "i1", "right")
	c.refused(errdefs.Invalid, "finish", "i1", "left")
	c.refused(errdefs.Invalid, "steer", "m1", "x")
	again := &wire.Send{ID: "i1", Session: "s", Scope: "private", Workspace: "/w", Input: "left"}
	if err := c.hub.Send(t.Context(), again, mute{}); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("a send with the id of an input = %v", err)
	}
	waits := &wire.Send{ID: "m2", Session: "s", Scope: "private", Workspace: "/w", Input: "y"}
	if err := c.hub.Send(t.Context(), waits, mute{}); err != nil {
		t.Fatal(err)
	}
	c.refused(errdefs.Invalid, "steer", "m2", "y")
	c.goOn()
	c.turn <- nil
	<-c.ready // of the second run
	if run := c.said("steer", "i1", "left"); run != r.ID {
		t.Errorf("the same input again is run %s, not %s", run, r.ID)
	}
	c.end(nil)
	c.batches("user head start", "accepted", "user steering_delivered", "completed", "user head start", "completed")
}

// TestSayToTheDeaf: an executable agent hears nothing.
func TestSayToTheDeaf(t *testing.T) {
	c := converse(t, scripted{deaf: true})
	c.send("m1")
	c.refused(errdefs.Unsupported, "steer", "i1", "x")
	c.end(nil)
}

// TestFinish: no call may start from the moment at which a finish is accepted.
func TestFinish(t *testing.T) {
	c := converse(t, scripted{})
	r := c.send("m1")
	if r.Finishing() || r.ToolFree {
		t.Error("a run begins without tools")
	}
	c.said("follow_up", "i1", "then this")
	c.said("finish", "i2", "enough")
	if !r.Finishing() || r.ToolFree {
		t.Errorf("finishing %v, tool-free %v", r.Finishing(), r.ToolFree)
	}
	c.goOn()
	if !r.Finishing() || !r.ToolFree {
		t.Error("a finish that was delivered takes no tools")
	}
	c.batches("user head start", "accepted", "accepted", "user steering_delivered")
	c.end(nil)
	c.batches("user head start", "accepted", "accepted", "user steering_delivered", "user follow_up_delivered completed")
}

// TestClose: what was said comes before the end, the follow-ups one by one.
func TestClose(t *testing.T) {
	c := converse(t, scripted{})
	r := c.send("m1")
	for _, in := range [][2]string{{"follow_up", "f1"}, {"steer", "s1"}, {"follow_up", "f2"}, {"steer", "s2"}} {
		c.said(in[0], in[1], "text of "+in[1])
	}
	for i, want := range []bool{true, true, true, false} {
		if more, err := r.Close(); more != want || err != nil {
			t.Errorf("close %d = %v, %v", i, more, err)
		}
	}
	c.refused(errdefs.Already, "steer", "s3", "too late")
	c.said("steer", "s1", "text of s1")
	c.end(nil)
	c.batches("user head start", "accepted", "accepted", "accepted", "accepted",
		"user steering_delivered user steering_delivered", "user follow_up_delivered", "user follow_up_delivered", "completed")
}

// TestCancelled: nothing that was accepted is lost, whatever ends the run.
func TestCancelledWithInputs(t *testing.T) {
	c := converse(t, scripted{})
	r := c.send("m1")
	c.said("follow_up", "i1", "then")
	c.said("steer", "i2", "left")
	if _, err := c.hub.Cancel(&wire.Cancel{ID: string(r.ID), Session: "s"}); err != nil {
		t.Fatal(err)
	}
	c.refused(errdefs.Already, "steer", "i3", "too late")
	c.end(context.Cause(r.ctx))
	c.send("m2")
	c.said("steer", "i4", "right")
	c.end(errdefs.New(errdefs.Provider, "broken"))
	c.batches("user head start", "accepted", "accepted", "user follow_up_delivered user steering_delivered cancelled",
		"user head start", "accepted", "user steering_delivered failed")
}

// TestTooManyInputs: what waits in a run is bounded.
func TestTooManyInputs(t *testing.T) {
	c := converse(t, scripted{})
	r := c.send("m1")
	for i := range libctx.MaxRunInputs {
		c.said("follow_up", fmt.Sprint("i", i), "x")
	}
	c.refused(errdefs.Busy, "steer", "more", "x")
	if more, err := r.Close(); !more || err != nil {
		t.Fatalf("close = %v, %v", more, err)
	}
	c.said("steer", "more", "x")
	c.end(nil)
	big := inbox{}
	big.bytes = libctx.MaxRunInput
	q := &Run{Places: Places{Hears: true}, ctx: context.Background(), inbox: big}
	if err := q.hears(session.Input{Text: "x"}); !errdefs.Is(err, errdefs.Busy) {
		t.Errorf("a byte too many = %v", err)
	}
}

// TestInputsThatCanNotBeKept: a refused acceptance takes nothing, a refused
// delivery is made up for at the end.
func TestInputsThatCanNotBeKept(t *testing.T) {
	c := converse(t, scripted{})
	r := c.send("m1")
	full := errdefs.New(errdefs.NoSpace, "full")
	c.store.refuse = func(string) error { return full }
	c.refused(errdefs.NoSpace, "steer", "i1", "x")
	c.store.refuse = nil
	c.said("steer", "i1", "x")
	c.store.refuse = func(batch string) error {
		if batch == "user steering_delivered" {
			return full
		}
		return nil
	}
	if err := r.Deliver(); !errdefs.Is(err, errdefs.NoSpace) {
		t.Errorf("deliver = %v", err)
	}
	c.end(full)
	c.batches("user head start", "accepted", "user steering_delivered failed")
}

// TestSayWhileClosing: clients speak while a run comes to its end. Whoever was
// told that an input is accepted finds it in the conversation, once; the others
// are told why not.
func TestSayWhileClosing(t *testing.T) {
	for round := range 6 {
		c := converse(t, scripted{})
		c.send("m1")
		const speakers, words = 4, 20
		var mu sync.Mutex
		accepted := map[string]bool{}
		var talk sync.WaitGroup
		begun := make(chan struct{}, speakers)
		for s := range speakers {
			talk.Go(func() {
				for i := range words {
					id := fmt.Sprintf("i%d-%d", s, i)
					_, err := c.say([]string{"steer", "follow_up", "finish"}[i%3], id, "text of "+id)
					if i == 0 {
						begun <- struct{}{}
					}
					switch {
					case err == nil:
						mu.Lock()
						accepted["text of "+id] = true
						mu.Unlock()
					case !errdefs.Is(err, errdefs.Already) && !errdefs.Is(err, errdefs.NotFound) && !errdefs.Is(err, errdefs.Busy):
						t.Errorf("%s: %v", id, err)
					}
				}
			})
		}
		<-begun
		run := c.live
		run.mu.Lock()
		r := run.active
		run.mu.Unlock()
		for more := true; more; {
			var err error
			if more, err = r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if round%2 == 0 {
			talk.Wait()
		}
		c.end(nil)
		talk.Wait()
		entries, err := c.store.Conversation(0)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		for _, e := range entries {
			if e.Origin != "" {
				found[e.Text()]++
			}
		}
		for text := range accepted {
			if found[text] != 1 {
				t.Errorf("%q is there %d times", text, found[text])
			}
		}
		if len(found) != len(accepted) {
			t.Errorf("%d accepted, %d found", len(accepted), len(found))
		}
	}
}

// TestSayInMemory: a client's own session of scope temp goes first while a run is
// active in it; nobody else reaches it.
func TestSayInMemory(t *testing.T) {
	ready, leave := make(chan *Run), make(chan struct{})
	w := scripted{drive: func(ctx context.Context, r *Run) error {
		ready <- r
		<-leave
		_, err := r.Close()
		return err
	}}
	h := New(Config{Agent: "a", Worker: w, Log: log.Discard()})
	store := &batches{memory: newMemory("s")}
	h.lives["s"] = newLive(h, "s", func([]session.Ended) (ledger, error) { return store, nil })
	mine := &listener{over: make(chan struct{})}
	if err := h.Send(t.Context(), &wire.Send{ID: "m1", Session: "s", Scope: "temp", Workspace: "/w", Input: "x"}, mine); err != nil {
		t.Fatal(err)
	}
	r := <-ready
	in := session.Input{Client: "i1", Op: "steer", Text: "left"}
	if run, err := h.Say("s", in, mine); err != nil || run != r.ID {
		t.Errorf("own = %s, %v", run, err)
	}
	if _, err := h.Say("s", in, mute{}); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("another's = %v", err)
	}
	close(leave)
	<-mine.over
	h.runs.Wait()
	if _, err := h.Say("s", in, mine); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("afterwards = %v", err)
	}
	if got := strings.Join(mine.frames, ", "); got != "start, accepted, steering_delivered, done ok" {
		t.Errorf("frames %s", got)
	}
}

// TestMemoryTakesAllOrNothing: a batch that does not fit leaves nothing, and room
// that is kept for an input is there when it is delivered.
func TestMemoryTakesAllOrNothing(t *testing.T) {
	m := newMemory("s")
	run := libctx.NewRun()
	start := &session.Fact{Run: run, Frame: &wire.Start{Head: wire.Head{Type: "start"}, ClientID: "m1", Op: "send"}}
	entry := func(n int) *session.Entry {
		return &session.Entry{Run: run, Kind: "message", Role: "user", Content: []wire.Part{wire.Text(strings.Repeat("x", n))}}
	}
	commit := func(records ...session.Record) error { _, err := m.Commit(records...); return err }
	if err := commit(entry(1), start); err != nil {
		t.Fatal(err)
	}
	in := session.Input{Client: "i1", Op: "steer", Text: strings.Repeat("y", 1<<20)}
	if err := commit(in.Accept(run, "p")); err != nil {
		t.Fatal(err)
	}
	m.bytes = libctx.MaxTempSession - libctx.LedgerReserve - m.owed // full, but for what is kept back
	before, end := m.seq, m.EventsEnd()
	if err := commit(entry(10), entry(16<<10)); !errdefs.Is(err, errdefs.NoSpace) {
		t.Fatalf("too much = %v", err)
	}
	if m.seq != before || m.EventsEnd() != end || len(m.entries) != 1 {
		t.Errorf("a refused batch left %d records, %d entries", m.seq-before, len(m.entries))
	}
	if _, err := m.Commit(session.Input{Client: "i2", Op: "steer", Text: "z"}.Accept(run, "p")); !errdefs.Is(err, errdefs.NoSpace) {
		t.Errorf("an input without room = %v", err)
	}
	if err := commit(append(in.Deliver(run), &session.Checkpoint{Run: run, Outcome: session.Completed})...); err != nil {
		t.Errorf("no room for an accepted input: %v", err)
	}
	if m.owed != 0 || len(m.inputs) != 0 {
		t.Errorf("still owed: %d bytes, %v", m.owed, m.inputs)
	}
}
