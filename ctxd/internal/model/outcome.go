package model

import (
	"errors"
	"time"

	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/modelwire"
)

// outcome is what the log says of a request: how it went, and nothing of what
// was said.
type outcome struct {
	op      string
	status  string
	failure *modelwire.Failure
	frames  int
}

func (o *outcome) note(f modelwire.Frame) {
	o.frames++
	switch f := f.(type) {
	case *modelwire.Error:
		o.failure = &f.Failure
	case *modelwire.Done:
		o.status = f.Status
	}
}

func (o *outcome) log(to *log.Logger, r modelwire.Request, took time.Duration, err error) {
	to = to.With("op", o.op)
	switch r := r.(type) {
	case *modelwire.Generate:
		to = to.With("model", string(r.Model))
	case *modelwire.Probe:
		to = to.With("provider", r.Provider)
	}
	switch {
	case errors.Is(err, ErrDrop):
		to.Warn("request dropped", "frames", o.frames, "took", took)
	case o.failure != nil: // also if the client did not wait for the frame after it
		to.Warn("request failed", "frames", o.frames, "took", took, "code", string(o.failure.Code), "class", o.failure.Class,
			"phase", o.failure.Phase, "status", o.failure.Status, "why", o.failure.Message)
	case err != nil:
		to.Info("client gone", "frames", o.frames, "took", took)
	default:
		to.Info("request", "status", o.status, "frames", o.frames, "took", took)
	}
}
