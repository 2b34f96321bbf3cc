// Package modelclient is the way to ctxmodel, the process that talks to model
// providers: the model socket, or where nobody serves one a ctxmodel of our own
// over a socketpair. A request has a connection of its own; closing it cancels
// the request. docs/reference/model.md describes what goes over it.
package modelclient

import (
	"context"
	"io"
	"net"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/wire"
)

// Client asks models. Make it with New.
type Client struct {
	layout  paths.Layout
	program string // of ctxmodel, "" if it is not installed
	private private
}

// New makes a client for the models of a tree. Program is ctxmodel's path, "" if
// there is none. Close it.
func New(l paths.Layout, program string) *Client {
	return &Client{layout: l, program: program}
}

// Close ends the processes of our own and waits for them. Requests must be over.
func (c *Client) Close() { c.private.close() }

// Answer is the answer to one request as it comes. Close it.
type Answer struct {
	conn   *net.UnixConn
	lines  *wire.Lines
	stream modelwire.Stream
	ctx    context.Context
	stop   func() bool // of closing the connection with the context
	end    func()      // of what was started for it, may be nil
}

// Generate sends a request. When the context ends the connection closes at once
// and Next returns the context's cause. Errors: errdefs.Unavailable if no
// ctxmodel is to be had, errdefs.Invalid or errdefs.TooBig for a request that is
// none; nothing has reached a provider then.
func (c *Client) Generate(ctx context.Context, g *modelwire.Generate) (*Answer, error) {
	line, err := modelwire.MarshalRequest(g)
	if err != nil {
		return nil, err
	}
	conn, end, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	a := &Answer{conn: conn, lines: wire.NewLines(conn, libctx.MaxModelFrame), ctx: ctx, end: end}
	a.stop = context.AfterFunc(ctx, func() { conn.Close() })
	// A server that refuses answers before it has read everything: that the
	// request could not be written whole is its answer's to explain.
	if _, err := conn.Write(line); err != nil && ctx.Err() != nil {
		a.Close()
		return nil, context.Cause(ctx)
	}
	return a, nil
}

// connect reaches the model socket, or a ctxmodel of our own. In system mode
// there is none of our own: it would have root's rights and the network.
func (c *Client) connect(ctx context.Context) (*net.UnixConn, func(), error) {
	conn, err := unixsock.Dial(ctx, c.layout.ModelSocket())
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if err == nil || !errdefs.Is(err, errdefs.Unavailable) {
		return conn, nil, err
	}
	switch {
	case c.program == "":
		return nil, nil, errdefs.New(errdefs.Unavailable, "models: ctxmodel is not installed")
	case c.layout.System:
		return nil, nil, errdefs.New(errdefs.Unavailable, "models: nobody serves %s", c.layout.ModelSocket()).
			WithHint("start ctxd serve, or the unit ctxmodel.socket")
	}
	return c.private.start(c.program, c.layout)
}

// Next is the next frame of the answer; io.EOF comes after the done frame alone.
// Errors: the cause of the context that ended; errdefs.Protocol for what is no
// answer; errdefs.Provider for one that ends too early, since ctxmodel died.
func (a *Answer) Next() (modelwire.Frame, error) {
	if a.stream.Done() {
		return nil, io.EOF
	}
	line, err := a.lines.Next()
	if a.ctx.Err() != nil {
		return nil, context.Cause(a.ctx)
	}
	switch {
	case errdefs.Is(err, errdefs.TooBig):
		return nil, errdefs.New(errdefs.Protocol, "models: %w", err)
	case err != nil:
		return nil, errdefs.New(errdefs.Provider, "models: the connection ended before the answer did")
	}
	f, err := a.stream.Next(line)
	if err != nil {
		return nil, errdefs.New(errdefs.Protocol, "models: %w", err)
	}
	return f, nil
}

// Close ends the request if it is not over, and waits for what was started for
// it.
func (a *Answer) Close() {
	a.stop()
	a.conn.Close()
	if a.end != nil {
		a.end()
	}
}
