package engine

import (
	"errors"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
)

// startAt is where in the chain a request begins: at the model that answered
// before in this run, so that one which is out of order is not asked at every
// turn, or at the front.
func startAt(names []libctx.Model, answered libctx.Model) int {
	return max(0, slices.Index(names, answered))
}

// passOn reports whether the next model is asked after one failed like this:
// only while no answer has begun, and not where the reason lies with us or with
// what was asked.
func passOn(err error) bool {
	var f *modelwire.Failure
	if !errors.As(err, &f) || f.GenerationSeen || f.Code == errdefs.Cancelled {
		return false
	}
	return f.Class != modelwire.ClassPolicy
}
