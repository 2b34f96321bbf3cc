package server

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"cortexfs.org/ctxd/internal/approval"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// lastWords bounds how long a connection that is being closed waits for its
// client to take what is written already.
const lastWords = 2 * time.Second

// lastGlance is the same for what the client may have sent already, when the
// whole process is about to end.
const lastGlance = 50 * time.Millisecond

// conn is one client. Its reader is the goroutine of serve, its writer drains
// the outbox; streams are the runs and replays it still gets frames of.
type conn struct {
	sock    *net.UnixConn
	out     *outbox
	gone    context.Context // ends when the client is gone
	leave   context.CancelFunc
	streams sync.WaitGroup
	asked   approval.Board // what is to be answered over it
	mu      sync.Mutex
	open    int
}

// Push, Note, Write, Gone, Hold and Asked are what package run needs of a client.

// Push takes a line if there is room and never waits.
func (c *conn) Push(line []byte) bool { return c.out.try(line) }

// Note takes a short line whatever waits already.
func (c *conn) Note(line []byte) { c.out.force(line) }

// Write waits for room.
func (c *conn) Write(ctx context.Context, line []byte) error { return c.out.put(ctx, line) }

// Gone ends when the client has closed its connection or can not be written to.
func (c *conn) Gone() context.Context { return c.gone }

// Hold keeps the connection open for one stream of frames until release.
func (c *conn) Hold() (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= libctx.MaxStreams {
		return nil, errdefs.New(errdefs.Busy, "this connection already waits for %d runs", c.open)
	}
	c.open++
	c.streams.Add(1)
	return sync.OnceFunc(func() {
		c.mu.Lock()
		c.open--
		c.mu.Unlock()
		c.streams.Done()
	}), nil
}

// Asked is the questions that are open on this connection.
func (c *conn) Asked() *approval.Board { return &c.asked }

// answer writes one frame that answers a request. What was done is also said
// when the server has come to its end meanwhile.
func (c *conn) answer(ctx context.Context, f wire.Frame) error {
	line, err := wire.MarshalFrame(f)
	if err != nil {
		return err
	}
	if err = c.out.put(ctx, line); err != nil && ctx.Err() != nil {
		c.out.force(line)
		return nil
	}
	return err
}

// refuse writes an error as the answer. The text is bounded and clean whatever
// it quotes.
func (c *conn) refuse(err error) {
	text, _ := wire.Clip(wire.Clean([]byte(err.Error())), 4096)
	line, merr := wire.MarshalFrame(&wire.Error{
		Head: wire.Head{Type: "error"}, Code: errdefs.KindOf(err), Message: text,
	})
	if merr == nil {
		c.out.force(line)
	}
}

// serve reads requests until the client ends, then waits for its streams, so
// that a client may close its writing half and still get every frame.
func (c *conn) serve(ctx context.Context, handle func(context.Context, *conn, []byte) error) {
	var writer sync.WaitGroup
	writer.Go(func() {
		c.out.drain(c.sock)
		c.leave()
	})
	stop := context.AfterFunc(ctx, func() { c.sock.SetReadDeadline(time.Now()) })
	lines := wire.NewLines(c.sock, libctx.MaxFrame)
	for {
		line, err := lines.Next()
		if err == nil {
			err = handle(ctx, c, line)
			if err == nil {
				continue
			}
			c.refuse(err)
			continue
		}
		switch {
		case errors.Is(err, wire.ErrTorn):
			c.refuse(errdefs.New(errdefs.Invalid, "the last request has no newline"))
		case errdefs.Is(err, errdefs.TooBig):
			c.refuse(errdefs.New(errdefs.TooBig, "request is longer than %d bytes", libctx.MaxFrame))
		case !errors.Is(err, io.EOF) && ctx.Err() == nil:
			c.leave()
		}
		break
	}
	stop()
	c.asked.Mute()
	c.awaitStreams(ctx)
	c.out.close()
	c.sock.SetWriteDeadline(time.Now().Add(lastWords))
	writer.Wait()
	c.leave()
	c.linger(ctx)
}

// linger closes the connection so that the client reads what was written and
// then a clean end: closing over unread input would reset it.
func (c *conn) linger(ctx context.Context) {
	patience := lastWords
	if ctx.Err() != nil {
		patience = lastGlance
	}
	c.sock.CloseWrite()
	c.sock.SetReadDeadline(time.Now().Add(patience))
	io.Copy(io.Discard, c.sock)
	c.sock.Close()
}

// awaitStreams waits until no run owes this client frames. A client that hangs
// up entirely is noticed and no longer waited for.
func (c *conn) awaitStreams(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		c.streams.Wait()
		close(done)
	}()
	hangup := make(chan struct{})
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err == nil {
		go func() {
			defer close(hangup)
			awaitHangup(c.sock, wake)
		}()
	}
	select {
	case <-done:
	case <-hangup:
		c.out.fail(io.ErrClosedPipe)
		c.leave()
		<-done
	case <-ctx.Done():
		<-done // runs are being cancelled; their last frames still go out
	}
	if err == nil {
		unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		<-hangup
		unix.Close(wake)
	}
}

// awaitHangup returns when the peer has closed both directions, or when wake
// becomes readable.
func awaitHangup(sock *net.UnixConn, wake int) {
	// A duplicate, so that the number can not be reused under us. (Not
	// sock.File: its Fd would make the connection itself blocking.)
	fd := -1
	raw, err := sock.SyscallConn()
	if err == nil {
		err = raw.Control(func(s uintptr) { fd, err = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0) })
	}
	if err != nil || fd < 0 {
		return
	}
	defer unix.Close(fd)
	fds := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(wake), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
