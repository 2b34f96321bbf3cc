// Package calls is the one way from a committed tool call to its result: the
// decision of admission, the record of the decision, the sandbox. Executable
// agents, model agents and tsh operations share it.
//
// What calls it has committed the call before and commits the result after it;
// docs/reference/run.md has the order.
package calls

import (
	"context"

	"cortexfs.org/ctxd/internal/run"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/wire"
)

// Caller carries out the calls of one agent.
type Caller struct {
	Tools *toolrun.Runner
	Log   *log.Logger
}

// Pending is a call about which there is a decision. Close it.
type Pending struct {
	// Decision is the frame to record before the call is executed.
	Decision *wire.ToolPolicy
	call     toolrun.Call
	admitted *toolrun.Admitted // nil if it was refused
}

// Close gives back what a call that may run holds.
func (p *Pending) Close() {
	if p.admitted != nil {
		p.admitted.Close()
	}
}

// Observes reports whether the call may run beside others that do: it only
// looks at things, and its tool says that calls of it may overlap.
func (p *Pending) Observes() bool {
	return p.admitted != nil && p.admitted.Parallel() && observation(p.Decision.Effect)
}

// Replayable reports whether the call may be executed again after its host died.
func (p *Pending) Replayable() bool { return p.admitted != nil && p.admitted.Replayable() }

// Refusal is the result of a call that may not run; ok is false for one that may.
func (p *Pending) Refusal() (res toolrun.Result, ok bool) {
	if p.admitted != nil {
		return toolrun.Result{}, false
	}
	return toolrun.Failure(admit.Code(p.Decision.Code).Sentence()), true
}

// Decide asks admission about a call of a run, with the agent's files read
// afresh. An error means that there is no decision, because the agent's own
// files are refused: the run can not go on.
func (c *Caller) Decide(r *run.Run, call toolrun.Call) (*Pending, error) {
	call.Run, call.Session = r.ID, r.Session
	if call.Workspace == "" {
		call.Workspace, call.Cwd = r.Places.Workspace, r.Places.Cwd
	}
	call.Loaded = r.Loaded()
	admitted, decision, err := c.Tools.Admit(call)
	if err != nil {
		return nil, err
	}
	return &Pending{Decision: decision, call: call, admitted: admitted}, nil
}

// logRefusal tells people about a call that does not run.
func (c *Caller) logRefusal(r *run.Run, p *Pending) {
	c.Log.Info("refused", "session", r.Session, "run", r.ID, "tool", p.call.Name, "code", p.Decision.Code, "reason", p.Decision.Reason)
}

// Execute runs a call whose decision is durable and that was not refused. The
// result is to be committed whatever the error says; the error ends the run.
func (c *Caller) Execute(ctx context.Context, r *run.Run, p *Pending) (toolrun.Result, error) {
	fault.Point("calls.decided")
	res, err := p.admitted.Execute(ctx)
	fault.Point("calls.executed")
	if err != nil {
		c.Log.Warn("call ended early", "session", r.Session, "run", r.ID, "tool", p.call.Name, "why", err.Error())
	}
	return res, err
}

// Do takes one committed call all the way. The result is to be committed
// whatever the error says; the error ends the run.
func (c *Caller) Do(ctx context.Context, r *run.Run, call toolrun.Call) (toolrun.Result, error) {
	if r.ToolFree {
		return toolrun.Failure(ToolFree), nil
	}
	if err := context.Cause(ctx); err != nil {
		return toolrun.Failure(err.Error()), err
	}
	fault.Point("calls.committed")
	p, err := c.Decide(r, call)
	if err != nil {
		return toolrun.Failure(NotStarted), err
	}
	defer p.Close()
	err = r.Record(p.Decision)
	if refusal, refused := p.Refusal(); refused {
		c.logRefusal(r, p)
		return refusal, err
	}
	if err != nil {
		return toolrun.Failure(NotStarted), err
	}
	return c.Execute(ctx, r, p)
}

// Sentences of results of calls that were not started.
const (
	ToolFree   = "this run may not call tools"
	NotStarted = "the tool could not be started"
	Abandoned  = "not executed: the run ended before"
)

// Settle commits the result of a call. One for which a full session has no room
// is replaced by one that says so, because no run can end with an open call; the
// error is still that of the first.
func Settle(res toolrun.Result, commit func(toolrun.Result) error) error {
	err := commit(res)
	if err == nil {
		return nil
	}
	short := toolrun.Failure("the result could not be kept: " + err.Error())
	short.ExitCode, short.Duration = res.ExitCode, res.Duration
	_ = commit(short) // if this fails too, so will the end of the run, which reports it
	return err
}
