package run

import (
	"errors"
	"fmt"

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

// errTurns is below every error of TurnLimit.
var errTurns = errdefs.New(errdefs.TooMuch, "too many turns")

// TurnLimit is the error of a run that wants more turns than a run may take; its
// outcome is max_turns. The kind is errdefs.TooMuch.
func TurnLimit(format string, args ...any) error {
	return &errdefs.Error{Kind: errdefs.TooMuch, Text: fmt.Sprintf(format, args...), Err: errTurns}
}

// judge turns why a run was told to end (nil: it was not) and what its engine
// returned into the outcome of a checkpoint. A cancelled run is cancelled whatever
// its engine ran into meanwhile: cancellation wins.
func judge(cause, err error) string {
	switch {
	case errdefs.Is(cause, errdefs.Interrupted):
		return session.Interrupted
	case cause != nil:
		return session.Cancelled
	case err == nil:
		return session.Completed
	case errors.Is(err, errTurns):
		return session.MaxTurns
	}
	return session.Failed
}
