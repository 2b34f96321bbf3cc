// Package host carries out the runs of an executable agent: it starts the
// executable step by step through sdk-envelope-v1, executes the one tool call a
// step may yield, and gives the next step the result. It also carries out tsh
// operations, which are one tool call without an agent process.
//
// The host alone writes results and outcomes. What an executable prints counts
// only after its process ended well; until then only provisional deltas reach a
// client. docs/reference/envelope.md has the rules.
package host

import (
	"context"

	"cortexfs.org/ctxd/internal/calls"
	"cortexfs.org/ctxd/internal/changes"
	"cortexfs.org/ctxd/internal/run"
	"cortexfs.org/ctxd/internal/sandboxrun"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/envelope"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Host carries out the work of one agent; of a model agent all but its sends.
type Host struct {
	Tools    *toolrun.Runner
	Calls    *calls.Caller
	Launcher *sandboxrun.Launcher
	Log      *log.Logger
}

// Load reads the agent's files anew.
func (h *Host) Load() (run.Agent, error) {
	a, err := h.load()
	if err != nil {
		return nil, err
	}
	return &loaded{h, a}, nil
}

func (h *Host) load() (*view.Agent, error) { return view.Load(h.Tools.Layout, h.Tools.Agent) }

// loaded is an agent as it was read for one request.
type loaded struct {
	host  *Host
	agent *view.Agent
}

// Cwd implements run.Agent.
func (l *loaded) Cwd(cwd string) string {
	if cwd == "" {
		return l.agent.Cwd
	}
	return cwd
}

// Places implements run.Agent.
func (l *loaded) Places(s libctx.Session, workspace, last, cwd string) (run.Places, error) {
	tools, a := l.host.Tools, l.agent
	if workspace == "" {
		workspace = last
	}
	if workspace == "" {
		var err error
		if workspace, err = tools.Private(a, s); err != nil {
			return run.Places{}, err
		}
	}
	ws, err := tools.Workspace(a, workspace)
	if err != nil {
		return run.Places{}, err
	}
	if err := tools.CheckCwd(a, ws, cwd); err != nil {
		return run.Places{}, err
	}
	return run.Places{
		Workspace: ws.Dir, Cwd: cwd, Hears: !a.Executable,
		Ground: changes.Ground{Workspace: ws, Protect: a.Protect, Owner: a.Owner},
	}, nil
}

// Replayable asks admission about a call that a dead host left.
func (h *Host) Replayable(s libctx.Session, c session.OpenCall) bool { return h.Calls.Replayable(s, c) }

// Drive carries out a send to an executable agent, which was read for it.
func (h *Host) Drive(ctx context.Context, a *view.Agent, r *run.Run) error {
	var seen = map[libctx.Call]bool{}
	var observation *envelope.Observation
	for n := 0; ; n++ {
		history, err := h.history(r, n)
		if err != nil {
			return err
		}
		out, err := h.step(ctx, r, &envelope.Invocation{
			Run: r.ID, Step: n, Input: r.Input, HistoryMessages: history, ToolContext: h.loaded(a, r), Observation: observation,
		})
		if err != nil {
			return err
		}
		if out.call == nil {
			return h.answer(r, out.text)
		}
		switch {
		case seen[out.call.Call]:
			return errdefs.New(errdefs.Protocol, "agent used call id %s twice", out.call.Call)
		case n == libctx.MaxAgentCalls:
			return run.TurnLimit("agent wants more than %d tool calls in one run", libctx.MaxAgentCalls)
		}
		seen[out.call.Call] = true
		if observation, err = h.turn(ctx, r, out); err != nil {
			return err
		}
	}
}

// loaded is the text about the session's loaded tools. It is a convenience that
// no run fails for.
func (h *Host) loaded(a *view.Agent, r *run.Run) string {
	text, err := h.Tools.LoadedTools(a, r.Session, r.Loaded(), libctx.MaxContextText)
	if err != nil {
		h.Log.Warn("loaded tools", "session", r.Session, "run", r.ID, "why", err.Error())
	}
	return text
}

// answer commits the final text; a run may end without one.
func (h *Host) answer(r *run.Run, text string) error {
	if text == "" {
		return nil
	}
	return r.Append(session.RoleAssistant, wire.Text(text))
}

// turn commits what the step said and the call it yielded, executes the call,
// and commits its result.
func (h *Host) turn(ctx context.Context, r *run.Run, out output) (*envelope.Observation, error) {
	call := out.call
	var said []wire.Part
	if out.text != "" {
		said = append(said, wire.Text(out.text))
	}
	said = append(said, wire.Part{Type: "tool_call", Call: call.Call, Name: call.Name, Arguments: call.Arguments})
	if err := r.Append(session.RoleAssistant, said...); err != nil {
		return nil, err
	}
	c := toolrun.Call{ID: call.Call, Name: call.Name, Arguments: call.Arguments}
	res, err := h.Calls.Do(ctx, r, c)
	werr := calls.Settle(res, func(res toolrun.Result) error {
		return r.Append(session.RoleTool, calls.Part(c, res))
	})
	if err != nil {
		return nil, err
	}
	if werr != nil {
		return nil, werr
	}
	content, cut := wire.Clip(res.Content, libctx.MaxObservation)
	return &envelope.Observation{
		ToolCallID: call.Call, Name: call.Name, Status: res.Status,
		Content: content, Truncated: res.Truncated || cut,
	}, nil
}

// Tool carries out a tsh operation: one call of the tool tsh.
func (h *Host) Tool(ctx context.Context, r *run.Run) error {
	const id libctx.Call = "call-1"
	args, err := json.Marshal(struct {
		Args []string `json:"args"`
	}{r.Args})
	if err != nil {
		return errdefs.New(errdefs.Invalid, "arguments: %w", err)
	}
	err = r.Record(&wire.ToolCall{
		Head: wire.Head{Type: "tool_call"}, Call: id, Name: "tsh", Arguments: jsontext.Value(args),
	})
	if err != nil {
		return err
	}
	res, err := h.Calls.Do(ctx, r, toolrun.Call{ID: id, Name: "tsh", Arguments: args})
	werr := calls.Settle(res, func(res toolrun.Result) error {
		return r.Record(&wire.ToolResult{
			Head: wire.Head{Type: "tool_result"}, Call: id, Name: "tsh", Status: res.Status, Content: res.Content,
			Truncated: res.Truncated, ExitCode: res.ExitCode, DurationMS: res.Duration.Milliseconds(),
		})
	})
	if err == nil {
		err = werr
	}
	return err
}
