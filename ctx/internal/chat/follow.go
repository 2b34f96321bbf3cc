package chat

import (
	"context"
	"sync"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/client"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// heard is what comes of a run that is followed: its frames in order, then why
// there are no more. After done, err is nil.
type heard struct {
	of    *follow
	frame wire.Frame
	over  bool
	err   error
	sent  bool // the request was on its way; else it was not made
}

// follow is one message and the run it begins. It ends by itself with the run,
// and when it is stopped, which whoever made it does.
type follow struct {
	from    *caller.Caller
	agent   libctx.Agent
	request *wire.Send
	out     chan<- heard
	ctx     context.Context
	stop    context.CancelFunc

	id   libctx.Run   // "" until known
	seen libctx.Event // the last durable frame
	sent bool

	mu       sync.Mutex
	conn     *client.Conn // nil until connected
	answered bool         // a question
}

// run sends the request and delivers to out until the run is over.
func (f *follow) run() {
	err := f.read(f.request)
	f.tell(heard{of: f, over: true, err: err, sent: f.sent})
}

func (f *follow) tell(h heard) {
	select {
	case f.out <- h:
	case <-f.ctx.Done():
	}
}

// read delivers the frames of the run. Where frames were left out because this
// side was slow, the durable ones are asked for, on the same connection: questions
// come to it alone.
func (f *follow) read(first wire.Request) error {
	conn, err := f.from.Dial(f.ctx, f.agent)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(f.ctx, func() { conn.Close() })()
	f.mu.Lock()
	f.conn = conn
	f.mu.Unlock()
	if err := conn.Request(first); err != nil {
		return err
	}
	f.sent = true
	for {
		_, frame, err := conn.Next()
		if err != nil {
			return err
		}
		switch x := frame.(type) {
		case *wire.Lagged:
			after := f.seen
			if after == "" {
				after = x.After
			}
			if err := conn.Request(&wire.Resume{Session: f.request.Session, After: after}); err != nil {
				return err
			}
			continue
		case *wire.End:
			return errdefs.New(errdefs.Interrupted, "the session says no run is active, but not how this one ended")
		case *wire.Start:
			f.named(x.ClientID, x.Run)
		case *wire.Queued:
			f.named(x.ClientID, x.Run)
			if x.ClientID == f.request.ID {
				f.tell(heard{of: f, frame: x})
			}
			continue
		case *wire.Done: // of a run that never began
			f.named(x.ClientID, x.Run)
		case *wire.Error:
			f.named(x.ClientID, x.Run)
			if x.Run == "" && f.late(x) {
				continue
			}
			if x.Run == "" {
				return client.FrameError(x) // the request was refused
			}
		}
		h := frame.Header()
		if f.id == "" || h.Run != f.id || h.ID != "" && !f.fresh(h.ID) {
			continue
		}
		f.tell(heard{of: f, frame: frame})
		if _, over := frame.(*wire.Done); over {
			return nil
		}
	}
}

// answer answers a question of the run.
func (f *follow) answer(a *wire.Approve) error {
	f.mu.Lock()
	conn := f.conn
	f.answered = true
	f.mu.Unlock()
	return conn.Request(a)
}

// late reports whether an error says that an answer came when the question was over.
func (f *follow) late(e *wire.Error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answered && e.Code == errdefs.NotFound
}

// named takes note of the run that a request became, if it is this one.
func (f *follow) named(id libctx.ClientID, run libctx.Run) {
	if f.id == "" && id == f.request.ID {
		f.id = run
	}
}

// fresh reports whether a durable frame was not there before.
func (f *follow) fresh(id libctx.Event) bool {
	if place(id) <= place(f.seen) {
		return false
	}
	f.seen = id
	return true
}
