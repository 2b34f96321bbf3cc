package runs

import (
	"context"
	"os"
	"sync"
	"time"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/client"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// cancelGrace is how long a cancelled run may take to say that it is over.
const cancelGrace = 10 * time.Second

// link is the connection a run is followed on, together with what can end it
// from this side: Ctrl+C, a second Ctrl+C, the caller's timeout.
type link struct {
	from    *caller.Caller
	agent   libctx.Agent
	session libctx.Session
	id      libctx.ClientID

	ctx   context.Context // over when the caller leaves
	leave context.CancelCauseFunc

	mu     sync.Mutex
	conn   *client.Conn // nil until connected
	run    libctx.Run   // "" until known
	reason error        // why a cancel was sent
}

var errTimeout error = errdefs.New(errdefs.Timeout, "the run took longer than --timeout and was cancelled")

// open connects and starts to listen for the caller's Ctrl+C and to the
// timeout, 0 for none. Who opened calls end.
func (l *link) open(ctx context.Context, timeout time.Duration) (end func(), err error) {
	l.ctx, l.leave = context.WithCancelCause(ctx)
	interrupts, stop := l.from.Interrupts()
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		l.watch(interrupts, over, timeout)
	}()
	end = func() {
		stop()
		close(over)
		<-watched
		l.leave(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.conn != nil {
			l.conn.Close()
		}
	}
	if err := l.connect(); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// connect makes the connection.
func (l *link) connect() error {
	conn, err := l.from.Dial(l.ctx, l.agent)
	if err == nil {
		err = context.Cause(l.ctx)
	}
	if err != nil {
		if conn != nil {
			conn.Close()
		}
		if cause := context.Cause(l.ctx); cause != nil {
			return cause
		}
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	return nil
}

// watch turns the caller's signals into a cancel, then into leaving.
func (l *link) watch(interrupts <-chan os.Signal, over <-chan struct{}, timeout time.Duration) {
	var expired, grace <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		expired = t.C
	}
	give := func(reason error) {
		if !l.cancel(reason) {
			l.quit(reason)
			return
		}
		t := time.NewTimer(cancelGrace)
		grace = t.C
	}
	for asked := false; ; asked = true {
		select {
		case <-interrupts:
			if asked {
				l.quit(caller.ErrInterrupt)
			} else {
				give(caller.ErrInterrupt)
			}
		case <-expired:
			expired = nil
			give(errTimeout)
		case <-grace:
			l.quit(l.why())
		case <-over:
			return
		}
	}
}

// cancel asks the agent to cancel the run. It reports false when there is no
// connection to ask on.
func (l *link) cancel(reason error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason == nil {
		l.reason = reason
	}
	if l.conn == nil {
		return false
	}
	id := string(l.run)
	if id == "" {
		id = string(l.id)
	}
	conn, r := l.conn, &wire.Cancel{ID: id, Session: l.session}
	// An agent that does not read must not keep a second Ctrl+C waiting. The
	// write ends with the connection; if it fails, so does the reader.
	go func() { _ = conn.Request(r) }()
	return true
}

// quit ends everything on this side; the reader finds its connection closed.
func (l *link) quit(reason error) {
	l.leave(reason)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		l.conn.Close()
	}
}

// why is the reason of the cancel that was sent, nil if none was.
func (l *link) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// named takes note of the run that a request became, if it is ours.
func (l *link) named(id libctx.ClientID, run libctx.Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == "" && id == l.id {
		l.run = run
	}
}

// next reads a frame; after the caller left, the error is why.
func (l *link) next() ([]byte, wire.Frame, error) {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	line, f, err := conn.Next()
	if err != nil {
		if cause := context.Cause(l.ctx); cause != nil {
			return nil, nil, cause
		}
	}
	return line, f, err
}

func (l *link) request(r wire.Request) error {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	return conn.Request(r)
}
