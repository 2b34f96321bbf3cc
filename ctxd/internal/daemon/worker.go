package daemon

import (
	"context"

	"cortexfs.org/ctxd/internal/capsock"
	"cortexfs.org/ctxd/internal/changes"
	"cortexfs.org/ctxd/internal/engine"
	"cortexfs.org/ctxd/internal/host"
	"cortexfs.org/ctxd/internal/run"
	"cortexfs.org/libctx/view"
)

// worker carries out the runs of an agent: an executable agent's by its host, a
// model agent's by the engine. Which of them an agent is may change between two
// runs.
type worker struct {
	*host.Host
	engine       *engine.Engine
	boxes        *sandboxes
	capabilities *capsock.Keeper
	changes      changes.Tracker
}

// Load implements run.Worker.
func (w *worker) Load() (run.Agent, error) {
	if err := w.boxes.ready(); err != nil {
		return nil, err
	}
	return w.Host.Load()
}

// Drive implements run.Worker.
func (w *worker) Drive(ctx context.Context, r *run.Run) error {
	a, err := view.Load(w.Tools.Layout, w.Tools.Agent)
	if err != nil {
		return err
	}
	return w.begin(r, func() error {
		if a.Executable {
			return w.Host.Drive(ctx, a, r)
		}
		if !r.ToolFree {
			w.Tools.Foresee(a, r.Places.Workspace, r.Control.Path()) // while the model thinks
		}
		return w.engine.Drive(ctx, a, r)
	})
}

// Tool implements run.Worker.
func (w *worker) Tool(ctx context.Context, r *run.Run) error {
	return w.begin(r, func() error { return w.Host.Tool(ctx, r) })
}

// begin carries out a run, and says at its end what it changed.
func (w *worker) begin(r *run.Run, work func() error) error {
	r.Watch = w.changes.Watch(r.Places.Ground)
	err := w.capable(r, work)
	c := r.Watch.End()
	if c == nil {
		return err
	}
	if failed := r.Conclude(c); err == nil {
		err = failed
	}
	return err
}

// capable carries out a run with its capability.
func (w *worker) capable(r *run.Run, work func() error) error {
	c, err := w.capabilities.Open(r.Session, r.ID, r.Record)
	if err != nil {
		return err
	}
	defer c.Close()
	r.Control = c
	return work()
}

// refusing is the worker of a server that can only refuse.
type refusing struct {
	run.Worker
	why error
}

// Load implements run.Worker.
func (r refusing) Load() (run.Agent, error) { return nil, r.why }
