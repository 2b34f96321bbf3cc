package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
	"github.com/google/go-cmp/cmp"
)

// tape plays frames, then an error.
type tape struct {
	frames []modelwire.Frame
	err    error
	before func(n int) // called before the n-th frame comes
	n      int
}

func (t *tape) Next() (modelwire.Frame, error) {
	if t.before != nil {
		t.before(t.n)
	}
	t.n++
	if t.n > len(t.frames) {
		return nil, t.err
	}
	return t.frames[t.n-1], nil
}

// wall notes what is shown.
type wall struct{ seen []string }

func (w *wall) Emit(f wire.Frame)          { w.seen = append(w.seen, f.Header().Type) }
func (w *wall) EmitText(kind, text string) { w.seen = append(w.seen, kind+" "+text) }

func n(i int64) *int64 { return &i }

func answered() []modelwire.Frame {
	return []modelwire.Frame{
		&modelwire.Lifecycle{State: "loading"}, &modelwire.Start{Model: "a/b"},
		&modelwire.ReasoningDelta{Text: "hm"}, &modelwire.Delta{Text: "he"}, &modelwire.Delta{Text: "llo"},
		&modelwire.CallStart{Name: "tsh"}, &modelwire.CallDelta{Text: "{}"}, &modelwire.CallEnd{},
		&modelwire.MessageFrame{Content: []wire.Part{wire.Text("hello")}, Stop: "end"},
		&modelwire.Usage{Input: n(3), Output: n(1)}, &modelwire.Done{Status: "ok"},
	}
}

func TestListen(t *testing.T) {
	var w wall
	a, err := listen(t.Context(), &tape{frames: answered()}, &w)
	if err != nil || a.message == nil || *a.usage.Input != 3 || !a.begun {
		t.Fatalf("%+v %v", a, err)
	}
	if diff := cmp.Diff([]string{"lifecycle", "reasoning_delta hm", "delta he", "delta llo"}, w.seen); diff != "" {
		t.Error(diff)
	}
}

// TestListenToTheEnd: an answer that stops anywhere is none, and what it used is
// not known; the failure of a provider is passed on as it is.
func TestListenToTheEnd(t *testing.T) {
	all := answered()
	for cut := range all {
		a, err := listen(t.Context(), &tape{frames: all[:cut], err: io.ErrUnexpectedEOF}, &wall{})
		var f *modelwire.Failure
		if !errors.As(err, &f) || !f.Accepted || a.message != nil || !accepted(err) {
			t.Errorf("cut at %d: %+v %v", cut, a, err)
		}
		if begun := cut > 2; f.GenerationSeen != begun || passOn(err) == begun {
			t.Errorf("cut at %d: begun %v", cut, f.GenerationSeen)
		}
		fail := modelwire.Fail(errdefs.Timeout, modelwire.PhaseHeaders, modelwire.ClassNetwork, "slow")
		a, err = listen(t.Context(), &tape{frames: append(all[:cut:cut], &modelwire.Error{Failure: *fail})}, &wall{})
		if !errors.As(err, &f) || f.Message != "slow" || !errdefs.Is(err, errdefs.Timeout) || a.message != nil {
			t.Errorf("failed at %d: %+v %v", cut, a, err)
		}
	}
}

// TestCancelledWins: at whatever instant a run is cancelled, also that of the
// last frame, there is no answer.
func TestCancelledWins(t *testing.T) {
	why := errdefs.New(errdefs.Cancelled, "cancelled")
	for at := range answered() {
		ctx, cancel := context.WithCancelCause(t.Context())
		a, err := listen(ctx, &tape{frames: answered(), before: func(n int) {
			if n == at {
				cancel(why)
			}
		}}, &wall{})
		if !errors.Is(err, why) || a.message != nil || !accepted(err) || passOn(err) {
			t.Errorf("at %d: %+v %v", at, a, err)
		}
	}
}

func TestAccount(t *testing.T) {
	known := &modelwire.Usage{Input: n(10), CacheRead: n(4), CacheWrite: n(2), Output: n(5), Reasoning: n(3)}
	sent := modelwire.Fail(errdefs.Provider, modelwire.PhaseBody, modelwire.ClassServer, "x")
	sent.Accepted = true
	for _, c := range []struct {
		name  string
		usage *modelwire.Usage
		err   error
		want  string
	}{
		{"answered", known, nil, "usage 10 4 2 5"},
		{"no cache", &modelwire.Usage{Input: n(1), Output: n(0)}, nil, "usage 1 0 0 0"},
		{"silent", nil, nil, "uncertain"},
		{"half said", &modelwire.Usage{Input: n(1)}, nil, "uncertain"},
		{"failed, known", known, sent, "usage 10 4 2 5"},
		{"failed, accepted", nil, sent, "uncertain"},
		{"never sent", nil, modelwire.Fail(errdefs.Provider, modelwire.PhaseConnect, modelwire.ClassNetwork, "x"), ""},
		{"cancelled", nil, context.Canceled, "uncertain"},
	} {
		got := ""
		switch r := account("run", "a/b", c.usage, c.err).(type) {
		case *session.Usage:
			got = fmt.Sprintf("usage %d %d %d %d", r.Input, r.CacheRead, r.CacheWrite, r.Output)
		case *session.UsageUncertain:
			got = "uncertain"
		}
		if got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
