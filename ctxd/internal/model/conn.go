package model

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// errGone is why a request ends whose client has closed its connection.
var errGone = errors.New("the client is gone")

// converse serves one connection to its end. The kernel has named the peer
// before a byte is read.
func (s *Server) converse(ctx context.Context, c *net.UnixConn, peer peercred.Peer, full bool) {
	defer c.Close()
	logger := s.Log.With("pid", peer.PID)
	if peer.UID != 0 && peer.UID != uint32(os.Geteuid()) {
		logger.Warn("connection refused", "uid", peer.UID)
		s.refuse(c, errdefs.New(errdefs.Denied, "uid %d may not use this socket", peer.UID), modelwire.ClassPolicy)
		return
	}
	if s.Refusal != nil {
		s.refuse(c, s.Refusal, modelwire.ClassOther)
		linger(c)
		return
	}
	if full {
		logger.Warn("too many connections")
		s.refuse(c, errdefs.New(errdefs.Busy, "ctxmodel has %d connections; try again", libctx.MaxModelConnections), modelwire.ClassOverloaded)
		linger(c)
		return
	}
	r, err := read(ctx, c)
	if errors.Is(err, io.EOF) {
		return // it asked nothing
	}
	if err != nil {
		s.refuse(c, err, modelwire.ClassInvalid)
		linger(c)
		return
	}
	began := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		if awaitHangup(c) {
			cancel(errGone)
		}
	}()
	// A client that does not read stops its own request and nobody else's; the
	// end of the context frees it.
	unblock := context.AfterFunc(ctx, func() { c.SetWriteDeadline(time.Now().Add(libctx.ModelLastWords)) })
	outcome := outcome{op: r.Op()}
	err = s.Answer(ctx, r, func(f modelwire.Frame, line []byte) error {
		outcome.note(f)
		_, err := c.Write(line)
		return err
	})
	unblock()
	c.SetReadDeadline(time.Unix(1, 0))
	<-watching
	cancel(nil)
	outcome.log(logger, r, time.Since(began), err)
	if err == nil {
		linger(c)
	}
}

// read takes the request of a connection. One that does not come within
// ModelRequestWait is none.
func read(ctx context.Context, c *net.UnixConn) (modelwire.Request, error) {
	c.SetReadDeadline(time.Now().Add(libctx.ModelRequestWait))
	stop := context.AfterFunc(ctx, func() { c.SetReadDeadline(time.Unix(1, 0)) })
	text, err := wire.NewLines(c, libctx.MaxModelFrame).Next()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	switch {
	case errors.Is(err, wire.ErrTorn):
		return nil, errdefs.New(errdefs.Invalid, "the request has no newline")
	case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil:
		return nil, errdefs.New(errdefs.Timeout, "no request came within %s", libctx.ModelRequestWait)
	case err != nil && errdefs.Is(err, errdefs.TooBig):
		return nil, err
	case err != nil:
		return nil, io.EOF
	}
	c.SetReadDeadline(time.Time{})
	return modelwire.DecodeRequest(text)
}

// refuse answers a request that reached nobody.
func (s *Server) refuse(c *net.UnixConn, err error, class string) {
	c.SetWriteDeadline(time.Now().Add(libctx.ModelLastWords))
	// That it could not be written is the client's affair.
	_ = (&answer{ctx: context.Background(), out: func(_ modelwire.Frame, line []byte) error {
		_, err := c.Write(line)
		return err
	}}).end(refusal(err, class))
}

// awaitHangup waits until the peer has closed its end, which is more than having
// nothing more to say, and reports it. A read deadline ends the wait.
func awaitHangup(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	err = raw.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		_, err := unix.Poll(fds, 0)
		gone = err == nil && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
		return gone
	})
	return err == nil && gone
}

// linger lets the client read what was written: closing over what it may have
// sent too much would take that away.
func linger(c *net.UnixConn) {
	c.CloseWrite()
	c.SetReadDeadline(time.Now().Add(libctx.ModelLastWords))
	io.Copy(io.Discard, io.LimitReader(c, libctx.MaxModelFrame))
}
