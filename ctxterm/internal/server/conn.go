package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"cortexfs.org/ctxterm/internal/mux"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// conn is one client.
type conn struct {
	*net.UnixConn
	s      *Server
	peer   peercred.Peer
	mode   mux.Mode
	client *mux.Client
	joined bool // guarded by s.mu
}

// refuse writes an error frame to a client that has not joined.
func (c *conn) refuse(err error) {
	line, merr := termwire.MarshalFrame(&termwire.Error{Code: errdefs.KindOf(err), Message: err.Error()})
	if merr == nil {
		c.Write(line)
	}
}

// serve answers the client until it leaves, breaks a rule, or the terminal ends.
func (c *conn) serve() {
	if err := c.s.cfg.Guard(c.peer); err != nil {
		c.refuse(err)
		return
	}
	in := bufio.NewReaderSize(c, 16<<10)
	if err := c.join(in); err != nil {
		if err != errGone {
			c.refuse(err)
		}
		return
	}
	var writer sync.WaitGroup
	writer.Go(c.write)
	limit := libctx.MaxTermLine
	if c.mode != mux.Watch {
		limit = libctx.MaxFrame
	}
	if err := c.obey(wire.NewLines(in, limit)); err != nil {
		c.client.Refuse(err, true)
		c.SetWriteDeadline(time.Now().Add(libctx.TermFarewell))
		writer.Wait() // for the last word
	}
	c.client.Leave()
	c.Close()
	writer.Wait()
}

// errGone is the end of a client that said nothing wrong.
var errGone = errors.New("gone")

// join reads the first line and grants what it asks for.
func (c *conn) join(in *bufio.Reader) error {
	c.SetReadDeadline(time.Now().Add(libctx.TermHello))
	line, err := wire.NewLines(in, libctx.MaxTermLine).Next()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) && c.s.ending():
		return errGone
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errdefs.New(errdefs.Timeout, "no first line within %v", libctx.TermHello)
	case errdefs.Is(err, errdefs.TooBig):
		return err
	case err != nil:
		return errGone
	}
	first, err := termwire.DecodeRequest(line)
	if err != nil {
		return err
	}
	var view mux.View
	switch r := first.(type) {
	case *termwire.Watch:
		c.mode, view = mux.Watch, mux.View{Size: r.Size, Scrollback: r.Scrollback}
	case *termwire.Attach:
		c.mode, view = mux.Attach, mux.View{Size: r.Size, Scrollback: r.Scrollback}
	case *termwire.Emit:
		c.mode = mux.Emit
	default:
		return errdefs.New(errdefs.Invalid, "the first line is %s, not watch, attach or emit", first.Op())
	}
	if c.client, err = c.s.cfg.Mux.Join(c.mode, view); err != nil {
		return err
	}
	c.client.Direct(c.tryWrite)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.joined = true
	return c.SetReadDeadline(time.Time{})
}

// tryWrite writes what the connection takes at once.
func (c *conn) tryWrite(b []byte) (n int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	raw.Write(func(fd uintptr) bool {
		n, err = unix.Write(int(fd), b)
		return true
	})
	return max(n, 0)
}

// write writes to the client what the Mux has for it, and then closes the
// connection.
func (c *conn) write() {
	for {
		b, ok := c.client.Next()
		if !ok {
			break
		}
		if last, ending := c.s.lastMoment(); ending {
			next := time.Now().Add(libctx.TermFarewell)
			if next.After(last) {
				next = last
			}
			c.SetWriteDeadline(next)
		}
		if _, err := c.Write(b); err != nil {
			break
		}
	}
	c.Close()
}

// obey does what the client asks until it detaches or goes away, which is no
// error, or must not go on.
func (c *conn) obey(in *wire.Lines) error {
	for {
		line, err := in.Next()
		switch {
		case errdefs.Is(err, errdefs.TooBig):
			return err
		case err != nil: // io.EOF, half a line, a broken connection
			c.awaitHangup() // it may have closed its writing side only
			return nil
		}
		request, err := termwire.DecodeRequest(line)
		if err != nil && c.mode != mux.Attach {
			return errdefs.New(errdefs.Denied, "%s may not send this: %w", c.mode, err)
		}
		if err != nil {
			c.client.Refuse(err, false)
			continue
		}
		row, ok := ops[request.Op()]
		if !ok || !row.may(c.mode) {
			return errdefs.New(errdefs.Denied, "%s may not %s", c.mode, request.Op())
		}
		if err := row.do(c, request); err == io.EOF {
			return nil
		} else if err != nil {
			c.client.Refuse(err, false)
		}
	}
}
