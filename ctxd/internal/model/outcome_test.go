package model

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/modelwire"
)

// TestLogged: a failure is a warning with what it was, also if its client left as
// soon as it knew; one that left before is not.
func TestLogged(t *testing.T) {
	f := modelwire.Fail(errdefs.Provider, modelwire.PhaseProvider, modelwire.ClassRateLimit, "HTTP 429: slow")
	f.Status = 429
	for _, c := range []struct {
		frames []modelwire.Frame
		err    error
		want   string
	}{
		{[]modelwire.Frame{&modelwire.Error{Failure: *f}, &modelwire.Done{Status: "error"}}, nil, "warn request failed rate_limit 429"},
		{[]modelwire.Frame{&modelwire.Error{Failure: *f}}, errors.New("broken pipe"), "warn request failed rate_limit 429"},
		{[]modelwire.Frame{&modelwire.Start{Model: "a/b"}}, errors.New("broken pipe"), "info client gone"},
		{[]modelwire.Frame{&modelwire.Start{Model: "a/b"}}, ErrDrop, "warn request dropped"},
		{[]modelwire.Frame{&modelwire.Done{Status: "ok"}}, nil, "info request ok"},
	} {
		var to bytes.Buffer
		l, err := log.New(&to, "debug")
		must(t, err)
		o := outcome{op: "generate"}
		for _, f := range c.frames {
			o.note(f)
		}
		o.log(l, &modelwire.Generate{Model: "a/b"}, time.Second, c.err)
		for _, word := range strings.Fields(c.want) {
			if !strings.Contains(strings.ToLower(to.String()), word) {
				t.Errorf("%v: %s lacks %s", c.err, to.String(), word)
			}
		}
	}
}
