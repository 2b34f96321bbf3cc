package engine

import (
	"context"
	"errors"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/price"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// answer is what came of one attempt at a request. Message is nil unless the
// provider ended its answer.
type answer struct {
	message *modelwire.MessageFrame
	usage   *modelwire.Usage
	begun   bool // something of an answer was seen
}

// frames is an answer as it comes: *modelclient.Answer.
type frames interface {
	Next() (modelwire.Frame, error)
}

// screen is where provisional frames are shown: *run.Run.
type screen interface {
	Emit(wire.Frame)
	EmitText(kind, text string)
}

// listen takes an answer to its end and shows what of it is provisional. The
// error is a *modelwire.Failure or the cause of the context. An answer that is
// complete at the instant at which the run is cancelled is no answer.
func listen(ctx context.Context, from frames, to screen) (answer, error) {
	var a answer
	for {
		f, err := from.Next()
		if ctx.Err() != nil {
			a.message = nil
			return a, context.Cause(ctx)
		}
		if err != nil {
			a.message = nil
			return a, broken(err, a.begun)
		}
		switch f := f.(type) {
		case *modelwire.Lifecycle:
			to.Emit(&wire.Lifecycle{Head: wire.Head{Type: "lifecycle"}, State: f.State})
		case *modelwire.Delta:
			a.begun = true
			to.EmitText("delta", f.Text)
		case *modelwire.ReasoningDelta:
			a.begun = true
			to.EmitText("reasoning_delta", f.Text)
		case *modelwire.CallStart:
			a.begun = true
		case *modelwire.MessageFrame:
			a.message, a.begun = f, true
		case *modelwire.Usage:
			a.usage = f
		case *modelwire.Error:
			a.message = nil
			return a, &f.Failure
		case *modelwire.Done:
			return a, nil
		}
	}
}

// broken is the failure of an answer that ended without its end. Nobody knows
// then what the provider had done.
func broken(err error, begun bool) *modelwire.Failure {
	f := modelwire.Fail(errdefs.KindOf(err), modelwire.PhaseBody, modelwire.ClassInterrupted, "%v", err)
	f.GenerationSeen, f.Accepted = begun, true
	return f
}

// accepted reports whether the provider may have begun, so that what was used is
// not known. An attempt that was broken off may always have been.
func accepted(err error) bool {
	var f *modelwire.Failure
	return err != nil && (!errors.As(err, &f) || f.Accepted || f.GenerationSeen)
}

// usageKind is what requests of the loop are accounted as.
const usageKind = "assistant"

// account is the record of what an attempt used: its usage, or that this is not
// known. It is nil for one that used nothing.
func account(id libctx.Run, model libctx.Model, u *modelwire.Usage, err error) session.Record {
	if t, known := tokens(u); known {
		use := &session.Usage{
			Run: id, Kind: usageKind, Model: model,
			Input: t.Input, CacheRead: t.CacheRead, CacheWrite: t.CacheWrite, Output: t.Output,
		}
		if cost, known := price.Cost(model, t); known {
			use.Cost = &cost
		}
		return use
	}
	switch {
	case err == nil:
		return &session.UsageUncertain{Run: id, Kind: usageKind, Model: model, Reason: "the provider did not say"}
	case accepted(err):
		return &session.UsageUncertain{Run: id, Kind: usageKind, Model: model, Reason: "the attempt ended before its answer"}
	}
	return nil
}

// tokens are the buckets of a usage. They are known if input and output are; a
// provider that says nothing of its cache has none.
func tokens(u *modelwire.Usage) (t session.Tokens, known bool) {
	if u == nil || u.Input == nil || u.Output == nil {
		return t, false
	}
	of := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return *n
	}
	return session.Tokens{Input: *u.Input, CacheRead: of(u.CacheRead), CacheWrite: of(u.CacheWrite), Output: *u.Output}, true
}
