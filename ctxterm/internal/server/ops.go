package server

import (
	"io"
	"slices"
	"time"

	"cortexfs.org/ctxterm/internal/mux"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
	"golang.org/x/sys/unix"
)

// op is one row of the table: who may do it, and how it is done. io.EOF is the
// end of the client.
type op struct {
	modes []mux.Mode
	do    func(*conn, termwire.Request) error
}

func (o op) may(m mux.Mode) bool { return slices.Contains(o.modes, m) }

// ops is what clients may do after their first line. What is not here nobody may.
var ops = map[string]op{
	"input":  {[]mux.Mode{mux.Attach}, func(c *conn, r termwire.Request) error { return c.input(r.(*termwire.Input).Data) }},
	"resize": {[]mux.Mode{mux.Attach}, func(c *conn, r termwire.Request) error { c.client.Resize(r.(*termwire.Resize).Size); return nil }},
	"signal": {[]mux.Mode{mux.Attach}, func(c *conn, r termwire.Request) error { return c.signal(r.(*termwire.Signal).Name) }},
	"output": {[]mux.Mode{mux.Emit}, func(c *conn, r termwire.Request) error { c.client.Emit(r.(*termwire.Output).Data); return nil }},
	"detach": {[]mux.Mode{mux.Watch, mux.Attach, mux.Emit}, func(*conn, termwire.Request) error { return io.EOF }},
}

func (c *conn) signal(name string) error {
	s := unix.SignalNum("SIG" + name)
	if s == 0 {
		return errdefs.New(errdefs.Invalid, "unknown signal %.20q", name)
	}
	c.s.cfg.Signal(s)
	return nil
}

// input types b. While the program does not read, nothing more is read from the
// client, but its going away is noticed.
func (c *conn) input(b []byte) error {
	room, ok := c.s.cfg.Mux.Type(b)
	if ok {
		return nil
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		c.awaitHangup()
	}()
	defer func() {
		c.SetReadDeadline(time.Now())
		<-left
		c.SetReadDeadline(time.Time{})
	}()
	for !ok {
		select {
		case <-room:
		case <-left:
			return io.EOF
		}
		room, ok = c.s.cfg.Mux.Type(b)
	}
	return nil
}

// awaitHangup returns when the connection is closed in both directions, by
// whichever side, or at the read deadline.
func (c *conn) awaitHangup() {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	raw.Read(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(p, 0)
		return n > 0 && err == nil
	})
}
