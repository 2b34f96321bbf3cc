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
}

// Drive implements run.Worker.
func (w *worker) Drive(ctx context.Context, r *run.Run) error {
	a, err := view.Load(w.Tools.Layout, w.Tools.Agent)
	switch {
	case err != nil:
		return err
	case a.Executable:
		return w.Host.Drive(ctx, r)
	}
	if !r.ToolFree {
		w.Tools.Foresee(a, r.Places.Workspace) // while the model thinks
	}
	return w.engine.Drive(ctx, r)
}
