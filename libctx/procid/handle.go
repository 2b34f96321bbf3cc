package procid

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// Handle holds on to one process by descriptor (pidfd): signals reach that
// process or none, and its end can be waited for by anyone, parent or not.
// Methods may be called from any goroutine until Close.
type Handle struct {
	f    *os.File
	conn syscall.RawConn
	pid  int
}

// Open takes hold of a process. The caller closes the handle. A pid that is not
// there is errdefs.NotFound. Between learning a pid and opening it the process
// may have ended and another may have its number: verify afterwards (Parent,
// Of) what must be true of it.
func Open(pid int) (*Handle, error) {
	// Non-blocking so that the runtime polls it instead of giving up a thread.
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil, gone(pid, err)
	}
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "process %d: take hold: %w", pid, err)
	}
	return handle(fd, pid)
}

// Adopt makes a handle of a pidfd that somebody else opened for the process of
// this number; the descriptor is the handle's from then on, whatever comes of it.
func Adopt(fd, pid int) (*Handle, error) {
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, errdefs.New(errdefs.Internal, "process %d: take hold: %w", pid, err)
	}
	return handle(fd, pid)
}

// handle makes a handle of a pidfd that does not block.
func handle(fd, pid int) (*Handle, error) {
	f := os.NewFile(uintptr(fd), "pidfd")
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, errdefs.New(errdefs.Internal, "process %d: take hold: %w", pid, err)
	}
	return &Handle{f: f, conn: conn, pid: pid}, nil
}

// PID is the number the process was opened by.
func (h *Handle) PID() int { return h.pid }

// Signal sends sig. To a process that has ended it is errdefs.NotFound.
func (h *Handle) Signal(sig syscall.Signal) error {
	var err error
	if cerr := h.conn.Control(func(fd uintptr) {
		err = unix.PidfdSendSignal(int(fd), sig, nil, 0)
	}); cerr != nil {
		err = cerr
	}
	if errors.Is(err, unix.ESRCH) {
		return gone(h.pid, err)
	}
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "process %d: send %v: %w", h.pid, sig, err)
	}
	return nil
}

// Wait returns nil when the process has ended, or the cause of ctx. For the
// first process of a pid namespace that is when the namespace is empty. One
// goroutine at a time may wait.
func (h *Handle) Wait(ctx context.Context) error {
	if err := h.f.SetReadDeadline(time.Time{}); err != nil {
		return errdefs.New(errdefs.Internal, "process %d: wait: %w", h.pid, err)
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		h.f.SetReadDeadline(time.Unix(1, 0))
	})
	err := h.conn.Read(func(fd uintptr) bool { return ended(int(fd)) })
	if !stop() {
		<-interrupted // else its deadline could hit the next wait
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return errdefs.New(errdefs.Internal, "process %d: wait: %w", h.pid, err)
}

// Ended reports whether the process has ended.
func (h *Handle) Ended() bool {
	over := true
	h.conn.Control(func(fd uintptr) { over = ended(int(fd)) })
	return over
}

// ended asks whether a pidfd is readable, which it is once its process has
// ended, reaped or not.
func ended(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, 0)
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// Reap collects the process if it is a zombie of this process, as orphans are
// of a reaper; no other child is touched. Whether there was anything to collect
// does not matter to a caller, so it is not told.
func (h *Handle) Reap() {
	h.conn.Control(func(fd uintptr) {
		unix.Waitid(unix.P_PIDFD, int(fd), nil, unix.WEXITED|unix.WNOHANG, nil)
	})
}

// Close lets go of the process, which goes on.
func (h *Handle) Close() error { return h.f.Close() }
