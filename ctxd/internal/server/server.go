// Package server is the agent socket: it accepts connections, knows each peer
// from the kernel before a byte is read, decodes requests, and hands them to the
// sessions (package run) according to one table of operations. A client that
// reads slowly costs a bounded outbox and slows nobody.
package server

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"cortexfs.org/ctxd/internal/authz"
	"cortexfs.org/ctxd/internal/receipt"
	"cortexfs.org/ctxd/internal/run"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// Config of a Server. The caller owns Listener and Hub and closes them after
// Serve has returned.
type Config struct {
	Agent    libctx.Agent
	Owner    uint32
	Hub      *run.Hub
	Check    func() error // refuses while the agent's files are refused, for requests that do not read them
	Listener *unixsock.Listener

	Terminals *receipt.Keeper // nil where Check always refuses
	Idle      time.Duration   // end after this long without connection or run; 0: never
	Log       *log.Logger
}

// Server serves one agent's socket.
type Server struct {
	cfg      Config
	stopping sync.Once
	stopped  chan struct{} // closed by the stop operation
	open     atomic.Int32  // connections being served
	left     chan struct{} // one slot: a connection ended
}

// New makes a server; Serve runs it.
func New(cfg Config) *Server {
	return &Server{cfg: cfg, stopped: make(chan struct{}), left: make(chan struct{}, 1)}
}

// why a round of serving ended.
type why int

const (
	idled  why = iota // nothing happened for the idle time
	ended             // the context ended or a client asked the agent to stop
	failed            // the listener failed
)

// Serve answers clients until the context ends, a client asks the agent to
// stop, or nothing happened for the idle time. It stops accepting before it
// decides to end and serves everything it accepted; what the kernel still
// queues belongs to whoever else holds the socket. Runs that the end of the
// context or a failure finds going on are interrupted.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var conns sync.WaitGroup
	defer conns.Wait()
	defer s.cfg.Hub.Shutdown(run.ErrHost)
	defer cancel()
	for {
		reason, late, err := s.round(ctx, &conns)
		if reason != idled || late == 0 {
			return err
		}
	}
}

// round accepts and serves until there is a reason to end, then stops accepting.
// Late counts connections that came in between the decision and the stop: after
// an idle end they are served like any other and keep the server going.
func (s *Server) round(ctx context.Context, conns *sync.WaitGroup) (reason why, late int, err error) {
	accepted := make(chan accept)
	s.cfg.Listener.Continue()
	go s.accept(accepted)

	over := func() {
		select {
		case s.left <- struct{}{}:
		default:
		}
	}
	enter := func(a accept, refuse bool) {
		subject := authz.Of(a.peer, s.cfg.Owner)
		if fault.Off("server:peer") {
			subject = authz.Owner
		}
		if err := authz.OwnerOrRoot.Check(subject); err != nil {
			s.turnAway(a, err)
			over()
			return
		}
		n := s.open.Add(1)
		if fault.Off("server:crowd") {
			n = 0
		}
		conns.Go(func() {
			s.converse(ctx, a, subject, refuse || n > libctx.MaxConnections, n > libctx.MaxConnections+libctx.MaxFarewells)
			s.open.Add(-1)
			over()
		})
	}
	quiet := func() bool { return s.open.Load() == 0 && !s.cfg.Hub.Busy() }
	idle := newTimer(s.cfg.Idle)
	defer idle.Stop()
	for reason = -1; reason < 0; {
		select {
		case a := <-accepted:
			if a.err != nil {
				return failed, 0, errdefs.New(errdefs.IO, "accept: %w", a.err)
			}
			idle.Stop()
			enter(a, false)
		case <-s.left:
			if quiet() {
				idle.Reset()
			}
		case <-s.cfg.Hub.Quiet():
			if quiet() {
				idle.Reset()
			}
		case <-idle.C():
			if quiet() {
				reason = idled
			}
		case <-s.stopped:
			reason = ended
		case <-ctx.Done():
			reason = ended
		}
	}
	s.cfg.Listener.Interrupt()
	for a := range accepted {
		if a.err == nil {
			late++
			enter(a, reason == ended)
		}
	}
	s.cfg.Log.Info("stopped accepting", "idle", reason == idled, "late", late)
	return reason, late, nil
}

type accept struct {
	conn *net.UnixConn
	peer peercred.Peer
	err  error
}

// accept hands over connections, then the error that ended it, and closes the
// channel. Where the machine has no room for one more it waits in the queue.
func (s *Server) accept(to chan<- accept) {
	defer close(to)
	for told := false; ; {
		c, peer, err := s.cfg.Listener.Accept()
		if noRoom(err) && !fault.Off("server:room") {
			if !told {
				s.cfg.Log.Warn("accept", "why", err.Error())
			}
			told = true
			<-time.After(roomAgain) // nothing tells when somebody has closed something
			continue
		}
		told = false
		to <- accept{c, peer, err}
		if err != nil {
			return
		}
	}
}

// roomAgain is how long a connection waits for a descriptor.
const roomAgain = 50 * time.Millisecond

func noRoom(err error) bool {
	for _, scarce := range []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.ECONNABORTED} {
		if errors.Is(err, scarce) {
			return true
		}
	}
	return false
}

// turnAway tells a stranger no. It takes nobody's place, and no time: what is said
// has room in a connection over which nothing was said yet.
func (s *Server) turnAway(a accept, why error) {
	s.cfg.Log.Warn("connection refused", "uid", a.peer.UID, "pid", a.peer.PID, "why", why.Error())
	c := &conn{sock: a.conn, out: newOutbox()}
	c.refuse(why)
	c.out.close()
	a.conn.SetWriteDeadline(time.Now().Add(lastGlance))
	c.out.drain(a.conn)
	a.conn.Close()
}

// converse serves one connection to its end. Of a crowd that is larger than can
// be told so in good order, one is closed at once.
func (s *Server) converse(ctx context.Context, a accept, subject authz.Subject, busy, crowd bool) {
	gone, leave := context.WithCancel(context.Background())
	c := &conn{sock: a.conn, out: newOutbox(), gone: gone, leave: leave}
	c.asked.UID = a.peer.UID
	if busy {
		why := errdefs.New(errdefs.Busy, "the agent has too many connections or is ending; try again")
		s.cfg.Log.Debug("connection refused", "uid", a.peer.UID, "pid", a.peer.PID, "why", why.Error()) // a crowd of one's own is no news
		c.refuse(why)
		c.out.close()
		a.conn.SetWriteDeadline(time.Now().Add(lastWords))
		c.out.drain(a.conn)
		leave()
		if crowd {
			a.conn.Close()
			return
		}
		c.linger(ctx) // who may speak has perhaps begun to
		return
	}
	c.serve(ctx, func(ctx context.Context, c *conn, line []byte) error {
		r, err := wire.DecodeRequest(line)
		if err != nil {
			c.asked.Malformed()
			return err
		}
		row := ops[r.Op()]
		if err := row.need.Check(subject); err != nil {
			return err
		}
		if row.check {
			if err := s.cfg.Check(); err != nil {
				return err
			}
		}
		return row.handle(s, ctx, c, r)
	})
}

// timer is a time.Timer that a zero duration keeps from ever firing.
type timer struct {
	t *time.Timer
	d time.Duration
}

func newTimer(d time.Duration) *timer {
	t := &timer{d: d}
	if d > 0 {
		t.t = time.NewTimer(d)
	}
	return t
}

// Reset starts the wait anew.
func (t *timer) Reset() {
	if t.t != nil {
		t.t.Reset(t.d)
	}
}

// Stop ends the wait.
func (t *timer) Stop() {
	if t.t != nil {
		t.t.Stop()
	}
}

// C fires when the wait is over.
func (t *timer) C() <-chan time.Time {
	if t.t == nil {
		return nil
	}
	return t.t.C
}
