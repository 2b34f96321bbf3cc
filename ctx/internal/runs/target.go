package runs

import (
	"context"
	"strings"
	"time"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/client"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// target is one request and the run it becomes.
type target struct {
	link
	workspace string
	temp      bool // the run lives with its connection: nothing can be caught up
	raw       bool // print the frames themselves
	approve   []libctx.Tool
	show      *show

	seen   libctx.Event     // the last durable frame
	end    *wire.Done       // nil until the run is over
	asked  error            // why the agent refused the request
	failed error            // why the run failed
	result *wire.ToolResult // the latest

	answered bool // a question
}

func prepare(from *caller.Caller, a libctx.Agent, session, id, workspace string, approve []string) (*target, error) {
	t := &target{show: newShow(from.Printer)}
	t.from, t.agent = from, a
	var err error
	if t.approve, err = approvals(approve); err != nil {
		return nil, err
	}
	if t.session, err = from.Session(a, session); err != nil {
		return nil, err
	}
	if id == "" {
		id = string(libctx.NewRun())
	}
	if t.id, err = libctx.ParseClientID(id); err != nil {
		return nil, err
	}
	t.workspace, err = Directory(from, workspace)
	return t, err
}

// drive sends the request and shows frames until the run is over. What came
// last stays in t; the error is about the way there, not about the run.
func (t *target) drive(ctx context.Context, r wire.Request, timeout time.Duration) error {
	end, err := t.open(ctx, timeout)
	if err != nil {
		return err
	}
	defer end()
	if err := t.request(r); err != nil {
		return t.lost(err)
	}
	for t.end == nil && t.asked == nil {
		line, f, err := t.next()
		if err != nil {
			t.show.speak.newline()
			return t.lost(err)
		}
		if _, over := f.(*wire.End); over {
			return errdefs.New(errdefs.IO, "the session says no run is active, but not how this one ended")
		}
		if !t.mine(f) {
			continue
		}
		if t.raw {
			err = t.from.Line(append(line, '\n')) // the LF was there before
		} else {
			t.show.frame(f)
			err = t.from.Failed()
		}
		if err != nil {
			return err // nobody reads what we print; the run goes on
		}
		if q, ok := f.(*wire.ApprovalRequest); ok {
			if err := t.answer(q); err != nil {
				return err
			}
		}
		if lag, ok := f.(*wire.Lagged); ok && !t.temp {
			if err := t.catchUp(lag); err != nil {
				return err
			}
		}
	}
	return nil
}

// mine takes note of a frame and reports whether it belongs to the request:
// after catching up, frames of other runs come by, and some a second time.
func (t *target) mine(f wire.Frame) bool {
	h := f.Header()
	switch f := f.(type) {
	case *wire.Start:
		t.named(f.ClientID, f.Run)
	case *wire.Queued:
		t.named(f.ClientID, f.Run)
		return f.ClientID == t.id
	case *wire.Done: // of a run that never began
		t.named(f.ClientID, f.Run)
	case *wire.Error:
		t.named(f.ClientID, f.Run)
		if h.Run == "" {
			return t.refused(f)
		}
	}
	if t.run == "" || h.Run != t.run || !t.fresh(h.ID) {
		return false
	}
	switch f := f.(type) {
	case *wire.Accepted:
		return h.ID != "" // else it is the answer to a cancel
	case *wire.Error:
		if !f.Recoverable {
			t.failed = client.FrameError(f)
		}
	case *wire.ToolResult:
		t.result = f
	case *wire.Done:
		t.end = f
	}
	return true
}

// fresh reports whether a frame was not there before, and takes note.
func (t *target) fresh(id libctx.Event) bool {
	if id == "" {
		return true
	}
	if number(id) <= number(t.seen) {
		return false
	}
	t.seen = id
	return true
}

// refused looks at an error about a request: it is the answer to ours, unless
// it is that of a cancel, or of an answer, which came too late.
func (t *target) refused(e *wire.Error) bool {
	if t.answered && e.Code == errdefs.NotFound || t.why() != nil && (e.Code == errdefs.Already || e.Code == errdefs.NotFound) {
		return false
	}
	refusal := errdefs.New(e.Code, "%s", e.Message)
	if e.Code == errdefs.Invalid && strings.HasPrefix(e.Message, "workspace") {
		refusal.Hint = "name another directory: --workspace DIR"
	}
	t.asked = refusal
	return true
}

// catchUp goes on after frames were left out because this side read too slowly:
// the durable ones follow, then the live ones. The connection stays the one that
// began the run, so that questions still come to it.
func (t *target) catchUp(lag *wire.Lagged) error {
	after := t.seen
	if after == "" {
		after = lag.After
	}
	return t.request(&wire.Resume{Session: t.session, After: after})
}

// lost is the error of a connection that ended before the run did.
func (t *target) lost(err error) error {
	if !errdefs.Is(err, errdefs.Interrupted) {
		return err
	}
	return errdefs.New(errdefs.Interrupted, "%w before the run was over", err).
		WithHint("what it did is kept: ctx agent resume --session %s %s", t.session, t.agent)
}

// outcome is what the run's end means for the command.
func (t *target) outcome() error {
	switch {
	case t.asked != nil:
		return t.asked
	case t.end.Status == "ok":
		return nil
	case t.end.Status == "cancelled":
		if why := t.why(); why == errTimeout {
			return why
		}
		return errdefs.New(errdefs.Cancelled, "the run was cancelled")
	case t.failed != nil:
		return t.failed
	}
	return errdefs.New(errdefs.IO, "the run failed")
}
