package capsock

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/capwire"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/wire"
)

// door is one listening socket. It leads to the capability of the run it serves;
// between two runs it leads nowhere and refuses everybody. One goroutine accepts
// until close, one more serves each connection that is let in.
type door struct {
	keeper   *Keeper
	path     string
	listener *unixsock.Listener
	closed   chan struct{} // by close
	accepted chan struct{} // closed when nobody accepts any more

	mu      sync.Mutex
	to      *Capability
	conns   map[*net.UnixConn]bool // being served for it
	changed *sync.Cond             // conns has
	refused int                    // requests and connections, for it
}

func newDoor(k *Keeper, path string, l *unixsock.Listener) *door {
	d := &door{
		keeper: k, path: path, listener: l, conns: map[*net.UnixConn]bool{},
		closed: make(chan struct{}), accepted: make(chan struct{}),
	}
	d.changed = sync.NewCond(&d.mu)
	go d.accept()
	return d
}

// lead makes the door lead to a capability, or nowhere. It returns when every
// connection that came for the last one is over.
func (d *door) lead(c *Capability) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to, d.refused = c, 0
	for conn := range d.conns {
		conn.SetReadDeadline(time.Now()) // and then it gets its refusal
	}
	for len(d.conns) > 0 {
		d.changed.Wait()
	}
}

// close ends the socket.
func (d *door) close() {
	close(d.closed)
	d.listener.Close()
	os.Remove(d.path)
	<-d.accepted
}

func (d *door) accept() {
	defer close(d.accepted)
	for {
		conn, peer, err := d.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			d.keeper.cfg.Log.Warn("capability socket: accept", "why", err.Error())
			select {
			case <-d.closed:
			case <-time.After(libctx.CapRespite):
			}
			continue
		}
		if !d.enter(conn, peer) {
			conn.Close()
		}
	}
}

// enter looks at who has connected, before a byte is read, and has it served if it
// may be heard.
func (d *door) enter(conn *net.UnixConn, peer peercred.Peer) bool {
	handle, err := peer.Hold(conn)
	if err != nil {
		d.refuse(conn, peer, "", errdefs.New(errdefs.Denied, "%w", err))
		return false
	}
	who := caller{peer, handle}
	c, err := d.take(conn, who)
	if err != nil {
		handle.Close()
		d.refuse(conn, peer, "", err)
		return false
	}
	go func() {
		d.serve(conn, c, who)
		handle.Close()
		conn.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.conns, conn)
		d.changed.Broadcast()
	}()
	return true
}

// take counts a connection in that may be heard, and says for whom it is.
func (d *door) take(conn *net.UnixConn, who caller) (*Capability, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.to
	if c == nil {
		return nil, errdefs.New(errdefs.Denied, "no run has this socket now")
	}
	if err := c.knows(who); err != nil {
		return nil, err
	}
	if n := len(d.conns); n >= libctx.MaxCapConnections {
		return nil, errdefs.New(errdefs.Busy, "%d connections are open already", n)
	}
	conn.SetReadDeadline(time.Now().Add(libctx.CapRequestWait))
	d.conns[conn] = true
	d.changed.Broadcast()
	return c, nil
}

// serve reads one request and answers it.
func (d *door) serve(conn *net.UnixConn, c *Capability, who caller) {
	line, err := wire.NewLines(conn, libctx.MaxCapFrame).Next()
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		if err = errdefs.New(errdefs.Timeout, "there was no request within %s", libctx.CapRequestWait); c.ended() {
			err = errOver
		}
	case errors.Is(err, io.EOF):
		return // it asks for nothing
	case errors.Is(err, wire.ErrTorn):
		err = errdefs.New(errdefs.Invalid, "the request has no end")
	}
	var q capwire.Request
	if err == nil {
		q, err = capwire.Decode(line)
	}
	if err == nil {
		err = c.do(who, q)
	}
	if err != nil {
		d.refuse(conn, who.peer, q.ID, err)
		return
	}
	answer(conn, capwire.Reply{Type: map[string]string{capwire.Ping: capwire.Pong, capwire.Update: capwire.Updated}[q.Op], ID: q.ID})
}

// refuse answers with an error. Why somebody may not is for the log alone, which a
// crowd does not fill.
func (d *door) refuse(conn *net.UnixConn, peer peercred.Peer, id string, why error) {
	d.mu.Lock()
	d.refused++
	say := d.keeper.cfg.Log.Info
	if d.refused > libctx.MaxCapRefusals {
		say = d.keeper.cfg.Log.Debug
	}
	d.mu.Unlock()
	say("capability socket: refused", "uid", peer.UID, "pid", peer.PID, "request", id,
		"code", string(errdefs.KindOf(why)), "why", why.Error())
	if errdefs.Is(why, errdefs.Denied) {
		why = errStranger
	}
	answer(conn, capwire.Refusal(id, why))
}

// answer writes a reply. There is room for it: it is all that is ever written.
func answer(conn *net.UnixConn, r capwire.Reply) {
	if line, err := r.Encode(); err == nil {
		conn.SetWriteDeadline(time.Now().Add(libctx.CapRequestWait))
		conn.Write(line)
	}
}
