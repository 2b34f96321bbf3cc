// Package calls is the one way from a committed tool call to its result: what
// admission says, the answer of a person, the grant, the hooks, the record of the
// decision, the sandbox. Executable agents, model agents and tsh operations share
// it, whether their calls run one after the other, beside each other, or again after
// a crash.
//
// What calls it has committed the call before and commits the result after it;
// docs/reference/run.md has the order.
package calls

import (
	"context"

	"cortexfs.org/ctxd/internal/broker"
	"cortexfs.org/ctxd/internal/run"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/effect"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/wire"
)

// Caller carries out the calls of one agent.
type Caller struct {
	Tools *toolrun.Runner
	Hooks Hooks // nil: there are none
	Log   *log.Logger

	grants broker.Broker
}

// Pending is a call about which admission has decided. One that was not refused may
// run when it was authorized. Close it.
type Pending struct {
	// Decision is the frame to record before the call is executed.
	Decision *wire.ToolPolicy
	call     toolrun.Call
	admitted *toolrun.Admitted // nil if it was refused
	permit   *broker.Permit    // nil until it was authorized
	looks    bool              // a hook is to look at it
	hooked   *HookCall         // what the hooks before it were told, nil if there are none
}

// Close gives back what a call that may run holds.
func (p *Pending) Close() {
	if p.admitted != nil {
		p.admitted.Close()
	}
}

// Observes reports whether the call may run beside others that do: it only
// looks at things, its tool says that calls of it may overlap, and nobody, no hook
// either, has to be asked about it, for whom the others would have to wait.
func (p *Pending) Observes() bool {
	return p.admitted != nil && !p.admitted.Asks() && !p.looks && p.admitted.Parallel() && observation(p.Decision.Effect)
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
	call.Loaded, call.Control, call.Watch = r.Loaded(), r.Control, r.Watch
	admitted, decision, err := c.Tools.Admit(call)
	if err != nil {
		return nil, err
	}
	p := &Pending{Decision: decision, call: call, admitted: admitted}
	if p.Observes() && c.Hooks != nil {
		p.looks = c.Hooks.Looks(admitted.Agent(), admitted.Intent().Path)
	}
	return p, nil
}

// Authorize takes a call that was not refused to where it may be executed, or to a
// refusal: what there is behind admission is asked now, a person among it. The
// decision is final then. An error means that there is none: the run is over.
func (c *Caller) Authorize(ctx context.Context, r *run.Run, p *Pending) error {
	g := gate{broker: &c.grants, ask: r.Ask}
	if c.Hooks != nil {
		g.pre = func(ctx context.Context, i effect.Intent, d effect.Digest) (bool, error) {
			p.hooked = &HookCall{Agent: p.admitted.Agent(), Call: p.call, Intent: i, Digest: d}
			return c.Hooks.Pre(ctx, *p.hooked)
		}
	}
	permit, no, err := g.pass(ctx, p.admitted)
	switch {
	case err != nil:
		return err
	case no != nil:
		p.refuse(no)
	default:
		p.allow(permit)
	}
	return nil
}

// refuse makes the decision one that refuses the call.
func (p *Pending) refuse(no *refusal) {
	p.Close()
	p.admitted = nil
	d := p.Decision
	d.Allowed, d.Authorization, d.Code, d.Reason = false, "", string(no.code), no.reason
}

// allow makes the decision one that allows the call.
func (p *Pending) allow(permit *broker.Permit) {
	p.permit = permit
	d := p.Decision
	if d.Allowed = true; p.admitted.Asks() {
		d.Authorization, d.Code, d.Reason = admit.ByApproval, "", ""
	}
}

// logRefusal tells people about a call that does not run.
func (c *Caller) logRefusal(r *run.Run, p *Pending) {
	c.Log.Info("refused", "session", r.Session, "run", r.ID, "tool", p.call.Name, "code", p.Decision.Code, "reason", p.Decision.Reason)
}

// Execute runs a call that was authorized and whose decision is durable. The
// result is to be committed whatever the error says; the error ends the run.
func (c *Caller) Execute(ctx context.Context, r *run.Run, p *Pending) (toolrun.Result, error) {
	fault.Point("calls.decided")
	res, err := p.admitted.Execute(ctx, p.permit)
	fault.Point("calls.executed")
	if err != nil {
		c.Log.Warn("call ended early", "session", r.Session, "run", r.ID, "tool", p.call.Name, "why", err.Error())
	}
	if p.hooked != nil && p.admitted.Begun() {
		failed := c.post(ctx, r, p, res.Status)
		if err == nil {
			err = failed
		}
	}
	return res, err
}

// post tells the hooks after a call of it. That one failed is recorded, and all that
// comes of it; the error is that it could not be.
func (c *Caller) post(ctx context.Context, r *run.Run, p *Pending, status string) error {
	var frames []wire.Frame
	for _, f := range c.Hooks.Post(ctx, *p.hooked, status) {
		f.Type, f.Call = "hook_failed", p.call.ID
		c.Log.Warn("hook failed", "session", r.Session, "run", r.ID, "tool", p.call.Name, "hook", f.Hook, "why", f.Reason)
		frames = append(frames, f)
	}
	if frames == nil {
		return nil
	}
	return r.Record(frames...)
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
	if p.admitted != nil {
		if err := c.Authorize(ctx, r, p); err != nil {
			return toolrun.Failure(NotStarted), err
		}
	}
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
