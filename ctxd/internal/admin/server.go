// Package admin is the admin socket of system mode (docs/reference/system.md):
// it makes, changes and removes agents in the machine's tree for their owners,
// and lets their sockets listen. One connection carries one request.
//
// Who asks is what the kernel says of the peer, and nothing else. What is a
// user's is written with that user's rights, and counts for that user alone.
package admin

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/adminwire"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/wire"
)

// Config of Serve. The caller owns the listener.
type Config struct {
	Layout   paths.Layout // of root's tree
	Listener *unixsock.Listener
	Units    Units         // nil where no systemd keeps the sockets of agents
	Idle     time.Duration // end after this long without a connection; 0: never
	Log      *log.Logger
}

// Server serves the socket.
type Server struct {
	cfg   Config
	mu    sync.Mutex
	all   int                // connections
	of    map[uint32]int     // by uid
	left  chan struct{}      // one slot: a connection ended
	asked chan chan struct{} // by Alive
}

// New makes a server; Serve runs it.
func New(cfg Config) *Server {
	return &Server{cfg: cfg, of: map[uint32]int{}, left: make(chan struct{}, 1), asked: make(chan chan struct{})}
}

// Serve answers clients until the context ends or there was none for the idle
// time. It stops accepting before it decides to end, and serves everything it
// accepted.
func (s *Server) Serve(ctx context.Context) error {
	var conns sync.WaitGroup
	defer func() {
		conns.Wait()
		s.settle(ctx)
	}()
	for {
		again, err := s.round(ctx, &conns)
		if !again {
			return err
		}
	}
}

// Alive returns once the server has looked at what it waits for: one that is
// stuck does not. It gives up with the context.
func (s *Server) Alive(ctx context.Context) {
	answer := make(chan struct{})
	select {
	case s.asked <- answer:
		<-answer
	case <-ctx.Done():
	}
}

func (s *Server) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all > 0
}

type accepted struct {
	conn *net.UnixConn
	peer peercred.Peer
}

// round accepts until there is a reason not to. Again means that somebody came
// while it made up its mind to be idle.
func (s *Server) round(ctx context.Context, conns *sync.WaitGroup) (again bool, err error) {
	l := s.cfg.Listener
	l.Continue()
	came, failed := make(chan accepted), make(chan error, 1)
	go func() {
		defer close(came)
		for {
			c, peer, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			came <- accepted{c, peer}
		}
	}()
	enter := func(a accepted) {
		full := s.enter(a.peer.UID)
		conns.Go(func() {
			s.converse(ctx, a.conn, a.peer, full)
			s.leave(a.peer.UID)
		})
	}
	idle := time.NewTimer(s.cfg.Idle)
	if s.cfg.Idle <= 0 {
		idle.Stop()
	}
	defer idle.Stop()
	quiet := time.NewTimer(libctx.AdminQuiet)
	quiet.Stop()
	defer quiet.Stop()
wait:
	for {
		select {
		case a, ok := <-came:
			if !ok {
				return false, errdefs.New(errdefs.IO, "accept: %w", <-failed)
			}
			enter(a)
		case <-s.left:
			if s.cfg.Idle > 0 {
				idle.Reset(s.cfg.Idle)
			}
			quiet.Reset(libctx.AdminQuiet)
		case <-quiet.C:
			s.settle(ctx)
		case <-idle.C:
			if !s.busy() {
				break wait
			}
		case <-ctx.Done():
			break wait
		case answer := <-s.asked:
			close(answer)
		}
	}
	l.Interrupt()
	late := false
	for a := range came {
		late = true
		enter(a)
	}
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		return false, errdefs.New(errdefs.IO, "accept: %w", err)
	}
	return late && ctx.Err() == nil, nil
}

// settle has done what was put off while requests came.
func (s *Server) settle(ctx context.Context) {
	if s.cfg.Units == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), libctx.AdminUnitsWait)
	defer cancel()
	if err := s.cfg.Units.Settle(ctx); err != nil {
		s.cfg.Log.Warn("units", "why", err.Error())
	}
}

// enter counts a connection and reports whether it is one too many.
func (s *Server) enter(uid uint32) (full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all++
	s.of[uid]++
	return uid != 0 && (s.all > libctx.MaxAdminConnections || s.of[uid] > libctx.MaxAdminOfUser)
}

func (s *Server) leave(uid uint32) {
	s.mu.Lock()
	s.all--
	if s.of[uid]--; s.of[uid] == 0 {
		delete(s.of, uid)
	}
	s.mu.Unlock()
	select {
	case s.left <- struct{}{}:
	default:
	}
}

// converse answers the one request of a connection.
func (s *Server) converse(ctx context.Context, c *net.UnixConn, peer peercred.Peer, full bool) {
	defer c.Close()
	logger := s.cfg.Log.With("uid", peer.UID).With("pid", peer.PID)
	reply := adminwire.Refusal(errdefs.New(errdefs.Busy, "ctxd admin has too many connections; try again"))
	if !full {
		lines := wire.NewLines(c, libctx.MaxFrame)
		r, err := read(ctx, c, lines)
		if errors.Is(err, errNothing) {
			return
		}
		if err == nil {
			reply, err = s.answer(ctx, request{Request: r, peer: peer, rest: &rest{conn: c, from: lines.Rest(), left: r.Program}})
		}
		if err != nil {
			reply = adminwire.Refusal(err)
			logger.Warn("refused", "op", r.Op, "agent", string(r.Agent), "why", err.Error())
		} else if r.Op != adminwire.Ping {
			logger.Info("done", "op", r.Op, "agent", string(r.Agent), "control", r.Control)
		}
	}
	line, err := reply.Encode()
	if err != nil {
		logger.Error("reply", "why", err.Error())
		return
	}
	c.SetWriteDeadline(time.Now().Add(libctx.AdminRequestWait))
	c.Write(line) // that nobody reads it any more is the client's affair
	linger(c)
}

// errNothing is a connection on which nothing was asked.
var errNothing = errors.New("nothing was asked")

// read takes the request.
func read(ctx context.Context, c *net.UnixConn, lines *wire.Lines) (adminwire.Request, error) {
	c.SetReadDeadline(time.Now().Add(libctx.AdminRequestWait))
	stop := context.AfterFunc(ctx, func() { c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := lines.Next()
	switch {
	case err == nil:
		return adminwire.Decode(line)
	case errors.Is(err, wire.ErrTorn):
		return adminwire.Request{}, errdefs.New(errdefs.Invalid, "the request has no newline")
	case errdefs.Is(err, errdefs.TooBig):
		return adminwire.Request{}, err
	case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil:
		return adminwire.Request{}, errdefs.New(errdefs.Timeout, "no request came within %s", libctx.AdminRequestWait)
	}
	return adminwire.Request{}, errNothing
}

// linger closes the connection so that the client reads the reply and then a
// clean end: closing over what it may still send would reset it.
func linger(c *net.UnixConn) {
	c.CloseWrite()
	c.SetReadDeadline(time.Now().Add(libctx.AdminRequestWait))
	buf := make([]byte, 16<<10)
	for left := int64(libctx.MaxFrame); left > 0; {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		left -= int64(n)
	}
}
