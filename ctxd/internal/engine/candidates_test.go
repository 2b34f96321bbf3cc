package engine

import (
	"errors"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/window"
)

func TestPassOn(t *testing.T) {
	for _, class := range []string{
		modelwire.ClassContext, modelwire.ClassRateLimit, modelwire.ClassOverloaded, modelwire.ClassServer, modelwire.ClassAuth,
		modelwire.ClassQuota, modelwire.ClassPolicy, modelwire.ClassInvalid, modelwire.ClassInterrupted, modelwire.ClassNetwork,
		modelwire.ClassLimit, modelwire.ClassOther,
	} {
		f := modelwire.Fail(errdefs.Provider, modelwire.PhaseProvider, class, "x")
		if got, want := passOn(f), class != modelwire.ClassPolicy; got != want {
			t.Errorf("%s: %v", class, got)
		}
		f.GenerationSeen = true
		if passOn(f) {
			t.Errorf("%s: after an answer began", class)
		}
	}
	if passOn(modelwire.Fail(errdefs.Cancelled, modelwire.PhaseBody, modelwire.ClassOther, "x")) {
		t.Error("cancelled")
	}
	if passOn(errors.New("x")) || passOn(errdefs.New(errdefs.Unavailable, "no ctxmodel")) {
		t.Error("what no provider said")
	}
}

func TestStartAt(t *testing.T) {
	names := []libctx.Model{"a/1", "b/2", "c/3"}
	for answered, want := range map[libctx.Model]int{"": 0, "a/1": 0, "c/3": 2, "gone/4": 0} {
		if got := startAt(names, answered); got != want {
			t.Errorf("%s: %d", answered, got)
		}
	}
}

func TestMaxOutput(t *testing.T) {
	for _, c := range []struct {
		bound int64
		size  window.Size
		input int64
		want  int64
	}{
		{0, 1000, 400, 0},      // none is made up
		{500, 0, 400, 500},     // the window is not known
		{500, 1000, 400, 500},  // there is room
		{5000, 1000, 400, 900}, // 100 tokens of input
		{5000, 1000, 401, 899}, // a part of a token is one
		{5000, 1000, 9999, 1},  // never nothing
	} {
		if got := maxOutput(c.bound, c.size, c.input); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestEffort(t *testing.T) {
	for _, c := range [][3]string{{"auto", "high", "high"}, {"", "low", "low"}, {"low", "high", "low"}, {"auto", "auto", "auto"}} {
		if got := effort(c[0], c[1]); got != c[2] {
			t.Errorf("%v: %s", c, got)
		}
	}
}
