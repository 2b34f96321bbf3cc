package daemon

import (
	"context"

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
	engine *engine.Engine
	boxes  *sandboxes
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
	switch {
	case err != nil:
		return err
	case a.Executable:
		return w.Host.Drive(ctx, a, r)
	}
	return w.engine.Drive(ctx, a, r)
}

// refusing is the worker of a server that can only refuse.
type refusing struct {
	run.Worker
	why error
}

// Load implements run.Worker.
func (r refusing) Load() (run.Agent, error) { return nil, r.why }
