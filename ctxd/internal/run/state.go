package run

import (
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
)

// State of a run in memory. It only moves forward.
type State int

const (
	Queued   State = iota // waits for its session; nothing is recorded yet
	Active                // its user entry is durable, its engine works
	Stopping              // cancelled while active; the engine settles what it had begun
	Ended                 // its checkpoint is durable, or storage refused it
)

// Event is what can happen to a run.
type Event int

const (
	Begin  Event = iota // its turn came and its first records are durable
	Cancel              // a client, a deadline or the daemon's end
	Settle              // its last record is durable, or can never be
)

// next is the whole life of a run: state and event to state. A pair that is not
// allowed returns the state unchanged and errdefs.Already.
func next(s State, e Event) (State, error) {
	switch {
	case s == Queued && e == Begin:
		return Active, nil
	case s == Queued && e == Cancel:
		return Ended, nil
	case s == Queued && e == Settle: // its first records were refused
		return Ended, nil
	case s == Active && e == Cancel:
		return Stopping, nil
	case (s == Active || s == Stopping) && e == Settle:
		return Ended, nil
	case s == Stopping && e == Cancel: // asked twice
		return Stopping, nil
	}
	return s, errdefs.New(errdefs.Already, "the run has ended")
}

// judge turns what an engine returned into the outcome of a checkpoint. A cancelled run is
// cancelled whatever its engine ran into meanwhile: cancellation wins.
func judge(cancelled bool, err error) string {
	switch {
	case cancelled:
		return session.Cancelled
	case err == nil:
		return session.Completed
	case errdefs.Is(err, errdefs.TooMuch):
		return session.MaxTurns
	}
	return session.Failed
}
