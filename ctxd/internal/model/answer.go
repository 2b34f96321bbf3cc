package model

import (
	"context"
	"errors"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
)

// answer is the Sink of one request: it holds what a driver sends to the order
// and the limits of an answer, and writes it.
type answer struct {
	ctx    context.Context
	out    Out
	stream modelwire.Stream
	begun  bool  // a start frame went out
	seen   bool  // and something of the answer itself
	broken error // of out: nobody reads any more
	wrong  error // what the driver did wrong
}

// Send writes a frame.
func (a *answer) Send(f modelwire.Frame) error {
	switch {
	case a.broken != nil:
		return a.broken
	case a.wrong != nil:
		return a.wrong
	case a.ctx.Err() != nil:
		return context.Cause(a.ctx)
	}
	line, err := modelwire.MarshalFrame(f)
	if err == nil {
		err = a.stream.Follow(f)
	}
	switch {
	case errdefs.Is(err, errdefs.TooBig):
		a.wrong = modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassLimit, "%v", err)
		return a.wrong
	case err != nil:
		a.wrong = errdefs.New(errdefs.Internal, "the driver sent a wrong frame: %w", err)
		return a.wrong
	}
	return a.write(f, line)
}

func (a *answer) write(f modelwire.Frame, line []byte) error {
	if err := a.out(f, line); err != nil {
		a.broken = err
		return err
	}
	switch f.(type) {
	case *modelwire.Start:
		a.begun = true
	case *modelwire.Delta, *modelwire.ReasoningDelta, *modelwire.CallStart, *modelwire.MessageFrame:
		a.seen = true
	}
	return nil
}

// over reports whether no answer can be written any more.
func (a *answer) over(err error) bool { return a.broken != nil || errors.Is(err, ErrDrop) }

// complete is nil if the answer may end well now.
func (a *answer) complete() error {
	if a.wrong != nil {
		return a.wrong
	}
	if err := a.stream.Follow(&modelwire.Done{Status: "ok"}); err != nil {
		return errdefs.New(errdefs.Internal, "the driver ended without an answer: %w", err)
	}
	return nil
}

// end writes the frames that end the answer, after what the driver returned.
func (a *answer) end(err error) error {
	switch {
	case a.broken != nil:
		return a.broken
	case errors.Is(err, ErrDrop):
		return ErrDrop
	case a.wrong != nil:
		err = a.wrong
	}
	if err == nil {
		if err = a.complete(); err == nil {
			return a.finish(&modelwire.Done{Status: "ok"})
		}
	}
	f := *failure(err)
	f.GenerationSeen = f.GenerationSeen || a.seen
	f.Accepted = f.Accepted || a.begun
	if err := a.finish(&modelwire.Error{Failure: f}); err != nil {
		return err
	}
	return a.finish(&modelwire.Done{Status: "error"})
}

// finish writes a frame whatever the context says.
func (a *answer) finish(f modelwire.Frame) error {
	line, err := modelwire.MarshalFrame(f)
	if e, failed := f.(*modelwire.Error); failed && err != nil {
		// A driver's failure that is none: what it says is said as ours.
		e.Failure = *failure(errdefs.New(errdefs.Internal, "%s (%w)", e.Failure.Message, err))
		line, err = modelwire.MarshalFrame(e)
	}
	if err != nil {
		return err
	}
	return a.write(f, line)
}

// failure is what is told of an error.
func failure(err error) *modelwire.Failure {
	var f *modelwire.Failure
	switch kind := errdefs.KindOf(err); {
	case errors.As(err, &f):
		return f
	case kind == errdefs.Cancelled || kind == errdefs.Timeout || kind == errdefs.Interrupted:
		// Where it was then, nobody knows: nothing says that it had not begun.
		f = modelwire.Fail(kind, modelwire.PhaseBody, modelwire.ClassInterrupted, "the request was given up: %v", err)
		f.Accepted = true
		return f
	default:
		f = modelwire.Fail(kind, modelwire.PhaseDecode, modelwire.ClassOther, "%v", err)
		f.Accepted = true
		return f
	}
}
