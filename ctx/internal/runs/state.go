package runs

import (
	"context"
	"strconv"
	"time"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/client"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/wire"
)

// stopDeadline is how long a stopped agent's process may take to end.
const stopDeadline = 10 * time.Second

// State is the state of one session of an agent.
type State struct {
	Agent   libctx.Agent   `json:"agent"`
	Session libctx.Session `json:"session"`
	State   string         `json:"state"`
	Run     libctx.Run     `json:"run"`
	Queued  int            `json:"queued"`
	PID     int            `json:"pid"` // 0: no process serves the agent now
}

// StateOf asks the agent's process if there is one, else the session's files.
// It starts nothing.
func StateOf(ctx context.Context, from *caller.Caller, a libctx.Agent, name libctx.Session) (State, error) {
	if _, running := Process(from.Layout, a); running {
		if s, err := ask(ctx, from, a, name); !errdefs.Is(err, errdefs.Unavailable) && !errdefs.Is(err, errdefs.Interrupted) {
			return s, err
		}
	}
	s := State{Agent: a, Session: name, State: "idle"}
	place, err := from.Place(a)
	if err != nil {
		return s, err
	}
	r, err := place.Read(name)
	if errdefs.Is(err, errdefs.NotFound) {
		return s, nil // nothing has been sent yet
	}
	if err != nil {
		return s, err
	}
	defer r.Close()
	s.State = r.Info().State
	return s, nil
}

func ask(ctx context.Context, from *caller.Caller, a libctx.Agent, name libctx.Session) (State, error) {
	conn, err := client.Connect(ctx, from.Layout.AgentLink(a))
	if err != nil {
		return State{}, err
	}
	defer conn.Close()
	_, f, err := conn.Ask(&wire.StatusOf{Session: name})
	if err != nil {
		return State{}, err
	}
	st, ok := f.(*wire.Status)
	if !ok {
		return State{}, errdefs.New(errdefs.Protocol, "agent %s: answered status with %s", a, f.Header().Type)
	}
	return State{a, st.Session, st.State, st.Run, st.Queued, st.PID}, nil
}

// Status prints the state of a session. It starts nothing.
func Status(ctx context.Context, from *caller.Caller, a libctx.Agent, named string) error {
	name, err := from.Session(a, named)
	if err != nil {
		return err
	}
	s, err := StateOf(ctx, from, a, name)
	if err != nil {
		return err
	}
	pid := ""
	if s.PID != 0 {
		pid = strconv.Itoa(s.PID)
	}
	return from.Record(s,
		"agent", string(s.Agent), "session", string(s.Session), "state", s.State,
		"run", string(s.Run), "queued", strconv.Itoa(s.Queued), "pid", pid)
}

// Stop cancels an agent's runs and ends its process. An agent without a process
// is stopped already.
func Stop(ctx context.Context, from *caller.Caller, a libctx.Agent) error {
	id, running := Process(from.Layout, a)
	if !running {
		if _, err := tree.Owner(from.Layout, a); err != nil {
			return err
		}
		from.Note("agent " + string(a) + " is not running")
		return nil
	}
	process, err := procid.Open(id.PID)
	if errdefs.Is(err, errdefs.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer process.Close()
	conn, err := client.Connect(ctx, from.Layout.AgentLink(a))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Request(&wire.Stop{Agent: a}); err != nil {
		return err
	}
	for {
		_, f, err := conn.Next()
		if errdefs.Is(err, errdefs.Interrupted) {
			break // it ended before we read its last word
		}
		if err != nil {
			return err
		}
		if e, ok := f.(*wire.Error); ok {
			return client.FrameError(e)
		}
		if d, ok := f.(*wire.Done); ok && d.Op == "stop" {
			break
		}
	}
	if !id.Alive() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stopDeadline, errdefs.New(errdefs.Busy, "agent %s: its process %d does not end", a, id.PID))
	defer cancel()
	return process.Wait(ctx)
}
