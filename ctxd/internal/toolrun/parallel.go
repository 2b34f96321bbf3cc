package toolrun

// Parallel reports whether the call's tool says that its calls may overlap. A
// builtin of the shell may change what the next one finds, so none does.
func (a *Admitted) Parallel() bool { return a.words == nil && a.tool.Parallel }
