package toolrun

import (
	"path"
	"strconv"
	"strings"

	"cortexfs.org/ctxd/internal/changes"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/control"
)

// Reach is what of the workspace the call can change. Of a file tool of the suite
// that is one path, of a call that only looks nothing, of everything else whatever
// the agent may write to.
func (a *Admitted) Reach() changes.Reach {
	switch a.effect {
	case control.Pure, control.WorkspaceRead, control.HostRead:
		return changes.Reach{}
	}
	call := a.inner
	call.Cwd = a.call.Cwd
	if a.words != nil {
		return changes.Reach{}
	}
	if !a.tool.BuiltIn() {
		return changes.Reach{Anything: true}
	}
	if a.tool.Name == "agent.update" || admit.OnlyLooks(a.tool.Tool, call) {
		return changes.Reach{}
	}
	if p, ok := admit.Changes(a.tool.Tool, call); ok {
		if strings.HasPrefix(p, `"`) { // as the file tools print names that are not plain
			var err error
			if p, err = strconv.Unquote(p); err != nil {
				return changes.Reach{} // they refuse it
			}
		}
		if !path.IsAbs(p) {
			p = path.Join(call.Cwd, p)
		}
		return changes.Reach{Path: p}
	}
	return changes.Reach{Anything: true}
}
