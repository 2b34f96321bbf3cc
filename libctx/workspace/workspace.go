// Package workspace turns the directory a human works in into what a sandbox
// may show of it: the directory itself, writable, and below it what must not be
// changed. All of it is looked up with the rights of the agent's identity, and
// nothing is ever created on the host.
package workspace

import (
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/sandbox"
)

// Resolve checks that dir can be the workspace of an agent with identity id and
// says how to show it. dir is absolute and may lead through symbolic links.
// protected are host directories that the workspace must not be, contain, lie
// in or lead to; protect are lines of the agent's protect control, relative to
// the workspace. Errors name dir: errdefs.Invalid (refused), errdefs.NotFound
// (not there), errdefs.Denied (id may not enter it).
func Resolve(dir string, id asuser.Identity, protected, protect []string) (sandbox.Workspace, error) {
	return sandbox.Workspace{}, errdefs.New(errdefs.Unsupported, "workspace %q: not offered yet", dir)
}
