package toolrun

import "cortexfs.org/libctx/control"

// Parallel reports whether the call's tool says that its calls may overlap. A
// builtin of the shell may change what the next one finds, so none does.
func (a *Admitted) Parallel() bool { return a.words == nil && a.tool.Parallel }

// Replayable reports whether the call may be executed again after its host died:
// its tool says that calls of it may be repeated, and this one, by its exact
// arguments, only reads what belongs to the run. What a person allowed was allowed
// once.
func (a *Admitted) Replayable() bool {
	return a.words == nil && !a.asks && a.tool.Replay && (a.effect == control.Pure || a.effect == control.WorkspaceRead)
}
