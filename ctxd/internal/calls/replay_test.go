package calls

import (
	"context"
	"errors"
	"testing"

	"cortexfs.org/libctx/session"
	"github.com/google/go-cmp/cmp"
)

func lostCalls(names string) (calls []lostCall) {
	for _, c := range list(names) {
		calls = append(calls, lostCall{c, session.OutcomeUnknown})
	}
	return calls
}

// TestReplay: a carried call is executed after a decision of its own, if it still
// may be; else nobody knows what came of it.
func TestReplay(t *testing.T) {
	for _, c := range []struct {
		calls string
		free  bool
		want  []string
		err   string
	}{
		{calls: ""},
		{calls: "r1 r2", want: []string{"commit ?r1", "run r1", "commit =r1", "commit ?r2", "run r2", "commit =r2"}},
		{calls: "c1 r2", want: []string{"commit =c1?", "commit ?r2", "run r2", "commit =r2"}},
		{calls: "v1 r2", want: []string{"commit =v1?", "commit ?r2", "run r2", "commit =r2"}},
		{calls: "o1 r2", err: "over"},
		{calls: "d1", want: []string{"commit =d1?"}},
		{calls: "r1 l2 r3", want: []string{"commit ?r1", "run r1", "commit =r1"}, err: "lost"},
		{calls: "r1 c2", free: true, want: []string{"commit =r1?", "commit =c2?"}},
	} {
		f := &fake{free: func() bool { return c.free }}
		err := replay(t.Context(), f, lostCalls(c.calls))
		if diff := cmp.Diff(c.want, f.log); diff != "" {
			t.Errorf("%s: %s", c.calls, diff)
		}
		if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %v, want %q", c.calls, err, c.err)
		}
		if f.held != 0 {
			t.Errorf("%s: %d tickets were not closed", c.calls, f.held)
		}
	}
}

// TestReplayCancelled: nothing is executed for a run that is over.
func TestReplayCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stop")
	f := &fake{began: func(string) { cancel(why) }}
	if err := replay(ctx, f, lostCalls("r1 r2")); !errors.Is(err, why) {
		t.Errorf("err = %v", err)
	}
	if diff := cmp.Diff([]string{"commit ?r1", "run r1", "commit =r1"}, f.log); diff != "" {
		t.Error(diff)
	}
}
