package calls

import (
	"context"

	"cortexfs.org/ctxd/internal/run"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/session"
)

// Replayable asks admission whether a call that a dead host left may be executed
// again, with the agent's files read afresh. Nothing is recorded of it.
func (c *Caller) Replayable(s libctx.Session, call session.OpenCall) bool {
	again := repeated(call, nil)
	again.Session, again.Run = s, call.Run
	admitted, _, err := c.Tools.Admit(again)
	if err != nil || admitted == nil {
		return false
	}
	defer admitted.Close()
	return admitted.Replayable()
}

// Replay begins a run with the calls that were carried into it. Each is decided
// about anew, and executed where its own run worked; one that may not be
// executed any more gets a result that says that its outcome is unknown, or that
// it never began. The error ends the run.
func (c *Caller) Replay(ctx context.Context, r *run.Run, carried []session.OpenCall, env []string) error {
	list := make([]lostCall, len(carried))
	for i, call := range carried {
		list[i] = lostCall{repeated(call, env), call.Lost()}
	}
	return replay(ctx, &desk{c, r}, list)
}

func repeated(c session.OpenCall, env []string) toolrun.Call {
	return toolrun.Call{ID: c.Call, Name: c.Name, Arguments: c.Arguments, Workspace: c.Workspace, Cwd: c.Cwd, Env: env}
}

// lostCall is a call that was carried into a run, and what its result says if it
// is not executed any more.
type lostCall struct {
	toolrun.Call
	sentence string
}

// replay is Replay. What it leaves without a result the end of the run settles.
func replay(ctx context.Context, at counter, list []lostCall) error {
	for _, call := range list {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := again(ctx, at, call); err != nil {
			return err
		}
	}
	return nil
}

// again takes one call to its result.
func again(ctx context.Context, at counter, lost lostCall) error {
	call, unknown := lost.Call, []settled{{lost.Call, toolrun.Failure(lost.sentence)}}
	if at.finishing() {
		return at.commit(nil, unknown)
	}
	t, err := at.decide(call)
	if err != nil {
		return err
	}
	defer t.Close()
	if _, refused := t.Refusal(); refused || !t.Replayable() {
		return at.commit(nil, unknown)
	}
	if err := at.authorize(ctx, t); err != nil {
		return err
	}
	if _, refused := t.Refusal(); refused {
		return at.commit(nil, unknown)
	}
	if err := at.commit([]ticket{t}, nil); err != nil {
		return err
	}
	return together(ctx, at, []ready{{t, call}})
}
