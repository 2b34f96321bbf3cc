package sandboxrun

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"cortexfs.org/libctx/procid"
)

// TestKnownBeforeTheGate: whoever registers sandboxes is told of each once, before
// its gate opens, when nothing has begun in it but the first process; of one that
// was prepared, before its entry step is asked for anything.
func TestKnownBeforeTheGate(t *testing.T) {
	w := newWorld(t)
	w.l.spares.on = false
	var told []procid.ID
	below := func(first procid.ID) int {
		list, err := procid.Children(first.PID)
		if err != nil {
			t.Error(err)
		}
		return len(list)
	}
	run := func(want int) {
		t.Helper()
		var out bytes.Buffer
		n := len(told)
		_, err := w.l.Run(context.Background(), w.spec("/bin/echo", "hello"), Stdio{Stdout: &out, Started: func(first procid.ID) error {
			told = append(told, first)
			if got := below(first); got != want {
				t.Errorf("%d processes are below the first one, not %d", got, want)
			}
			if out.Len() > 0 {
				t.Error("it has spoken already")
			}
			return nil
		}})
		if err != nil || out.String() != "hello\n" || len(told) != n+1 || slices.Contains(told[:n], told[n]) {
			t.Errorf("%q, %v, told of %v", out.String(), err, told)
		}
	}
	for range 10 {
		run(0)
	}
	w.l.spares.on = true
	was := w.prepared(w.spec())
	run(1) // the entry step
	if told[len(told)-1] != was {
		t.Errorf("told of %v, prepared was %v", told[len(told)-1], was)
	}
}
