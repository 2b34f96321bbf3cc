package transport

import (
	"context"
	"errors"
	"sync"
	"time"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
)

var errCancelled = errors.New("the request was cancelled")

// late is why a context ended that no caller ended.
type late struct {
	phase string
	after time.Duration
}

func (l *late) Error() string {
	what := map[string]string{
		modelwire.PhaseConnect: "no connection",
		modelwire.PhaseHeaders: "no answer",
		modelwire.PhaseBody:    "no more of the answer",
		"":                     "the answer has no end",
	}[l.phase]
	return what + " after " + l.after.String()
}

// watcher holds one request to its times. Its context ends when a phase takes
// too long, when the caller's ends (until release), and at end.
type watcher struct {
	ctx     context.Context
	caller  context.Context
	cancel  context.CancelCauseFunc
	release func() bool // from here on the caller's context is its own
	whole   *time.Timer

	mu    sync.Mutex
	phase string
	timer *time.Timer // of the phase; nil if it has no time of its own
}

func watch(caller context.Context, times Times) *watcher {
	w := &watcher{caller: caller}
	w.ctx, w.cancel = context.WithCancelCause(context.WithoutCancel(caller))
	w.release = context.AfterFunc(caller, func() { w.cancel(caller.Err()) })
	w.whole = time.AfterFunc(times.Request, func() { w.cancel(&late{after: times.Request}) })
	return w
}

// enter begins a phase, which may take this long; 0 is no limit.
func (w *watcher) enter(phase string, limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = phase
	w.stop()
	if limit > 0 {
		w.timer = time.AfterFunc(limit, func() { w.cancel(&late{phase, limit}) })
	}
}

// pause stops the time of the phase.
func (w *watcher) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop()
}

func (w *watcher) stop() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// end frees what the watcher holds and passes an error on.
func (w *watcher) end(err *Error) *Error {
	w.pause()
	w.release()
	w.whole.Stop()
	w.cancel(nil)
	return err
}

// cancelled is the error of a request whose caller ended it, or nil.
func (w *watcher) cancelled() *Error {
	if w.caller.Err() == nil {
		return nil
	}
	return &Error{Phase: w.at(), Kind: errdefs.Cancelled, Err: errCancelled}
}

func (w *watcher) at() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.phase
}

// fail says what an error of net/http was: cancelled wins over everything, our
// own deadlines over what they caused.
func (w *watcher) fail(err error) *Error {
	if e := w.cancelled(); e != nil {
		return e
	}
	e := &Error{Phase: w.at(), Kind: errdefs.Provider, Err: err}
	var l *late
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(context.Cause(w.ctx), &l):
		e.Kind, e.Err = errdefs.Timeout, l
		if l.phase != "" {
			e.Phase = l.phase
		}
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Kind = errdefs.Timeout
	}
	return e
}

// tooBig is an answer over one of the limits.
func tooBig(phase, format string, args ...any) *Error {
	return &Error{Phase: phase, Kind: errdefs.TooBig, Err: errdefs.New(errdefs.TooBig, format, args...)}
}
