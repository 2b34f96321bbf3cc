package toolrun

import (
	"cortexfs.org/ctxd/internal/broker"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/effect"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// Admitted is a call that nothing is against, but that a person may have to allow:
// Asks tells. Close it.
type Admitted struct {
	runner *Runner
	call   Call
	agent  *view.Agent
	tool   *view.Tool
	inner  admit.Call
	via    libctx.Tool
	effect control.Effect
	asks   bool
	words  []string // of a builtin of the shell, which needs no sandbox
	store  toolshell.Store
	begun  bool // its permit was used up
}

// judgement is what admission says of a call with the files of this moment. Its
// tool is nil if the words of the call name none.
type judgement struct {
	agent *view.Agent
	tool  *view.Tool
	inner admit.Call
	admit.Decision
}

// close gives the tool back.
func (j judgement) close() {
	if j.tool != nil {
		j.tool.Close()
	}
}

// open reports whether nothing is against the call, or nothing but that a person
// has to allow it.
func (j judgement) open() bool { return j.Allowed || j.Ask }

func asked(c Call) admit.Call {
	return admit.Call{Name: c.Name, Arguments: c.Arguments, Direct: true, Session: c.Session, Cwd: c.Cwd}
}

// judge reads the agent and the tool and asks admission.
func (r *Runner) judge(c Call) (j judgement, err error) {
	if j.agent, err = view.Load(r.Layout, r.Agent); err != nil {
		return j, err
	}
	var unroutable error
	var facts admit.Tool
	if j.inner, _, unroutable = admit.Route(asked(c)); unroutable == nil {
		if j.tool, err = j.agent.Lookup(r.Layout, j.inner.Name); err != nil {
			return j, err
		}
		facts = j.tool.Tool
	}
	j.Decision = admit.Decide(j.agent.Facts(), facts, asked(c))
	return j, nil
}

// Admit decides about a call. The frame is the decision to record; a refused
// call has no Admitted. One that a person has to allow has both: its frame refuses
// it, as long as nobody does. An error means that there is no decision, because the
// agent's own files are refused.
func (r *Runner) Admit(c Call) (*Admitted, *wire.ToolPolicy, error) {
	j, err := r.judge(c)
	if err != nil {
		return nil, nil, err
	}
	frame := &wire.ToolPolicy{
		Head: wire.Head{Type: "tool_policy"}, Call: c.ID, Allowed: j.Allowed, Via: j.Via,
		Effect: string(j.Effect), Authorization: j.Authorization, Code: string(j.Code), Reason: j.Reason,
		Policy: effective(j.agent),
	}
	if j.Via != "" {
		frame.Name = j.Name
	}
	if !j.open() {
		j.close()
		return nil, frame, nil
	}
	return &Admitted{
		runner: r, call: c, agent: j.agent, tool: j.tool, inner: j.inner, via: j.Via, effect: j.Effect, asks: j.Ask,
		words: admit.Builtin(asked(c)), store: r.store(j.agent, c.Session, c.Loaded),
	}, frame, nil
}

// Close gives back what the admitted call holds.
func (a *Admitted) Close() { a.tool.Close() }

// Asks reports whether a person has to allow the call.
func (a *Admitted) Asks() bool { return a.asks }

// Agent is the agent as admission saw it.
func (a *Admitted) Agent() *view.Agent { return a.agent }

// Begun reports whether the call was begun: what it does may have been done.
func (a *Admitted) Begun() bool { return a.begun }

// Name is the tool that would run, of a call through tsh the one inside.
func (a *Admitted) Name() libctx.Tool { return a.inner.Name }

// Arguments are those of the tool that would run.
func (a *Admitted) Arguments() jsontext.Value { return a.inner.Arguments }

// Effect is the class of the call.
func (a *Admitted) Effect() control.Effect { return a.effect }

// Intent is what the call is about to do, made of what would be started and
// nothing else.
func (a *Admitted) Intent() effect.Intent {
	return effect.Intent{
		Principal: a.agent.Subject, UID: a.agent.Owner.UID, Session: a.call.Session, Run: a.call.Run, Call: a.call.ID,
		Via: a.via, Tool: a.inner.Name, Path: a.tool.Path, Effect: a.effect, Policy: a.agent.Effects,
		Workspace: a.call.Workspace, Cwd: a.call.Cwd, Arguments: a.inner.Arguments,
	}
}

// Stands asks admission once more, with the files of this moment: whether the call
// would still be let pass, or be left to a person as it was. The tool that runs is
// the one that was opened, whatever has its name now.
func (a *Admitted) Stands() bool {
	if fault.Off("toolrun:stands") {
		return true
	}
	j, err := a.runner.judge(a.call)
	defer j.close()
	return err == nil && (j.Allowed || j.Ask && a.asks) && j.Effect == a.effect
}

// notBegun is the result of a call that has no permit.
var notBegun = Failure(admit.CommitDenied.Sentence())

// begins uses up the permit. It is for the call as it would be started now.
func (a *Admitted) begins(permit *broker.Permit) bool {
	a.begun = permit.Use(a.Intent().Digest()) == nil
	return a.begun
}
