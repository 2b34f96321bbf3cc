package run

import (
	"cortexfs.org/ctxd/internal/approval"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
)

// inbox is what clients said into a run and is not delivered, oldest first: all
// of it is durable. Guarded by live.mu, so that taking an input and closing the
// inbox never miss each other.
type inbox struct {
	waiting []session.Input
	bytes   int
	closed  bool
}

// take removes the inputs that fit and returns them.
func (b *inbox) take(fits func(session.Input) bool) (taken []session.Input) {
	rest := make([]session.Input, 0, len(b.waiting))
	for _, in := range b.waiting {
		if !fits(in) {
			rest = append(rest, in)
			continue
		}
		taken = append(taken, in)
		b.bytes -= len(in.Text)
	}
	b.waiting = rest
	return taken
}

// putBack undoes take.
func (b *inbox) putBack(inputs []session.Input) {
	b.waiting = append(inputs, b.waiting...)
	for _, in := range inputs {
		b.bytes += len(in.Text)
	}
}

// steers are the inputs that are delivered before the next request; the others
// are when the run would end.
func steers(in session.Input) bool { return in.Op != session.OpFollowUp }

// Deliver makes what clients said with steer and finish into messages of the
// conversation, in one batch. Call it at a safe boundary: when every call has its
// result, before the next request. After a finish the run is ToolFree. A storage
// error ends the run: return it from Drive.
func (r *Run) Deliver() error {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	if len(r.inbox.waiting) == 0 {
		return nil
	}
	return r.live.deliver(r, r.inbox.take(steers))
}

// Close ends a run that would end of its own accord, or goes on with it: more
// says that inputs were delivered, which a run has to answer. If there are none
// nothing is accepted any more. Whatever a client was told is accepted before is
// among the inputs. Follow-ups come one at a time. A storage error ends the run:
// return it from Drive.
func (r *Run) Close() (more bool, err error) {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	next := r.inbox.take(steers)
	if len(next) == 0 {
		one := true
		next = r.inbox.take(func(session.Input) bool { first := one; one = false; return first })
	}
	if len(next) == 0 {
		r.inbox.closed = true
		return false, nil
	}
	return true, r.live.deliver(r, next)
}

// Finishing reports whether no further call of the run may be started: it is
// ToolFree, or a finish waits to be delivered.
func (r *Run) Finishing() bool {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	return r.ToolFree || r.inbox.finish()
}

// finish reports whether a finish is among the inputs.
func (b *inbox) finish() bool {
	for _, in := range b.waiting {
		if in.Op == session.OpFinish {
			return true
		}
	}
	return false
}

// deliver commits inputs as messages. Those that could not be kept wait on, for
// the end of the run. Called with mu held.
func (l *Live) deliver(r *Run, inputs []session.Input) error {
	if len(inputs) == 0 {
		return nil
	}
	err := l.owns(r)
	if err == nil {
		err = l.record(r, deliveries(r.ID, inputs)...)
	}
	if err != nil {
		r.inbox.putBack(inputs)
		return err
	}
	for _, in := range inputs {
		r.ToolFree = r.ToolFree || in.Op == session.OpFinish
	}
	return nil
}

func deliveries(run libctx.Run, inputs []session.Input) []session.Record {
	var records []session.Record
	for _, in := range inputs {
		records = append(records, in.Deliver(run)...)
	}
	return records
}

// Say takes an input for the active run of a session and returns the run; it is
// durable then. The session of that name which lives with the client's own
// connection goes before the durable one while a run is active in it. The same
// id and input again bring the same answer and are taken once.
//
// Errors: errdefs.NotFound if no run is active, errdefs.Unsupported if it is an
// executable agent's, errdefs.Already if it takes no more, errdefs.Busy if too
// many inputs wait in it, errdefs.Invalid if the id was used for something else,
// and those of storage.
func (h *Hub) Say(name libctx.Session, in session.Input, c Client) (libctx.Run, error) {
	l, err := h.speaker(name, c)
	if err != nil {
		return "", err
	}
	defer l.release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return "", err
	}
	return l.hear(in)
}

// speaker is the session that a client speaks into; release it.
func (h *Hub) speaker(name libctx.Session, c Client) (*Live, error) {
	h.mu.Lock()
	own := h.temps[tempKey{c, name}]
	if own != nil {
		own.refs++
	}
	h.mu.Unlock()
	if own == nil {
		return h.acquire(name)
	}
	own.mu.Lock()
	active := own.active != nil
	own.mu.Unlock()
	if active {
		return own, nil
	}
	own.release()
	return h.acquire(name)
}

// hear takes an input. Called with mu held and the store open.
func (l *Live) hear(in session.Input) (libctx.Run, error) {
	payload, err := digest(in.Op, in.Text, nil, "", "")
	if err != nil {
		return "", err
	}
	differs := errdefs.New(errdefs.Invalid, "id %s was used for another request", in.Client)
	for _, o := range l.runs() {
		if o.Client == in.Client {
			return "", differs
		}
	}
	run, was, known, err := l.store.Client(in.Client)
	switch {
	case err != nil:
		return "", err
	case known && was != payload:
		return "", differs
	case known:
		return run, nil
	}
	r := l.active
	if r == nil {
		return "", errdefs.New(errdefs.NotFound, "no run is active in session %s; send begins one", l.name)
	}
	if err := r.hears(in); err != nil {
		return "", err
	}
	if err := l.owns(r); err != nil {
		return "", err
	}
	if err := l.record(r, in.Accept(r.ID, payload)); err != nil {
		return "", err
	}
	r.inbox.waiting = append(r.inbox.waiting, in)
	r.inbox.bytes += len(in.Text)
	if in.Op == session.OpFinish && r.question != nil {
		r.question.Take(approval.Event{Kind: approval.Stopped}) // the call would be started after this
	}
	return r.ID, nil
}

// hears refuses an input that the run can not take.
func (r *Run) hears(in session.Input) error {
	switch {
	case !r.Places.Hears:
		return errdefs.New(errdefs.Unsupported, "run %s is an executable agent's, which hears nothing while it runs", r.ID)
	case r.inbox.closed || r.Cancelled():
		return errdefs.New(errdefs.Already, "run %s is ending and takes no more", r.ID)
	case len(r.inbox.waiting) >= libctx.MaxRunInputs || r.inbox.bytes+len(in.Text) > libctx.MaxRunInput:
		return errdefs.New(errdefs.Busy, "%d inputs already wait in run %s", len(r.inbox.waiting), r.ID)
	}
	return nil
}
