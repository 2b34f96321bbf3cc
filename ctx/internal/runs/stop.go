package runs

import (
	"context"
	"fmt"
	"time"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/client"
	"cortexfs.org/ctx/internal/instances"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/wire"
)

// stopDeadline is how long a stopped agent's process may take to end.
const stopDeadline = 10 * time.Second

// living are the living terminals of an agent, of one session or for "" of all.
func living(ctx context.Context, from *caller.Caller, a libctx.Agent, s libctx.Session) ([]instances.Terminal, error) {
	place, err := from.Place(a)
	if err != nil {
		return nil, err
	}
	all, err := instances.Live(ctx, from, place.Owner.UID)
	var found []instances.Terminal
	for _, t := range all {
		if t.Agent == a && (s == "" || t.Session == s) {
			found = append(found, t)
		}
	}
	return found, err
}

// Stop cancels an agent's runs, stops its terminals and ends its process; for a
// session that is named it does so in this session, and the process goes on. An
// agent of which nothing lives is stopped already. What could not be stopped, or
// was left alone because its receipt is about something else, is an error
// (errdefs.IO).
func Stop(ctx context.Context, from *caller.Caller, a libctx.Agent, named string) error {
	var s libctx.Session
	if named != "" {
		var err error
		if s, err = libctx.ParseSession(named); err != nil {
			return err
		}
	}
	terminals, err := living(ctx, from, a, s)
	if err != nil {
		return err
	}
	_, running := Process(from.Layout, a)
	if !running && len(terminals) == 0 {
		from.Note("agent " + string(a) + " is not running")
		return nil
	}
	conn, err := stopper(ctx, from, a, running)
	if err != nil {
		return err
	}
	defer conn.Close()
	// Its process is looked up again: it may have been started for this.
	end := func() error { return nil }
	if id, ok := Process(from.Layout, a); ok && s == "" {
		process, err := procid.Open(id.PID)
		if err != nil && !errdefs.Is(err, errdefs.NotFound) {
			return err
		}
		if err == nil {
			defer process.Close()
			end = func() error {
				if !id.Alive() {
					return nil
				}
				ctx, cancel := context.WithTimeoutCause(ctx, stopDeadline, errdefs.New(errdefs.Busy, "agent %s: its process %d does not end", a, id.PID))
				defer cancel()
				return process.Wait(ctx)
			}
		}
	}
	done, err := stopped(conn, &wire.Stop{Agent: a, Session: s})
	if err != nil {
		return err
	}
	if err := end(); err != nil {
		return err
	}
	return left(ctx, from, a, s, done)
}

// stopper connects to the agent's process, which is started where only its
// terminals live: it keeps their receipts.
func stopper(ctx context.Context, from *caller.Caller, a libctx.Agent, running bool) (*client.Conn, error) {
	if running {
		conn, err := client.Connect(ctx, from.Layout.AgentLink(a))
		if !errdefs.Is(err, errdefs.Unavailable) {
			return conn, err
		}
	}
	return from.Dial(ctx, a)
}

// stopped asks and waits until it is carried out; nil if the process ended before
// it said so.
func stopped(conn *client.Conn, r *wire.Stop) (*wire.Done, error) {
	if err := conn.Request(r); err != nil {
		return nil, err
	}
	for {
		_, f, err := conn.Next()
		if errdefs.Is(err, errdefs.Interrupted) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if e, ok := f.(*wire.Error); ok {
			return nil, client.FrameError(e)
		}
		if d, ok := f.(*wire.Done); ok && d.Op == "stop" {
			return d, nil
		}
	}
}

// left says what became of the terminals, and fails if one lives on.
func left(ctx context.Context, from *caller.Caller, a libctx.Agent, s libctx.Session, done *wire.Done) error {
	told := map[libctx.Session]bool{}
	if done != nil {
		for _, t := range done.Terminals {
			line := fmt.Sprintf("terminal %s/%s: %s", a, t.Session, t.Outcome)
			if t.Message != "" {
				line += ": " + t.Message
			}
			if t.Outcome == "stopped" || t.Outcome == "gone" {
				from.Note(line)
				continue
			}
			from.Warn(line)
			told[t.Session] = true
		}
	}
	still, err := living(ctx, from, a, s)
	if err != nil {
		return err
	}
	for _, t := range still {
		if !told[t.Session] {
			from.Warn(fmt.Sprintf("terminal %s/%s: runs on as process %d: there is no receipt of it", a, t.Session, t.PID))
		}
	}
	if len(still) > 0 || done != nil && done.Status == "error" {
		return errdefs.New(errdefs.IO, "agent %s: not everything was stopped", a)
	}
	return nil
}
