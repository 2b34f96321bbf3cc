package run

import (
	"context"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// Send begins a run, or queues it behind the session's active one, or replays
// the run of a repeated id. Its frames go to the client; the error, if any, is
// the whole answer and nothing was recorded.
func (h *Hub) Send(ctx context.Context, q *wire.Send, c Client) error {
	agent, err := h.cfg.Worker.Load()
	if err != nil {
		return err
	}
	var l *Live
	if q.Scope == "temp" {
		l, err = h.acquireTemp(q.Session, c)
	} else {
		l, err = h.acquire(q.Session)
	}
	if err != nil {
		return err
	}
	defer l.release()
	return l.request(agent, c, &Run{
		Session: q.Session, Client: q.ID, Op: "send", Scope: q.Scope, Input: q.Input,
		ToolFree: q.Tools != nil && !*q.Tools,
	}, q.Workspace, q.Cwd)
}

// Tsh carries out one tool operation, or replays it. It does not wait for the
// session's active run.
func (h *Hub) Tsh(ctx context.Context, q *wire.Tsh, c Client) error {
	agent, err := h.cfg.Worker.Load()
	if err != nil {
		return err
	}
	l, err := h.acquire(q.Session)
	if err != nil {
		return err
	}
	defer l.release()
	return l.request(agent, c, &Run{
		Session: q.Session, Client: q.ID, Op: "tsh", Scope: "private", Args: q.Args,
	}, q.Workspace, q.Cwd)
}

// request accepts a run for the session.
func (l *Live) request(agent Agent, c Client, r *Run, workspace, cwd string) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return err
	}
	cwd = agent.Cwd(cwd)
	if r.payload, err = digest(r.Op, r.Input, r.Args, r.Scope, cwd); err != nil {
		return err
	}
	// Before the places: what is only told again needs none.
	if found, err := l.known(r, c); found || err != nil {
		return err
	}
	if r.Places, err = agent.Places(l.name, workspace, l.workspace(), cwd); err != nil {
		return err
	}
	if err := l.store.Room(); err != nil {
		return err
	}
	r.ID, r.live, r.over = libctx.NewRun(), l, make(chan struct{})
	r.client, r.asking = c, make(chan struct{}, 1)
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return l.accept(c, r)
}

// workspace is the one the session was last sent, "" if there was none. That of
// an operation which is about to be recorded counts already. Called with mu held
// and the store open.
func (l *Live) workspace() string {
	for _, r := range slices.Backward(l.tools) {
		if !r.recorded {
			return r.Places.Workspace
		}
	}
	return l.store.Info().Workspace
}

// accept starts the run or lets it wait. Called with mu held.
func (l *Live) accept(c Client, r *Run) error {
	queue, wait, work := &l.queue, l.active != nil, l.hub.cfg.Worker.Drive
	limit := libctx.MaxQueuedSends
	if r.Op == "tsh" {
		queue, wait, work = &l.waiting, len(l.tools) >= libctx.MaxSessionTsh, l.hub.cfg.Worker.Tool
		limit = libctx.MaxQueuedTsh
	}
	if wait && len(*queue) >= limit {
		return errdefs.New(errdefs.Busy, "session %s already has %d requests waiting", l.name, limit)
	}
	if err := l.watch(r.ID, c); err != nil {
		return err
	}
	if err := l.hub.engage(l, &l.hub.runs); err != nil {
		l.unwatch(r.ID)
		return err
	}
	if !wait {
		if err := l.begin(r, work); err != nil {
			l.unwatch(r.ID)
			go l.finish(r) // takes the hub's lock, which comes before ours
			return err
		}
		return nil
	}
	*queue = append(*queue, r)
	l.noteQueued(c, r)
	return nil
}

// noteQueued tells a client which run its request has become, if that waits, and
// how many are before it. It promises nothing.
func (l *Live) noteQueued(c Client, r *Run) {
	at := slices.Index(l.queue, r)
	if r.Op == "tsh" {
		at = slices.Index(l.waiting, r)
	}
	if at < 0 {
		return
	}
	line, err := wire.MarshalFrame(&wire.Queued{
		Head: wire.Head{Type: "queued", Run: r.ID}, ClientID: r.Client, Position: at + 1,
	})
	if err == nil {
		c.Note(line)
	}
}

// Resume gives a client the durable frames of a session after a cursor, then
// live ones while a run is active, then end.
func (h *Hub) Resume(ctx context.Context, q *wire.Resume, c Client) error {
	l, err := h.acquire(q.Session)
	if err != nil {
		return err
	}
	defer l.release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return err
	}
	if l.store.EventsEnd() == 0 && len(l.tools) == 0 {
		return errdefs.New(errdefs.NotFound, "no session %s", l.name)
	}
	var offset int64
	if q.After != "" {
		if offset, err = l.store.FindEvent(q.After); err != nil {
			return err
		}
	}
	return l.follow(c, offset, "", true)
}
