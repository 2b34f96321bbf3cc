package run

import (
	"errors"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
)

// TestEveryCell enumerates the state machine.
func TestEveryCell(t *testing.T) {
	const no = State(-1) // refused
	want := map[State][3]State{
		//        Begin   Cancel    Settle
		Queued:   {Active, Ended, Ended},
		Active:   {no, Stopping, Ended},
		Stopping: {no, Stopping, Ended},
		Ended:    {no, no, no},
	}
	for s, row := range want {
		for e, w := range row {
			got, err := next(s, Event(e))
			if w == no {
				if got != s || !errdefs.Is(err, errdefs.Already) {
					t.Errorf("next(%v,%v) = %v, %v; want refusal", s, e, got, err)
				}
				continue
			}
			if got != w || err != nil {
				t.Errorf("next(%v,%v) = %v, %v; want %v", s, e, got, err, w)
			}
			if got < s {
				t.Errorf("next(%v,%v) moves back to %v", s, e, got)
			}
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		cause, err error
		want       string
	}{
		{nil, nil, session.Completed},
		{ErrStopped, nil, session.Cancelled},
		{ErrStopped, errors.New("x"), session.Cancelled},
		{ErrStopped, ErrHost, session.Cancelled},
		{ErrHost, nil, session.Interrupted},
		{ErrHost, ErrHost, session.Interrupted},
		{nil, errors.New("x"), session.Failed},
		{nil, TurnLimit("x"), session.MaxTurns},
		{nil, errdefs.New(errdefs.TooMuch, "x"), session.Failed},
	} {
		if got := judge(c.cause, c.err); got != c.want {
			t.Errorf("judge(%v,%v) = %v, want %v", c.cause, c.err, got, c.want)
		}
	}
}
