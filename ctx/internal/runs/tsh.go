package runs

import (
	"context"
	"fmt"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/wire"
)

// TshOptions are the flags of `ctx agent tsh`.
type TshOptions struct {
	Session   string
	Workspace string
	Cwd       string
	ID        string
	Raw       bool
	Approve   []string // as of SendOptions
}

// ExitError is the exit code of a tool, passed on. Everything there is to say
// has been said.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Tsh runs one tool with an agent's rights, without a model, and prints its
// result: inert on a terminal, byte for byte elsewhere.
func Tsh(ctx context.Context, from *caller.Caller, a libctx.Agent, args []string, o TshOptions) error {
	if err := wire.CheckArgs(args); err != nil {
		return err
	}
	t, err := prepare(from, a, o.Session, o.ID, o.Workspace, o.Approve)
	if err != nil {
		return err
	}
	t.raw = o.Raw
	err = t.drive(ctx, &wire.Tsh{ID: t.id, Session: t.session, Workspace: t.workspace, Cwd: o.Cwd, Args: args}, 0)
	if err != nil {
		return err
	}
	r := t.result
	if r == nil {
		return t.outcome()
	}
	// A refusal, or a call that could not be made, has no output; why is on
	// standard error.
	if t.end.Status != "error" && t.show.refusal == "" && !t.raw {
		if err := from.Exact(r.Content); err != nil {
			return err
		}
		if r.Truncated {
			from.Note(fmt.Sprintf("the result of %s is shortened", render.Size(int64(max(r.Bytes, len(r.Content))))))
		}
	}
	switch {
	case t.end.Status != "ok":
		return t.outcome()
	case r.ExitCode != nil && *r.ExitCode != 0:
		return ExitError(*r.ExitCode & 0xFF)
	case r.Status != "ok":
		return ExitError(1)
	}
	return t.outcome()
}
