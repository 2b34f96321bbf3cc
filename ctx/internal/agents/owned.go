package agents

import (
	"context"
	"io"

	"cortexfs.org/ctx/internal/admin"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/adminwire"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/tree"
)

// newOwned has an agent made in a tree of root's.
func newOwned(ctx context.Context, from *caller.Caller, spec tree.AgentSpec, o NewOptions) error {
	r := adminwire.Request{
		Op: adminwire.New, Agent: spec.Name, Model: string(spec.Model), Perm: o.Perm,
		Tools: o.Tools, Native: o.Native, Mounts: o.Mounts, Allow: o.Allow,
	}
	if o.Owner != "" {
		r.Owner = &spec.Owner.UID
	}
	if spec.System != nil {
		text := string(spec.System)
		r.System = &text
	}
	var program io.Reader
	if spec.Exec != "" {
		f, err := tree.OpenExec(spec.Exec) // with the caller's rights, and nobody else's
		if err != nil {
			return err
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return errdefs.New(errdefs.IO, "program %s: %w", spec.Exec, err)
		}
		if st.Size() == 0 {
			return errdefs.New(errdefs.Invalid, "program %s: is empty", spec.Exec)
		}
		r.Program, program = st.Size(), io.LimitReader(f, st.Size())
	}
	return ask(ctx, from, r, program)
}

// ask asks ctxd admin, and passes on what it has to say.
func ask(ctx context.Context, from *caller.Caller, r adminwire.Request, program io.Reader) error {
	reply, err := admin.Ask(ctx, from.Layout, r, program)
	if err == nil && reply.Note != "" {
		from.Note(reply.Note)
	}
	return err
}

// Enable has the units of an agent made what its files ask for.
func Enable(ctx context.Context, from *caller.Caller, a libctx.Agent) error {
	return ask(ctx, from, adminwire.Request{Op: adminwire.Enable, Agent: a}, nil)
}
