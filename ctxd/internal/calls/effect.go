package calls

import "cortexfs.org/libctx/control"

// observation are the classes of calls that may overlap: those that change
// nothing. That a call may overlap does not mean that it may be repeated after a
// crash: what it read of the host may have changed.
func observation(class string) bool {
	switch control.Effect(class) {
	case control.Pure, control.WorkspaceRead, control.HostRead:
		return true
	}
	return false
}
