// Package engine carries out the runs of a model agent: it asks a model, keeps
// its answer, carries out the tool calls in it, and asks again until an answer
// has none.
//
// What it does in which order, so that a run can be cancelled or its host die at
// any instant, is told in docs/reference/run.md. Decisions are pure functions
// (plan.go, candidates.go, history.go, request.go); this file and turn.go do what
// they say.
package engine

import (
	"context"

	"cortexfs.org/ctxd/internal/calls"
	"cortexfs.org/ctxd/internal/modelclient"
	"cortexfs.org/ctxd/internal/run"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/preamble"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
)

// Engine carries out the runs of one agent.
type Engine struct {
	Tools  *toolrun.Runner
	Calls  *calls.Caller
	Models *modelclient.Client
	Log    *log.Logger
}

// drive is one run on its way.
type drive struct {
	*Engine
	run    *run.Run
	around preamble.Surroundings
	told   *view.Agent // as the run found it: its prompt texts are those of the whole run

	answered libctx.Model  // the model's name that answered last, as the chain has it
	reach    int64         // bytes of the branch that the last request was made of
	noted    wire.Context  // the last one that was recorded
	wrote    chan struct{} // closed when the snapshots are written; nil before they are begun
	deaf     deaf
}

// Drive carries out a send to a model agent, which was read for it.
func (e *Engine) Drive(ctx context.Context, a *view.Agent, r *run.Run) error {
	d := &drive{Engine: e, run: r, told: a}
	d.look(a)
	defer d.wait()
	if err := d.replay(ctx, a); err != nil {
		return err
	}
	for range libctx.MaxTurns {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		// Every call has its result: what was said to the run meanwhile comes in.
		if err := r.Deliver(); err != nil {
			return err
		}
		next, err := d.turn(ctx)
		if err != nil {
			return err
		}
		switch next {
		case giveUp:
			return run.TurnLimit("the model calls tools although it may not, and says nothing")
		case end:
			if more, err := r.Close(); err != nil || !more {
				return err
			}
			d.deaf = deaf{} // it is told something new
		}
	}
	return run.TurnLimit("the model was asked %d times and still wants to go on", libctx.MaxTurns)
}

// replay gives results to the calls of a run whose host died that may be executed
// again.
func (d *drive) replay(ctx context.Context, a *view.Agent) error {
	carried, err := d.run.Carried()
	if err != nil || len(carried) == 0 {
		return err
	}
	var env []string
	if c, err := preamble.Check(d.Tools.Layout, a, a.Model); err == nil {
		env = c.Window.Env() // else the first request says what is wrong
	}
	return d.Calls.Replay(ctx, d.run, carried, env)
}

// load reads the agent's files anew.
func (e *Engine) load() (*view.Agent, error) { return view.Load(e.Tools.Layout, e.Tools.Agent) }
