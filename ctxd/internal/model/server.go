package model

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/unixsock"
)

// Server serves connections, each in a goroutine of its own.
type Server struct {
	Service
	Log   *log.Logger
	Idle  time.Duration // end after this long without a connection; 0: never
	Drain time.Duration // that running requests have when the context has ended

	Refusal error // why every request is refused; nil: none is for that

	open  atomic.Int32
	alive chan chan struct{} // asked of the round; made by Serve
	begun sync.Once
}

// Alive returns once the server has looked at what it waits for: one that is
// stuck does not. It gives up with the context.
func (s *Server) Alive(ctx context.Context) {
	answer := make(chan struct{})
	select {
	case s.questions() <- answer:
		<-answer
	case <-ctx.Done():
	}
}

func (s *Server) questions() chan chan struct{} {
	s.begun.Do(func() { s.alive = make(chan chan struct{}) })
	return s.alive
}

// Serve answers clients until the context ends or there was none for the idle
// time; then it stops accepting and answers those it has. The caller owns the
// listener.
func (s *Server) Serve(ctx context.Context, l *unixsock.Listener) error {
	// Requests outlive the context by the time of draining.
	requests, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var conns sync.WaitGroup
	left := make(chan struct{}, 1) // one slot: a connection ended
	enter := func(a accepted) {
		full := s.open.Add(1) > libctx.MaxModelConnections
		conns.Go(func() {
			s.converse(requests, a.conn, a.peer, full)
			s.open.Add(-1)
			select {
			case left <- struct{}{}:
			default:
			}
		})
	}
	var err error
	for again := true; again; {
		again, err = s.round(ctx, l, enter, left)
	}
	s.finish(ctx, &conns, cancel)
	return err
}

// finish waits for the connections. Those that are still there when the context
// has ended for the time of draining are given up.
func (s *Server) finish(ctx context.Context, conns *sync.WaitGroup, cancel context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() {
		conns.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	patience := time.NewTimer(s.Drain)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
		cancel(errdefs.New(errdefs.Interrupted, "ctxmodel is ending"))
		<-done
	}
}

type accepted struct {
	conn *net.UnixConn
	peer peercred.Peer
}

// round accepts until there is a reason not to. Again means that somebody came
// while it made up its mind to be idle.
func (s *Server) round(ctx context.Context, l *unixsock.Listener, enter func(accepted), left <-chan struct{}) (again bool, err error) {
	l.Continue()
	conns, failed := make(chan accepted), make(chan error, 1)
	go func() {
		defer close(conns)
		for {
			c, peer, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			conns <- accepted{c, peer}
		}
	}()
	idle := time.NewTimer(s.Idle)
	if s.Idle <= 0 {
		idle.Stop()
	}
	defer idle.Stop()
wait:
	for {
		select {
		case a, ok := <-conns:
			if !ok {
				return false, errdefs.New(errdefs.IO, "accept: %w", <-failed)
			}
			enter(a)
		case <-left:
			if s.Idle > 0 {
				idle.Reset(s.Idle)
			}
		case <-idle.C:
			if s.open.Load() == 0 {
				break wait
			}
		case <-ctx.Done():
			break wait
		case answer := <-s.questions():
			close(answer)
		}
	}
	l.Interrupt()
	late := false
	for a := range conns {
		late = true
		enter(a)
	}
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		return false, errdefs.New(errdefs.IO, "accept: %w", err)
	}
	return late && ctx.Err() == nil, nil
}

// ServeOne answers the one request of a connection that is there already, such
// as an end of a socketpair, and closes it.
func (s *Server) ServeOne(ctx context.Context, c *net.UnixConn) error {
	peer, err := peercred.Of(c)
	if err != nil {
		c.Close()
		return err
	}
	s.converse(ctx, c, peer, false)
	return nil
}
