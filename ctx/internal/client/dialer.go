package client

import (
	"context"
	"os"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
)

// Dialer reaches the agents of one tree.
type Dialer struct {
	Layout paths.Layout
	// Start brings up what listens for the tree's agents and calls try until an
	// attempt succeeds or there is no more hope. Nil: never start anything.
	Start func(ctx context.Context, a libctx.Agent, try func(context.Context) error) error
}

// Dial connects to an agent. An agent that does not exist is errdefs.NotFound;
// one nobody listens for is errdefs.Unavailable.
func (d Dialer) Dial(ctx context.Context, a libctx.Agent) (*Conn, error) {
	if err := d.exists(a); err != nil {
		return nil, err
	}
	var c *Conn
	try := func(ctx context.Context) (err error) {
		c, err = Connect(ctx, d.Layout.AgentLink(a))
		return err
	}
	err := try(ctx)
	if errdefs.Is(err, errdefs.Unavailable) {
		if d.Start == nil {
			return nil, errdefs.New(errdefs.Unavailable, "agent %s: nothing listens for it", a).
				WithHint("ctx agent enable %s, or whoever owns the tree runs ctxd serve --root %s", a, d.Layout.Root)
		}
		err = d.Start(ctx, a, try)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (d Dialer) exists(a libctx.Agent) error {
	if _, err := os.Lstat(d.Layout.Agents()); err != nil {
		return errdefs.New(errdefs.NotFound, "no tree at %s", d.Layout.Root).WithHint("make one: ctx init")
	}
	if _, err := os.Lstat(d.Layout.Control(a)); err != nil {
		if errdefs.Is(err, errdefs.NotFound) {
			return errdefs.New(errdefs.NotFound, "no agent %q", a).WithHint("ctx agent ls lists them")
		}
		return errdefs.New(errdefs.KindOf(err), "agent %s: %w", a, err)
	}
	return nil
}
