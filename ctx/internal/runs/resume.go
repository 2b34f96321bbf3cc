package runs

import (
	"context"
	"fmt"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/client"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// Resume shows the durable frames of a session after an event ("": all), then
// what an active run still does. Ctrl+C leaves; it cancels nothing.
func Resume(ctx context.Context, from *caller.Caller, a libctx.Agent, session, after string, raw bool) error {
	name, err := from.Session(a, session)
	if err != nil {
		return err
	}
	var cursor libctx.Event
	if after != "" {
		if cursor, err = libctx.ParseEvent(after); err != nil {
			return err
		}
	}
	ctx, stop := leaveOnInterrupt(ctx, from)
	defer stop()
	show := newShow(from.Printer)
	defer show.speak.newline()
	for {
		lag, err := follow(ctx, from, a, &wire.Resume{Session: name, After: cursor}, show, raw, &cursor)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil || lag == nil {
			return err
		}
	}
}

// follow shows the answer to one resume. A client that lagged gets the frame
// that says so and starts again at the cursor.
func follow(ctx context.Context, from *caller.Caller, a libctx.Agent, r *wire.Resume, show *show, raw bool, cursor *libctx.Event) (*wire.Lagged, error) {
	conn, err := from.Dial(ctx, a)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.Request(r); err != nil {
		return nil, err
	}
	for {
		line, f, err := conn.Next()
		if err != nil {
			return nil, err
		}
		if id := f.Header().ID; id != "" {
			*cursor = id
		}
		if raw {
			err = from.Line(append(line, '\n'))
		} else {
			show.frame(f)
			err = from.Failed()
		}
		if err != nil {
			return nil, err
		}
		switch f := f.(type) {
		case *wire.End:
			return nil, nil
		case *wire.Lagged:
			return f, nil
		case *wire.Error:
			if f.Run == "" {
				return nil, client.FrameError(f)
			}
			if !f.Recoverable && !raw {
				show.warn(fmt.Sprintf("run %s failed: %s", f.Run, f.Message))
			}
		}
	}
}

// leaveOnInterrupt makes a context that ends with the caller's first Ctrl+C.
func leaveOnInterrupt(ctx context.Context, from *caller.Caller) (context.Context, func()) {
	ctx, leave := context.WithCancelCause(ctx)
	interrupts, stop := from.Interrupts()
	go func() {
		select {
		case <-interrupts:
			leave(caller.ErrInterrupt)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		stop()
		leave(nil)
	}
}

// Cancel cancels a run: the one named by run or client id, else the active one
// of the session.
func Cancel(ctx context.Context, from *caller.Caller, a libctx.Agent, session, run string) error {
	name, err := from.Session(a, session)
	if err != nil {
		return err
	}
	if run != "" {
		if _, err := libctx.ParseClientID(run); err != nil {
			return err
		}
	}
	if _, running := Process(from.Layout, a); !running {
		return errdefs.New(errdefs.NotFound, "agent %s: no run is active", a)
	}
	conn, err := from.Dial(ctx, a)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := &wire.Cancel{ID: run}
	if session != "" || run == "" {
		r.Session = name
	}
	if run == "" {
		_, f, err := conn.Ask(&wire.StatusOf{Session: name})
		if err != nil {
			return err
		}
		st, ok := f.(*wire.Status)
		if !ok || st.Run == "" {
			return errdefs.New(errdefs.NotFound, "agent %s: session %s has no active run", a, name)
		}
		r.ID = string(st.Run)
	}
	_, f, err := conn.Ask(r)
	if err != nil {
		return err
	}
	id := f.Header().Run
	if id == "" {
		id = libctx.Run(r.ID)
	}
	from.Note("cancelled " + string(id))
	return nil
}
