// Package models is what ctx does with models: list and show them, name them,
// and run one once, over the model socket.
package models

import (
	"context"
	"io"
	"net"

	"cortexfs.org/ctx/internal/activator"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/wire"
)

// Answer is the answer to one request as it comes. The one who asked closes it.
type Answer struct {
	conn   *net.UnixConn
	lines  *wire.Lines
	stream modelwire.Stream
	ctx    context.Context
	end    func()
}

// Ask sends a request to whatever serves the tree's models, and starts that if
// it is not there and the tree is the caller's own. The caller's Ctrl+C cancels
// the request; so does the end of the context.
func Ask(ctx context.Context, from *caller.Caller, r modelwire.Request) (*Answer, error) {
	line, err := modelwire.MarshalRequest(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	interrupts, stop := from.Interrupts()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-interrupts:
			cancel(caller.ErrInterrupt)
		case <-ctx.Done():
		}
	}()
	a := &Answer{ctx: ctx, stream: modelwire.Stream{Op: r.Op()}}
	a.end = func() {
		cancel(nil)
		<-watched
		stop()
	}
	if a.conn, err = dial(ctx, from); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		a.end()
		return nil, err
	}
	a.lines = wire.NewLines(a.conn, libctx.MaxModelFrame)
	context.AfterFunc(ctx, func() { a.conn.Close() })
	// A server that refuses answers before it has read everything: that the
	// request could not be written whole is its answer's to explain.
	_, _ = a.conn.Write(line)
	return a, nil
}

// Next is the next frame with its line, without LF and valid until the next
// call; io.EOF comes after the done frame alone. Errors: caller.ErrInterrupt
// after Ctrl+C; errdefs.Protocol for what is no answer; errdefs.Interrupted for
// one that ends too early.
func (a *Answer) Next() ([]byte, modelwire.Frame, error) {
	if a.stream.Done() {
		return nil, nil, io.EOF
	}
	line, err := a.lines.Next()
	switch {
	case a.ctx.Err() != nil:
		return nil, nil, context.Cause(a.ctx)
	case errdefs.Is(err, errdefs.TooBig):
		return nil, nil, errdefs.New(errdefs.Protocol, "answer of the model: %w", err)
	case err != nil:
		return nil, nil, errdefs.New(errdefs.Interrupted, "ctxmodel closed the connection before the answer was complete")
	}
	f, err := a.stream.Next(line)
	if err != nil {
		return nil, nil, errdefs.New(errdefs.Protocol, "answer of the model: %w", err)
	}
	return line, f, nil
}

// Close ends the request if it is not over.
func (a *Answer) Close() {
	a.end()
	a.conn.Close()
}

// dial reaches the model socket.
func dial(ctx context.Context, from *caller.Caller) (*net.UnixConn, error) {
	l := from.Layout
	var c *net.UnixConn
	try := func(ctx context.Context) (err error) {
		c, err = unixsock.Dial(ctx, l.ModelSocket())
		return err
	}
	err := try(ctx)
	if !errdefs.Is(err, errdefs.Unavailable) {
		return c, err
	}
	if !activator.Own(l) {
		return nil, errdefs.New(errdefs.Denied, "the models of this tree are its owner's to run").
			WithHint("ask an agent of yours, or make a tree of your own: ctx init --root DIR")
	}
	v := activator.Activator{Layout: l, Exe: from.Config.Exe, Env: from.Config.Daemon}
	err = v.StartModels(ctx, try)
	if errdefs.Is(err, errdefs.Unavailable) && errdefs.HintOf(err) == "" {
		err = errdefs.New(errdefs.Unavailable, "models: %w", err).
			WithHint("the log of ctxd serve may say why: %s", l.ServeLog())
	}
	return c, err
}
