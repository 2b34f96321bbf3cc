package run

import (
	"context"
	"slices"
	"time"

	"cortexfs.org/ctxd/internal/approval"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// Ask puts a question to the connection whose request began the run, and waits for
// what comes of it; everybody else who follows the run is told. A run has one open
// question at a time, the next one waits. Question and decision are durable when Ask
// returns (docs/reference/approval.md). It fills in the run of the question, and how
// long it waits at most.
func (r *Run) Ask(ctx context.Context, q approval.Question) approval.Answer {
	select {
	case r.asking <- struct{}{}:
	case <-ctx.Done():
		return approval.Answer{Decision: approval.Cancelled, Err: context.Cause(ctx)}
	}
	defer func() { <-r.asking }()
	q.Run, q.Expires = r.ID, r.live.hub.patience(q.Expires)
	slot := approval.NewSlot(q)
	defer r.client.Asked().Put(slot)()
	defer r.live.unask(r)
	state, err := r.live.ask(r, q, slot)
	switch {
	case err != nil:
		return approval.Answer{Decision: approval.Invalid, Err: err}
	case state == needless:
		return approval.Answer{Decision: approval.Cancelled}
	case state == missed:
		slot.Take(approval.Event{Kind: approval.Gone})
	}
	fault.Point("question.asked")
	defer context.AfterFunc(ctx, func() { slot.Take(approval.Event{Kind: approval.Stopped}) })()
	clock := time.AfterFunc(q.Expires, func() { slot.Take(approval.Event{Kind: approval.Expired}) })
	defer clock.Stop()
	a := slot.Answer()
	err = r.Record(&wire.ApprovalResult{Head: wire.Head{Type: "approval_result"}, Call: q.Call, Decision: a.Decision})
	switch {
	case err != nil:
		return approval.Answer{Decision: a.Decision, Err: err} // what nobody can read afterwards allows nothing
	case a.Decision == approval.Cancelled:
		a.Err = context.Cause(ctx)
	}
	fault.Point("question.answered")
	return a
}

// patience is how long an answer is waited for where so long is wanted.
func (h *Hub) patience(wanted time.Duration) time.Duration {
	most := libctx.ApprovalTimeout
	for _, d := range []time.Duration{h.cfg.Approval, wanted} {
		if d > 0 && d < most {
			most = d
		}
	}
	return most
}

// What became of a question when it was put.
const (
	reached  = iota // who is to answer it has it
	missed          // who was to answer it lagged, and gets nothing more of the run
	needless        // the run was told to finish: no call of it is started any more
)

// ask commits a question and tells the clients.
func (l *Live) ask(r *Run, q approval.Question, slot *approval.Slot) (state int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.owns(r); err != nil {
		return 0, err
	}
	if n := len(q.Arguments); n > libctx.MaxInlineText {
		return 0, errdefs.New(errdefs.TooBig, "a question of %d bytes can not be asked", n)
	}
	if r.ToolFree || r.inbox.finish() {
		return needless, nil
	}
	if err := l.record(r, &session.Fact{Run: r.ID, Frame: q.Frame(r.client.Asked().UID)}); err != nil {
		return 0, err
	}
	r.question = slot
	if !slices.ContainsFunc(l.subs, func(s *sub) bool {
		return s.client == hearer(r.client) && (s.run == "" || s.run == r.ID)
	}) {
		return missed, nil
	}
	return reached, nil
}

// unask takes note that no question is open in a run.
func (l *Live) unask(r *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.question = nil
}
