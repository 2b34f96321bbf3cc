package receipt

import (
	"context"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/supervise"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/unixsock"
)

// Live lists the ids of the session's live terminals: there is a receipt, its
// process is the one that runs, and its socket takes connections. The supervisor
// is not asked; whoever would stop one does.
func (k *Keeper) Live(ctx context.Context, s libctx.Session) []string {
	r, _, err := k.live(ctx, s)
	if err != nil {
		return nil
	}
	return []string{terminal.ID(k.Agent, r.Terminal.Session)}
}

func (k *Keeper) live(ctx context.Context, s libctx.Session) (terminal.Receipt, terminal.Meta, error) {
	r, m, err := k.stored(s)
	if err != nil {
		return r, m, err
	}
	if _, err = k.layoutOf(s, r.Terminal.Socket.Path); err != nil {
		return r, m, err
	}
	if err = supervise.Alive(instance(r.Terminal)); err != nil {
		return r, m, err
	}
	ctx, cancel := context.WithTimeout(ctx, libctx.TermHello)
	defer cancel()
	c, err := unixsock.Dial(ctx, r.Terminal.Socket.Path)
	if err != nil {
		return r, m, err
	}
	return r, m, c.Close()
}
