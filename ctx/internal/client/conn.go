// Package client speaks to agent sockets: one connection carries requests as
// lines and answers with frames. It knows the framing, not what frames mean.
package client

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// Conn is one connection to an agent socket. Request may be called from any
// goroutine, Next from one. The caller closes it; Close ends a blocked Next.
type Conn struct {
	sock  *net.UnixConn
	lines *wire.Lines
	write sync.Mutex
}

// Connect reaches the socket at path, which may be a link. Nobody there is
// errdefs.Unavailable.
func Connect(ctx context.Context, path string) (*Conn, error) {
	sock, err := unixsock.Dial(ctx, path)
	if err != nil {
		return nil, err
	}
	return &Conn{sock: sock, lines: wire.NewLines(sock, libctx.MaxFrame)}, nil
}

// Close closes the connection. A private run goes on without it.
func (c *Conn) Close() error { return c.sock.Close() }

// Request sends one request. A request over the frame limit is errdefs.TooBig
// and is not sent. That the agent has closed the connection is for Next to
// tell: it may have said why.
func (c *Conn) Request(r wire.Request) error {
	line, err := wire.MarshalRequest(r)
	if err != nil {
		return err
	}
	if len(line) > libctx.MaxFrame {
		return errdefs.New(errdefs.TooBig, "request of %d bytes is over the limit of %d", len(line), libctx.MaxFrame)
	}
	c.write.Lock()
	defer c.write.Unlock()
	_, err = c.sock.Write(line)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return nil // the agent closed; Next has its last words, or says so
	}
	if err != nil {
		return errdefs.New(errdefs.Interrupted, "connection to the agent lost: %w", err)
	}
	return nil
}

// Next reads one frame: the line without its LF, valid until the next call, and
// what it says. The end of the stream is errdefs.Interrupted, a line that is
// not a frame errdefs.Protocol.
func (c *Conn) Next() ([]byte, wire.Frame, error) {
	line, err := c.lines.Next()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, wire.ErrTorn), errors.Is(err, net.ErrClosed):
		return nil, nil, errdefs.New(errdefs.Interrupted, "the agent's process closed the connection")
	case errdefs.Is(err, errdefs.TooBig):
		return nil, nil, errdefs.New(errdefs.Protocol, "answer of the agent: %w", err)
	case err != nil:
		return nil, nil, errdefs.New(errdefs.Interrupted, "connection to the agent lost: %w", err)
	}
	f, err := wire.DecodeFrame(line)
	if err != nil {
		return nil, nil, errdefs.New(errdefs.Protocol, "answer of the agent: %w", err)
	}
	return line, f, nil
}

// Ask sends a request that has one answer and returns it; an error frame comes
// back as an error of its code.
func (c *Conn) Ask(r wire.Request) ([]byte, wire.Frame, error) {
	if err := c.Request(r); err != nil {
		return nil, nil, err
	}
	line, f, err := c.Next()
	if err != nil {
		return nil, nil, err
	}
	if e, ok := f.(*wire.Error); ok {
		return line, nil, FrameError(e)
	}
	return line, f, nil
}

// FrameError is an error frame as an error of its code.
func FrameError(e *wire.Error) error { return errdefs.New(e.Code, "%s", e.Message) }
