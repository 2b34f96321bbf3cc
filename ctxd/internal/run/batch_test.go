package run

import (
	"context"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/ctxd/internal/approval"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// batches is a store that notes what each commit held and may refuse some.
type batches struct {
	*memory
	seen    []string
	refuse  func(batch string) error
	carried []session.OpenCall
}

func (b *batches) Carried() ([]session.OpenCall, error) { return b.carried, nil }

func (b *batches) Commit(records ...session.Record) ([]session.Event, error) {
	var words []string
	for _, r := range records {
		switch r := r.(type) {
		case *session.Fact:
			word := r.Frame.Header().Type
			if res, ok := r.Frame.(*wire.ToolResult); ok {
				word += "=" + res.Content
			}
			words = append(words, word)
		case *session.Entry:
			words = append(words, r.Role)
		case *session.Head:
			words = append(words, "head")
		case *session.Checkpoint:
			words = append(words, r.Outcome)
		}
	}
	batch := strings.Join(words, " ")
	if b.refuse != nil {
		if err := b.refuse(batch); err != nil {
			return nil, err
		}
	}
	b.seen = append(b.seen, batch)
	return b.memory.Commit(records...)
}

// listener is a client that keeps the types of the frames it gets.
type listener struct {
	frames []string
	over   chan struct{} // closed by the end of the first stream
}

func (c *listener) Push(line []byte) bool { c.Note(line); return true }

func (c *listener) Note(line []byte) {
	var f struct {
		Type   string `json:"type"`
		Status string `json:"status,omitzero"`
	}
	if err := wire.Object(line, &f); err != nil {
		f.Type = err.Error()
	}
	c.frames = append(c.frames, strings.TrimSpace(f.Type+" "+f.Status))
}

func (c *listener) Write(context.Context, []byte) error { return nil }
func (c *listener) Gone() context.Context               { return context.Background() }
func (c *listener) Hold() (func(), error)               { return func() { close(c.over) }, nil }
func (c *listener) Asked() *approval.Board              { return new(approval.Board) }

// scripted is a worker whose runs do what a test says.
type scripted struct {
	Worker
	tool, drive func(ctx context.Context, r *Run) error
	deaf        bool
}

func (s scripted) Load() (Agent, error) { return s, nil }

func (scripted) Cwd(string) string { return "/workspace" }

func (s scripted) Places(_ libctx.Session, workspace, last, cwd string) (Places, error) {
	if workspace == "" {
		workspace = last
	}
	return Places{Workspace: workspace, Cwd: cwd, Hears: !s.deaf}, nil
}

func (s scripted) Drive(ctx context.Context, r *Run) error { return s.drive(ctx, r) }

func (s scripted) Tool(ctx context.Context, r *Run) error { return s.tool(ctx, r) }

// operate carries out one tsh operation in a session that is kept in store.
func operate(t *testing.T, store *batches, tool func(context.Context, *Run) error) (*Hub, *Live, []string) {
	t.Helper()
	h := New(Config{Agent: "a", Worker: scripted{tool: tool}, Log: log.Discard()})
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
	l.mu.Lock()
	defer l.mu.Unlock()
	return h, l, c.frames
}

var (
	call     = &wire.ToolCall{Head: wire.Head{Type: "tool_call"}, Call: "call-1", Name: "tsh"}
	decision = &wire.ToolPolicy{Head: wire.Head{Type: "tool_policy"}, Call: "call-1", Allowed: true}
)

func result(text string) *wire.ToolResult {
	return &wire.ToolResult{Head: wire.Head{Type: "tool_result"}, Call: "call-1", Name: "tsh", Status: "ok", Content: text}
}

// fresh copies a frame, because a commit writes into it.
func fresh[T any](f *T) *T { c := *f; return &c }

func whole(text string) func(context.Context, *Run) error {
	return func(_ context.Context, r *Run) error {
		if err := r.Record(fresh(call)); err != nil {
			return err
		}
		if err := r.Record(fresh(decision)); err != nil {
			return err
		}
		return r.Record(result(text))
	}
}

// TestBatches: a tsh operation is two batches, the decision in the first.
func TestBatches(t *testing.T) {
	store := &batches{memory: newMemory("s")}
	_, _, frames := operate(t, store, func(ctx context.Context, r *Run) error {
		err := whole("fine")(ctx, r)
		if !slices.Equal(store.seen, []string{"start tool_call tool_policy"}) {
			t.Errorf("before the end: %q", store.seen)
		}
		return err
	})
	if want := []string{"start tool_call tool_policy", "tool_result=fine completed"}; !slices.Equal(store.seen, want) {
		t.Errorf("batches %q, want %q", store.seen, want)
	}
	if want := []string{"start", "tool_call", "tool_policy", "tool_result ok", "done ok"}; !slices.Equal(frames, want) {
		t.Errorf("frames %q, want %q", frames, want)
	}
}

// TestUndecided: an operation that comes to no decision is one batch.
func TestUndecided(t *testing.T) {
	store := &batches{memory: newMemory("s")}
	_, _, frames := operate(t, store, func(_ context.Context, r *Run) error {
		if err := r.Record(fresh(call)); err != nil {
			return err
		}
		if err := r.Record(result("no")); err != nil {
			return err
		}
		return errdefs.New(errdefs.Denied, "the agent's files are refused")
	})
	if want := []string{"start tool_call tool_result=no failed"}; !slices.Equal(store.seen, want) {
		t.Errorf("batches %q, want %q", store.seen, want)
	}
	if want := []string{"start", "tool_call", "tool_result ok", "error", "done error"}; !slices.Equal(frames, want) {
		t.Errorf("frames %q, want %q", frames, want)
	}
}

// TestNoRoomForResult: the call is paired and the run ended all the same.
func TestNoRoomForResult(t *testing.T) {
	store := &batches{memory: newMemory("s"), refuse: func(batch string) error {
		if strings.Contains(batch, "=long") {
			return errdefs.New(errdefs.NoSpace, "full")
		}
		return nil
	}}
	operate(t, store, whole("long"))
	want := []string{"start tool_call tool_policy", "tool_result=the result could not be kept: full failed"}
	if !slices.Equal(store.seen, want) {
		t.Errorf("batches %q, want %q", store.seen, want)
	}
}

// TestNothingRecorded: an operation whose first batch is refused leaves nothing,
// neither in the session nor for its next opening.
func TestNothingRecorded(t *testing.T) {
	store := &batches{memory: newMemory("s"), refuse: func(string) error { return errdefs.New(errdefs.NoSpace, "full") }}
	_, l, frames := operate(t, store, whole("fine"))
	if len(store.seen) > 0 || len(l.ended) > 0 || l.store == nil || len(l.runs()) > 0 {
		t.Errorf("recorded %q, ended %v, store %v, runs %v", store.seen, l.ended, l.store, l.runs())
	}
	if want := []string{"error", "done error"}; !slices.Equal(frames, want) {
		t.Errorf("frames %q, want %q", frames, want)
	}
}

// TestUnrecorded: while an operation is decided about it is known already: by its
// id, by its workspace, and as the session's.
func TestUnrecorded(t *testing.T) {
	store := &batches{memory: newMemory("s")}
	var h *Hub
	again := &listener{over: make(chan struct{})}
	operate(t, store, func(ctx context.Context, r *Run) error {
		h = r.live.hub
		q := &wire.Tsh{Args: []string{"x"}}
		q.ID, q.Session = "m1", "s"
		if err := h.Tsh(ctx, q, again); err != nil {
			t.Error(err)
		}
		q.Args = []string{"y"}
		if err := h.Tsh(ctx, q, again); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("another request under the id: %v", err)
		}
		r.live.mu.Lock()
		last := r.live.workspace()
		r.live.mu.Unlock()
		if last != "/w" {
			t.Errorf("workspace %q", last)
		}
		if st, err := h.Status("s"); err != nil {
			t.Errorf("status: %+v, %v", st, err)
		}
		return whole("fine")(ctx, r)
	})
	<-again.over
	if want := []string{"start", "tool_call", "tool_policy", "tool_result ok", "done ok"}; !slices.Equal(again.frames, want) {
		t.Errorf("told again: %q, want %q", again.frames, want)
	}
	if len(store.seen) != 2 {
		t.Errorf("batches %q", store.seen)
	}
}

// TestCancelledUndecided: cancelled before its decision, an operation is one
// batch too.
func TestCancelledUndecided(t *testing.T) {
	store := &batches{memory: newMemory("s")}
	operate(t, store, func(ctx context.Context, r *Run) error {
		if err := r.Record(fresh(call)); err != nil {
			return err
		}
		if _, err := r.live.hub.Cancel(&wire.Cancel{ID: string(r.ID)}); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		if err := r.Record(result("cancelled")); err != nil {
			return err
		}
		return context.Cause(ctx)
	})
	if want := []string{"start tool_call tool_result=cancelled cancelled"}; !slices.Equal(store.seen, want) {
		t.Errorf("batches %q, want %q", store.seen, want)
	}
}
