// Package emit shows the tool calls of runs in the live terminal of their
// session, as they happen, so that whoever watches it sees the agent work
// (docs/reference/terminal.md). What it shows is output between that of the
// program, never input.
//
// A run is told of nothing and waits for nothing: its frames go into a bounded
// queue, from which a goroutine of the run writes. What finds no room, and all of
// it where the terminal is gone or too slow, is not shown.
package emit

import (
	"context"
	"net"
	"sync"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/wire"
)

// Config of an Emitter.
type Config struct {
	Agent libctx.Agent
	// Dial connects to the live terminal of a session, errdefs.NotFound if none
	// is to show anything. It is asked once a run.
	Dial func(context.Context, libctx.Session) (net.Conn, error)
	Log  *log.Logger
}

// Emitter shows the calls of an agent. Close it when its runs are over.
type Emitter struct {
	cfg    Config
	ctx    context.Context // ends writers
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// New makes an emitter.
func New(cfg Config) *Emitter {
	ctx, cancel := context.WithCancel(context.Background())
	return &Emitter{cfg: cfg, ctx: ctx, cancel: cancel}
}

// lastWords is what writers have for what they hold when the process is to end.
const lastWords = 250 * time.Millisecond

// Close waits for the writers of runs that are over, a moment at most.
func (e *Emitter) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	late := time.AfterFunc(lastWords, e.cancel)
	e.work.Wait()
	late.Stop()
	e.cancel()
}

// Run shows the calls of one run of a session; close it at the run's end.
func (e *Emitter) Run(s libctx.Session) *Run {
	return &Run{e: e, session: s, wake: make(chan struct{}, 1)}
}

// Run is what is shown of one run. Its methods never wait.
type Run struct {
	e       *Emitter
	session libctx.Session
	wake    chan struct{} // one slot: there is something to do

	mu      sync.Mutex
	queue   []wire.Frame
	missed  int // frames that found no room since the last one that did
	working bool
	over    bool // nothing more comes
	deaf    bool // nobody is shown anything
}

// Push takes a frame of the run. Only those of tool calls matter.
func (r *Run) Push(line []byte) bool {
	f := of(line)
	if f == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.deaf || r.over:
		return true
	case len(r.queue) >= libctx.MaxEmitQueue:
		r.missed++
		return true
	case !r.working:
		r.working = true
		if !r.e.begin(r) {
			r.deaf = true
			return true
		}
	}
	r.queue = append(r.queue, f)
	r.signal()
	return true
}

// Close says that the run is over. What it has said is still shown.
func (r *Run) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.signal()
}

func (r *Run) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// begin starts the writer of a run, unless the process is about to end.
func (e *Emitter) begin(r *Run) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.work.Go(func() {
		if err := r.show(e.ctx); err != nil && !errdefs.Is(err, errdefs.NotFound) {
			e.cfg.Log.Debug("emit", "session", string(r.session), "why", err.Error())
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.deaf, r.queue = true, nil
	})
	return true
}

// show writes until the run is over, or the terminal does not take any more.
func (r *Run) show(ctx context.Context) error {
	c, err := r.e.cfg.Dial(ctx, r.session)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if err := hello(c); err != nil {
		return err
	}
	shown := shower{agent: r.e.cfg.Agent}
	for {
		<-r.wake // Close is the end of every run
		r.mu.Lock()
		frames, missed, over := r.queue, r.missed, r.over
		r.queue, r.missed = nil, 0
		r.mu.Unlock()
		for _, f := range frames {
			if err := output(c, shown.append(nil, f)); err != nil {
				return err
			}
		}
		if err := output(c, shown.missed(nil, missed)); err != nil {
			return err
		}
		if over {
			return nil
		}
	}
}

// hello asks to emit.
func hello(c net.Conn) error {
	if err := send(c, &termwire.Emit{}); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(libctx.EmitWait)); err != nil {
		return err
	}
	line, err := wire.NewLines(c, libctx.MaxFrame).Next()
	if err != nil {
		return err
	}
	f, err := termwire.DecodeFrame(line)
	if err != nil {
		return err
	}
	switch f := f.(type) {
	case *termwire.Hello:
		return nil
	case *termwire.Error:
		return errdefs.New(f.Code, "the terminal refuses: %s", f.Message)
	}
	return errdefs.New(errdefs.Protocol, "the terminal does not greet")
}

// output shows a text that is not empty.
func output(c net.Conn, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	return send(c, &termwire.Output{Data: text})
}

// send writes one line; a terminal that does not take it in time takes nothing.
func send(c net.Conn, q termwire.Request) error {
	line, err := termwire.MarshalRequest(q)
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Now().Add(libctx.EmitWait)); err != nil {
		return err
	}
	_, err = c.Write(line)
	return err
}
