package e2e

import (
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// makes is a call of a model that makes a file of that name.
func makes(name string) string {
	return `{"name":"tsh","arguments":{"args":["bash","-c","echo made > ` + name + `"]}}`
}

// wanting is played with an agent that makes these files in one answer, asks before
// each, and then says so whatever is asked.
func wanting(t *testing.T, names ...string) *world.World {
	t.Helper()
	var calls []string
	for _, n := range names {
		calls = append(calls, makes(n))
	}
	w := played(t, []string{
		`{"block":"calls"}`, `{"answer":{"calls":[` + strings.Join(calls, ",") + `]}}`,
		`{"block":"end","repeat":true}`, `{"answer":{"text":"That is all."}}`,
	}, "bash")
	w.MustCtx("agent", "set", "m", "approval", "ask")
	return w
}

// TestApprovalsOfOneAnswer: each answer binds one call, and every call gets its
// result, whatever the answers are.
func TestApprovalsOfOneAnswer(t *testing.T) {
	w := wanting(t, "a", "b", "c", "d", "e")
	c := w.Dial("m")
	c.Send(send("one", "s", w.Workspace, "make them"))
	var calls []string
	ask := func() world.Frame {
		t.Helper()
		q := world.Last(c.Until("approval_request"))
		calls = append(calls, q.Str("call"))
		return q
	}
	c.Send(answer(ask(), "allow_once"))
	c.Send(answer(ask(), "deny"))
	third := ask()
	c.Send(approve(third.Str("run"), calls[0], "allow_once")) // once more the first
	fourth := ask()
	c.Send(answer(third, "allow_once")) // too late
	fifth := ask()
	c.Send(answer(fifth, "allow_once"))
	frames := c.Until("done")
	if world.Last(frames).Str("status") != "ok" || fourth.Str("call") == fifth.Str("call") {
		t.Fatalf("%s", world.JSON(frames))
	}
	for name, want := range map[string]bool{"a": true, "b": false, "c": false, "d": false, "e": true} {
		if made(w, name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	all := durable(w.Dial("m").Ask(`{"op":"resume","session":"s"}`, "end"))
	var decisions []string
	for _, f := range only(all, "approval_result") {
		decisions = append(decisions, f.Str("decision"))
	}
	if got := fmt.Sprint(decisions); got != "[allow_once deny invalid invalid allow_once]" {
		t.Errorf("%s", got)
	}
	if n := len(only(all, "tool_result")); n != 5 {
		t.Errorf("%d results", n)
	}
	for _, p := range only(all, "tool_policy") {
		if by := p.Str("authorization"); (p["allowed"] == true) != (by == "approval") {
			t.Errorf("%s", world.JSON(p))
		}
	}
}

// TestApprovalsMeanwhile: what is said into the run from elsewhere answers nothing,
// and the question stays with the one that began it, for what follows too. Being
// told to finish ends it.
func TestApprovalsMeanwhile(t *testing.T) {
	w := played(t, []string{
		`{"block":"calls"}`, `{"answer":{"calls":[` + makes("a") + `]}}`,
		`{"block":"steered"}`, `{"expect":{"last":"left"}}`, `{"answer":{"text":"Yes."}}`,
		`{"block":"followed"}`, `{"expect":{"last":"and more"}}`, `{"answer":{"calls":[` + makes("b") + `,` + makes("c") + `]}}`,
		`{"block":"end"}`, `{"answer":{"text":"That is all."}}`,
	}, "bash")
	w.MustCtx("agent", "set", "m", "approval", "ask")
	c := w.Dial("m")
	q := world.Last(c.Ask(send("one", "s", w.Workspace, "make them"), "approval_request"))
	tell(w, "steer", "left")
	tell(w, "follow_up", "and more")
	c.Send(answer(q, "allow_once"))
	q = world.Last(c.Until("approval_request"))
	if !made(w, "a") || !strings.Contains(world.JSON(q), ` b"]`) {
		t.Errorf("%s", world.JSON(q))
	}
	tell(w, "finish", "enough")
	frames := c.Until("done")
	if r := only(frames, "approval_result"); len(r) != 1 || r[0].Str("decision") != "cancelled" || world.Last(frames).Str("status") != "ok" || made(w, "b") || made(w, "c") {
		t.Errorf("%s", world.JSON(frames))
	}
}

// TestApprovalIsNotReplayed: a call that may be executed again after a crash is not,
// if somebody was asked about it.
func TestApprovalIsNotReplayed(t *testing.T) {
	w := played(t, []string{
		`{"block":"calls"}`, `{"answer":{"calls":[{"name":"tsh","arguments":{"args":["fs.read","README.md"]}}]}}`,
		`{"block":"end","repeat":true}`, `{"answer":{"text":"That is all."}}`,
	}, "fs.read")
	w.MustCtx("agent", "set", "m", "approval", "ask")
	w.Dial("m").Ask(send("one", "s", w.Workspace, "read it"), "approval_request")
	w.Kill(pid(w, "m"))
	w.MustCtx("agent", "set", "m", "approval", "auto")
	frames := w.Dial("m").Ask(send("two", "s", w.Workspace, "go on"), "done")
	want(t, frames, "start message usage_uncertain done", "ok")
	all := durable(w.Dial("m").Ask(`{"op":"resume","session":"s"}`, "end"))
	if r := only(all, "tool_result"); len(r) != 1 || !strings.Contains(r[0].Str("content"), "not executed") {
		t.Errorf("%s", world.JSON(all))
	}
	if r := only(all, "approval_result"); len(r) != 1 || r[0].Str("decision") != "interrupted" {
		t.Errorf("%s", world.JSON(all))
	}
}

// TestApproveFlag: ctx agent send and tsh allow what is named, by the tool inside,
// and deny all else at once; who follows the session sees it and answers nothing.
func TestApproveFlag(t *testing.T) {
	w := wanting(t, "a", "b")
	r := w.Ctx("agent", "send", "--session", "s", "--approve", "fs.read", "--approve", "bas", "m", "make them")
	if r.Code != 0 || r.Out != "That is all.\n" || strings.Count(r.Err, "--approve bash allows it") != 2 || made(w, "a") {
		t.Errorf("%+v", r)
	}
	w.Write(w.Dir+"/script.jsonl.at", "")
	if r := w.Ctx("agent", "send", "--session", "s", "--approve", "bash", "m", "make them"); r.Code != 0 || !made(w, "a") || !made(w, "b") || strings.Contains(r.Err, "denied;") {
		t.Errorf("%+v", r)
	}
	w.Write(w.Dir+"/script.jsonl.at", "")
	if r := w.Ctx("agent", "send", "--raw", "--session", "s", "m", "make them"); r.Code != 0 || strings.Count(r.Out, `"decision":"deny"`) != 2 || strings.Count(r.Out, `"type":"approval_request"`) != 2 {
		t.Errorf("%+v", r)
	}
	if r := w.Ctx("agent", "tsh", "--session", "s", "m", "--", "bash", "-c", "echo made > t"); r.Code != 1 || r.Out != "" || !strings.Contains(r.Err, "approval_denied") || made(w, "t") {
		t.Errorf("%+v", r)
	}
	if r := w.Ctx("agent", "tsh", "--session", "s", "--approve", "tsh", "m", "--", "bash", "-c", "echo made > t"); r.Code != 1 || made(w, "t") {
		t.Errorf("%+v", r)
	}
	if r := w.Ctx("agent", "tsh", "--session", "s", "--approve=bash", "m", "--", "bash", "-c", "echo made > t; exit 7"); r.Code != 7 || !made(w, "t") {
		t.Errorf("%+v", r)
	}
	if r := w.Ctx("agent", "resume", "--session", "s", "m"); r.Code != 0 || !strings.Contains(r.Err, "answered: denied") || !strings.Contains(r.Err, "answered: allowed once") {
		t.Errorf("%+v", r)
	}
	out := w.MustCtx("agent", "history", "--session", "s", "m")
	if n := strings.Count(out, "asked uid "); n != 9 {
		t.Errorf("%d questions in\n%s", n, out)
	}
}
