package run

import (
	"context"
	"slices"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// logless is a store that keeps what it is given, but from some commit on can not
// write it to its log of events: nobody who reads finds what came then.
type logless struct {
	*memory
	good   int   // commits before that
	end    int64 // of the log
	broken error
}

func (s *logless) Commit(records ...session.Record) ([]session.Event, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	events, err := s.memory.Commit(records...)
	if s.good--; s.good < 0 {
		s.broken = errdefs.New(errdefs.NoSpace, "no room for the log")
	} else {
		s.end = s.memory.EventsEnd()
	}
	return events, err
}

func (s *logless) Broken() error { return s.broken }

func (s *logless) EventsEnd() int64 { return s.end }

func (s *logless) FindEvent(id libctx.Event) (int64, error) {
	off, err := s.memory.FindEvent(id)
	if err == nil && off > s.end {
		return 0, errdefs.New(errdefs.NotFound, "no event %s", id)
	}
	return off, err
}

func (s *logless) ReadEvents(offset int64, max int) ([][]byte, int64, error) {
	if offset >= s.end {
		return nil, offset, nil
	}
	return s.memory.ReadEvents(offset, min(max, int(s.end-offset)))
}

// TestToldIsFound: whatever frame with an id a client was told, it can go on from
// it, also where the log of events failed behind the commit.
func TestToldIsFound(t *testing.T) {
	for good := range 3 { // an operation is two commits
		kept := newMemory("s")
		opened := 0
		h := New(Config{Agent: "a", Worker: scripted{tool: whole("fine")}, Log: log.Discard()})
		l := newLive(h, "s", func([]session.Ended) (ledger, error) {
			if opened++; opened > 1 {
				return kept, nil
			}
			return &logless{memory: kept, good: good}, nil
		})
		h.lives["s"] = l
		c := newReader(t)
		q := &wire.Tsh{Args: []string{"x"}}
		q.ID, q.Session, q.Workspace = "m1", "s", "/w"
		if err := h.Tsh(t.Context(), q, c); err != nil {
			t.Fatal(err)
		}
		<-c.over
		h.runs.Wait()
		var told []libctx.Event
		for _, f := range c.frames {
			if id := f.Header().ID; id != "" {
				told = append(told, id)
			}
		}
		if len(told) < 3 {
			t.Errorf("%d: told %q", good, told)
		}
		for _, id := range told {
			again := newReader(t)
			if err := h.Resume(t.Context(), &wire.Resume{Session: "s", After: id}, again); err != nil {
				t.Errorf("%d: after %s: %v", good, id, err)
				continue
			}
			<-again.over
			if n := len(again.frames); n == 0 || again.frames[n-1].Header().Type != "end" {
				t.Errorf("%d: after %s: %v", good, id, again.frames)
			}
		}
		h.followers.Wait()
	}
}

// TestStorageFails: a run whose store fails ends then, not with what it still does,
// and who reads the record is told that this is not all of it.
func TestStorageFails(t *testing.T) {
	kept := newMemory("s")
	store := &logless{memory: kept}
	h := New(Config{Agent: "a", Log: log.Discard(), Worker: scripted{tool: func(ctx context.Context, r *Run) error {
		if err := r.Record(fresh(call)); err != nil {
			return err
		}
		if err := r.Record(fresh(decision)); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}}})
	l := newLive(h, "s", func([]session.Ended) (ledger, error) { return store, nil })
	h.lives["s"] = l
	c := &listener{over: make(chan struct{})}
	q := &wire.Tsh{Args: []string{"x"}}
	q.ID, q.Session, q.Workspace = "m1", "s", "/w"
	if err := h.Tsh(t.Context(), q, c); err != nil {
		t.Fatal(err)
	}
	<-c.over
	h.runs.Wait()
	if want := []string{"start", "tool_call", "tool_policy", "error", "done error"}; !slices.Equal(c.frames, want) {
		t.Errorf("frames %q, want %q", c.frames, want)
	}
	if len(l.ended) != 1 || l.ended[0].Code != errdefs.NoSpace {
		t.Errorf("for the next opening: %+v", l.ended)
	}
	late := &listener{over: make(chan struct{})}
	f := follower{l: l, c: late, s: &sub{client: late, release: func() { close(late.over) }}, end: true}
	f.replay(t.Context(), store, l.gen, 0)
	<-late.over
	if want := []string{"error"}; !slices.Equal(late.frames, want) {
		t.Errorf("a reader is told %q", late.frames)
	}
}
