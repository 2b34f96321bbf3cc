package activate

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"

	"cortexfs.org/ctxd/internal/child"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/unixsock"
	"golang.org/x/sys/unix"
)

// How long a keeper waits before it tries again what failed: starting a server
// that died before it did anything, or taking a socket that still has a holder.
const (
	firstBackoff = 50 * time.Millisecond
	lastBackoff  = 5 * time.Second
	healthy      = 2 * time.Second // a server that lived this long resets the wait
)

// hopeless is how many servers in a row may die before those who wait are told:
// the first ones may have been killed by accident, and then the next one serves.
const hopeless = 3

// keeper holds one socket.
type keeper struct {
	socket  Socket
	starter *child.Starter
	log     *log.Logger
	wait    time.Duration

	failures int // servers that died young, one after the other
}

// run holds the socket until the context ends. It closes first when the first
// attempt to take it is over.
func (k *keeper) run(ctx context.Context, first chan<- struct{}) {
	var l *unixsock.Listener
	for l == nil {
		var err error
		l, err = k.socket.Bind()
		if first != nil {
			close(first)
			first = nil
		}
		if err != nil {
			k.log.Warn("socket", "why", err.Error())
			if !k.backoff(ctx) {
				return
			}
		}
	}
	defer func() {
		l.Close()
		if k.socket.Unbound != nil {
			k.socket.Unbound()
		}
	}()
	k.wait = 0
	// One duplicate to watch, one to pass on: passing a file on makes it useless
	// for watching.
	watched, err := l.File()
	if err != nil {
		k.log.Error("socket", "why", err.Error())
		return
	}
	defer watched.Close()
	passed, err := l.File()
	if err != nil {
		k.log.Error("socket", "why", err.Error())
		return
	}
	defer passed.Close()
	for k.connection(ctx, watched) {
		began := time.Now()
		err := k.serve(ctx, passed)
		if err == nil || time.Since(began) > healthy {
			k.wait, k.failures = 0, 0
		}
		if err != nil {
			k.log.Warn("the server ended", "why", err.Error())
			if k.failures++; k.failures >= hopeless {
				k.refuse(l, err)
			}
			if !k.backoff(ctx) {
				return
			}
		}
	}
}

// connection waits until a connection is queued; false when the context ended.
func (k *keeper) connection(ctx context.Context, f *os.File) bool {
	stop := context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	raw, err := f.SyscallConn()
	if err != nil {
		k.log.Error("socket", "why", err.Error())
		return false
	}
	err = raw.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
	if err != nil && ctx.Err() == nil {
		k.log.Error("socket", "why", err.Error())
	}
	return err == nil && ctx.Err() == nil
}

// serve starts the server with the socket and waits for its end.
func (k *keeper) serve(ctx context.Context, socket *os.File) error {
	fault.Point("activate.spawn")
	p, err := k.starter.Start(child.Program{
		Argv: k.socket.Command, Env: append([]string{"LISTEN_FDS=1"}, k.socket.Env...), File: socket,
	})
	if err != nil {
		return err
	}
	fault.Point("activate.spawned")
	stop := context.AfterFunc(ctx, func() { p.Signal(syscall.SIGTERM) })
	defer stop()
	st, err := p.Wait()
	if err != nil {
		return errdefs.New(errdefs.Internal, "wait: %w", err)
	}
	if !st.Success() {
		return errdefs.New(errdefs.Internal, "%s", st)
	}
	return nil
}

// refuse answers everybody who is queued now: no server comes for them.
func (k *keeper) refuse(l *unixsock.Listener, why error) {
	line := k.socket.Refusal(why)
	for {
		c, err := l.AcceptQueued()
		if err != nil {
			return
		}
		c.SetDeadline(time.Now().Add(firstBackoff))
		c.Write(line)
		c.CloseWrite()
		io.Copy(io.Discard, c) // so that the client reads the answer and a clean end
		c.Close()
	}
}

// backoff waits, each time longer; false when the context ended.
func (k *keeper) backoff(ctx context.Context) bool {
	k.wait = min(max(2*k.wait, firstBackoff), lastBackoff)
	t := time.NewTimer(k.wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
