package runs

import (
	"context"
	"strconv"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/client"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/wire"
)

// State is the state of one session of an agent.
type State struct {
	Agent   libctx.Agent   `json:"agent"`
	Session libctx.Session `json:"session"`
	State   string         `json:"state"`
	Run     libctx.Run     `json:"run"`
	Queued  int            `json:"queued"`
	PID     int            `json:"pid"` // 0: no process serves the agent now
	// Terminals are the ids of the session's living terminals.
	Terminals []string `json:"terminals"`
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
	return State{Agent: a, Session: st.Session, State: st.State, Run: st.Run, Queued: st.Queued, PID: st.PID}, nil
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
	living, err := living(ctx, from, a, name)
	if err != nil {
		return err
	}
	s.Terminals = []string{}
	for range living {
		s.Terminals = append(s.Terminals, terminal.ID(a, name))
	}
	pid := ""
	if s.PID != 0 {
		pid = strconv.Itoa(s.PID)
	}
	return from.Record(s,
		"agent", string(s.Agent), "session", string(s.Session), "state", s.State,
		"run", string(s.Run), "queued", strconv.Itoa(s.Queued), "pid", pid,
		"terminal", strings.Join(s.Terminals, " "))
}
