// Package server is the socket of a terminal: it accepts connections, asks the
// kernel who is at the other end before a byte is read, grants a mode by the
// first line, and from then on lets each mode do what its row in the table
// allows. docs/reference/terminal-socket.md describes it for clients.
package server

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"cortexfs.org/ctxterm/internal/mux"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/unixsock"
)

// Config of a Server. The caller owns Listener, and Mux, which it closes after
// Serve has returned.
type Config struct {
	Listener *unixsock.Listener
	Guard    Guard
	Mux      *mux.Mux
	Signal   func(syscall.Signal) // signals the foreground of the terminal
}

// Server serves one terminal.
type Server struct {
	cfg Config

	mu       sync.Mutex
	conns    map[*conn]struct{}
	farewell bool          // the program has ended: what is left is written within bounds
	last     time.Time     // of the farewell
	left     chan struct{} // holds one if a connection has ended
	serving  sync.WaitGroup
}

// New makes a Server.
func New(cfg Config) *Server {
	return &Server{cfg: cfg, conns: map[*conn]struct{}{}, left: make(chan struct{}, 1)}
}

// Serve answers clients until Finish. It fails if the listener does.
func (s *Server) Serve() error {
	for {
		c, peer, err := s.cfg.Listener.Accept()
		switch {
		case err == nil:
			s.enter(c, peer)
		case s.ending():
			return nil
		case !errdefs.Is(err, errdefs.Busy) && !errors.Is(err, syscall.ECONNABORTED):
			return errdefs.New(errdefs.IO, "accept: %w", err)
		case errdefs.Is(err, errdefs.Busy):
			s.respite()
		}
	}
}

// respite waits, when there is no descriptor for another connection, until one
// has ended, or somebody else may have given some back.
func (s *Server) respite() {
	again := time.NewTimer(libctx.TermRespite)
	defer again.Stop()
	select {
	case <-s.left:
	case <-again.C:
	}
}

// ending reports whether Finish was called.
func (s *Server) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.farewell
}

// lastMoment is when the farewell ends, if it has begun.
func (s *Server) lastMoment() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.farewell
}

// enter serves a connection, or refuses it.
func (s *Server) enter(nc *net.UnixConn, peer peercred.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &conn{s: s, UnixConn: nc, peer: peer}
	if len(s.conns) >= libctx.MaxTermClients || s.farewell {
		// It can not block: the socket is empty.
		c.refuse(errdefs.New(errdefs.Busy, "the terminal has %d clients already", libctx.MaxTermClients))
		c.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.serving.Go(func() {
		c.serve()
		c.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
		select {
		case s.left <- struct{}{}:
		default:
		}
	})
}

// Finish ends the server after the Mux was told the end: each client gets what is
// left for it, for which it has libctx.TermFarewell for each write and
// libctx.TermFarewells for all of it. It returns
// when all connections are closed.
func (s *Server) Finish() {
	s.mu.Lock()
	s.farewell, s.last = true, time.Now().Add(libctx.TermFarewells)
	for c := range s.conns {
		c.SetWriteDeadline(time.Now().Add(libctx.TermFarewell))
		// One that has not said yet what it wants gets nothing any more.
		if !c.joined {
			c.SetReadDeadline(time.Now())
		}
	}
	s.mu.Unlock()
	s.cfg.Listener.Interrupt()
	s.serving.Wait()
}
