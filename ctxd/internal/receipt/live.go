package receipt

import (
	"context"
	"net"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/supervise"
	"cortexfs.org/libctx/terminal"
)

// Live lists the ids of the session's live terminals: there is a receipt, its
// process is the one that runs, and its socket takes connections. The supervisor
// is not asked; whoever would stop one does.
func (k *Keeper) Live(ctx context.Context, s libctx.Session) []string {
	c, _, err := k.dial(ctx, s)
	if err != nil {
		return nil
	}
	c.Close()
	return []string{terminal.ID(k.Agent, s)}
}

// Dial connects to the session's live terminal; errdefs.NotFound if there is
// none, or if it was started so as not to show what the agent does. The caller
// closes the connection.
func (k *Keeper) Dial(ctx context.Context, s libctx.Session) (net.Conn, error) {
	c, m, err := k.dial(ctx, s)
	if err != nil {
		return nil, errdefs.New(errdefs.NotFound, "no live terminal: %w", err)
	}
	if !m.Emit {
		c.Close()
		return nil, errdefs.New(errdefs.NotFound, "terminal of session %s: shows no calls", s)
	}
	return c, nil
}

// dial connects to what a stored receipt proves, as far as the kernel knows.
func (k *Keeper) dial(ctx context.Context, s libctx.Session) (*net.UnixConn, terminal.Meta, error) {
	r, m, err := k.stored(s)
	if err != nil {
		return nil, m, err
	}
	t := r.Terminal
	if _, err = k.layoutOf(s, t.Socket.Path); err != nil {
		return nil, m, err
	}
	if err = supervise.Alive(instance(t)); err != nil {
		return nil, m, err
	}
	ctx, cancel := context.WithTimeout(ctx, libctx.TermHello)
	defer cancel()
	c, err := k.connect(ctx, t)
	return c, m, err
}
