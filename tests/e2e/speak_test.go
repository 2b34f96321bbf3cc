package e2e

import (
	"strings"
	"testing"
)

// TestSpeak: the commands that say something into a run, and how the record shows
// it.
func TestSpeak(t *testing.T) {
	w := played(t, []string{
		`{"block":"begin"}`, `{"answer":{"text":"Waiting.","calls":[` + waits + `]}}`,
		`{"block":"steered"}`, `{"expect":{"messages":5,"last":"the other way"}}`, `{"answer":{"text":"All right."}}`,
		`{"block":"goes on"}`, `{"expect":{"messages":7,"last":"and the tests"}}`, `{"answer":{"text":"Those too."}}`,
	}, "bash")
	if r := w.Ctx("agent", "steer", "--session", "s", "m", "hello"); r.Code != 1 || !strings.Contains(r.Err, "has no active run\nhint: start one: ctx agent send --session s m INPUT\n") {
		t.Errorf("without a run: %+v", r)
	}
	c := w.Dial("m")
	c.Send(send("one", "s", w.Workspace, "work"))
	w.AwaitExists(w.Workspace + "/begun")
	for _, args := range [][]string{{"follow-up", "--id", "f", "--session", "s", "m", "and", "the", "tests"}, {"steer", "--id", "t", "--session", "s", "m", "the other way"}} {
		for range 2 { // the same again says nothing twice
			if r := w.Ctx(append([]string{"agent"}, args...)...); r.Code != 0 || r.Out != "" || !strings.HasPrefix(r.Err, "accepted by run ") {
				t.Errorf("%q: %+v", args, r)
			}
		}
	}
	w.Write(w.Workspace+"/pipe", "go on\n")
	c.Until("done")
	out := w.MustCtx("agent", "history", "--session", "s", "m")
	want := "\nuser (steer): the other way\nassistant: All right.\nuser (follow-up): and the tests\nassistant: Those too.\nnote: 2 paths changed in the workspace\n"
	if !strings.HasSuffix(out, want) {
		t.Errorf("history:\n%s\nwant at its end:\n%s", out, want)
	}
}
