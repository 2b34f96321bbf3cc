package attach

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/wire"
)

// conn is one connection to a terminal. Lines of at most maxQueued requests wait
// for a terminal that does not take them; one goroutine sends them, one reads.
type conn struct {
	sock  *net.UnixConn
	lines *wire.Lines
	queue chan []byte
	sent  chan struct{} // closed when the sender has ended
	hello *termwire.Hello
	last  *termwire.Error // what the terminal had against a request
}

// maxQueued is how many requests wait for a terminal whose program does not read.
const maxQueued = 64

// dial connects to the first socket that answers and asks for what first says.
// Nobody there is errdefs.Unavailable, a terminal that does not let this process
// in errdefs.Denied. The caller closes the connection.
func dial(ctx context.Context, o Options, first termwire.Request) (*conn, error) {
	for _, path := range o.Sockets {
		sock, err := unixsock.Dial(ctx, path)
		if errdefs.Is(err, errdefs.Unavailable) || errdefs.Is(err, errdefs.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c := &conn{sock: sock, lines: wire.NewLines(sock, libctx.MaxFrame), queue: make(chan []byte, maxQueued), sent: make(chan struct{})}
		if err := c.begin(o, first); err != nil {
			sock.Close()
			return nil, err
		}
		go c.send()
		return c, nil
	}
	return nil, errdefs.New(errdefs.Unavailable, "terminal %s: nothing listens at %s", o.Name, strings.Join(o.Sockets, " or ")).
		WithHint("%s", o.Hint)
}

// begin sends the first line and waits for its answer.
func (c *conn) begin(o Options, first termwire.Request) error {
	line, err := termwire.MarshalRequest(first)
	if err != nil {
		return err
	}
	c.sock.SetDeadline(time.Now().Add(libctx.TermHello))
	defer c.sock.SetDeadline(time.Time{})
	_, writeErr := c.sock.Write(line) // a terminal that refuses may have closed, and said why
	f, err := c.next()
	switch {
	case errdefs.Is(err, errdefs.Timeout):
		return errdefs.New(errdefs.Unavailable, "terminal %s: does not answer", o.Name)
	case err != nil && writeErr != nil:
		return errdefs.New(errdefs.Unavailable, "terminal %s: %w", o.Name, writeErr)
	case err != nil:
		return errdefs.New(errdefs.KindOf(err), "terminal %s: %w", o.Name, err)
	}
	switch f := f.(type) {
	case *termwire.Hello:
		c.hello = f
		return nil
	case *termwire.Error:
		return refused(o, f)
	}
	return errdefs.New(errdefs.Protocol, "terminal %s: began with %s", o.Name, f.Kind())
}

// refused is what a terminal says to a client it does not let in.
func refused(o Options, e *termwire.Error) error {
	err := errdefs.New(e.Code, "terminal %s: %s", o.Name, e.Message)
	if e.Code == errdefs.Denied {
		err.Hint = "a terminal can not be joined from inside of itself, and only by its owner"
	}
	return err
}

// next reads one frame. The end of the connection is errdefs.Unavailable.
func (c *conn) next() (termwire.Frame, error) {
	line, err := c.lines.Next()
	var slow net.Error
	switch {
	case errors.As(err, &slow) && slow.Timeout():
		return nil, errdefs.New(errdefs.Timeout, "no answer")
	case errdefs.Is(err, errdefs.TooBig):
		return nil, errdefs.New(errdefs.Protocol, "answer of the terminal: %w", err)
	case err != nil:
		return nil, errdefs.New(errdefs.Unavailable, "connection lost")
	}
	f, err := termwire.DecodeFrame(line)
	if err != nil {
		return nil, errdefs.New(errdefs.Protocol, "answer of the terminal: %w", err)
	}
	return f, nil
}

// request queues a request; false if too many wait.
func (c *conn) request(r termwire.Request) bool {
	line, err := termwire.MarshalRequest(r)
	if err != nil {
		return false
	}
	select {
	case c.queue <- line:
		return true
	default:
		return false
	}
}

// send sends what is queued until the queue or the connection is closed.
func (c *conn) send() {
	defer close(c.sent)
	for line := range c.queue {
		if _, err := c.sock.Write(line); err != nil {
			return // the reader tells
		}
	}
}

// close sends what is queued, if the terminal takes it soon, and ends the
// connection, and with it a blocked next.
func (c *conn) close() {
	close(c.queue)
	c.sock.SetWriteDeadline(time.Now().Add(patience))
	<-c.sent
	c.sock.Close()
}
