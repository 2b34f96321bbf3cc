package e2e

import (
	"os"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// waits is a call that has begun when the file begun is there, and is over when
// somebody has opened the pipe for writing.
const waits = `{"name":"tsh","arguments":{"args":["bash","-c","mkfifo pipe; echo > begun; cat pipe"]}}`

// tell says something into the run of session s and waits until that is
// accepted.
func tell(w *world.World, op, text string) {
	w.T.Helper()
	w.Dial("m").Ask(world.JSON(map[string]any{"op": op, "id": op + "-1", "session": "s", "input": text}), "accepted")
}

// TestSteer: what is said into a run comes to the model before it is asked the
// next time, behind the results of its calls.
func TestSteer(t *testing.T) {
	w := played(t, []string{
		`{"block":"begin"}`, `{"answer":{"calls":[` + waits + `]}}`,
		`{"block":"steered"}`, `{"expect":{"messages":5,"last":"the other way","contains":["call-2-1"]}}`, `{"answer":{"text":"All right."}}`,
	}, "bash")
	c := w.Dial("m")
	c.Send(send("one", "s", w.Workspace, "work"))
	w.AwaitExists(w.Workspace + "/begun")
	tell(w, "steer", "the other way")
	w.Write(w.Workspace+"/pipe", "go on\n")
	frames := c.Until("done")
	if world.Last(frames).Str("status") != "ok" || !strings.Contains(world.Kinds(frames), "tool_result steering_delivered message") {
		t.Errorf("%s", world.JSON(frames))
	}
}

// TestFollowUp: a run goes on where it would have ended.
func TestFollowUp(t *testing.T) {
	w := played(t, []string{
		`{"block":"begin"}`, `{"answer":{"calls":[` + waits + `]}}`,
		`{"block":"would end"}`, `{"expect":{"messages":4}}`, `{"answer":{"text":"Done."}}`,
		`{"block":"goes on"}`, `{"expect":{"messages":6,"last":"and the tests"}}`, `{"answer":{"text":"Those too."}}`,
	}, "bash")
	c := w.Dial("m")
	c.Send(send("one", "s", w.Workspace, "work"))
	w.AwaitExists(w.Workspace + "/begun")
	tell(w, "follow_up", "and the tests")
	w.Write(w.Workspace+"/pipe", "go on\n")
	frames := c.Until("done")
	if world.Last(frames).Str("status") != "ok" || !strings.Contains(world.Kinds(frames), "message usage_uncertain follow_up_delivered message") {
		t.Errorf("%s", world.JSON(frames))
	}
}

// TestFinish: a run that is told to finish starts no call any more, and its model
// is asked without tools.
func TestFinish(t *testing.T) {
	w := played(t, []string{
		`{"block":"begin"}`, `{"answer":{"calls":[` + waits + `,{"name":"tsh","arguments":{"args":["bash","-c","echo > never"]}}]}}`,
		`{"block":"finishing"}`, `{"expect":{"messages":6,"last":"enough","tools":[],"contains":["call-2-2","may not call tools"]}}`,
		`{"answer":{"calls":[{"name":"tsh","arguments":{"args":["bash","-c","echo > never"]}}]}}`,
		`{"block":"still"}`, `{"expect":{"messages":8,"tools":[]}}`, `{"answer":{"text":"Well then."}}`,
	}, "bash")
	c := w.Dial("m")
	c.Send(send("one", "s", w.Workspace, "work"))
	w.AwaitExists(w.Workspace + "/begun")
	tell(w, "finish", "enough")
	w.Write(w.Workspace+"/pipe", "go on\n")
	frames := c.Until("done")
	if world.Last(frames).Str("status") != "ok" {
		t.Errorf("%s", world.JSON(frames))
	}
	if _, err := os.Stat(w.Workspace + "/never"); err == nil {
		t.Error("a call was made after the run was told to finish")
	}
}
