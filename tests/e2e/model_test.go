package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"cortexfs.org/tests/internal/checker"
	"cortexfs.org/tests/internal/world"
)

// modelled makes a world with the agent m on one of the built-in models, which
// may call these tools; those after "--" directly.
func modelled(t *testing.T, model string, tools ...string) *world.World {
	t.Helper()
	return manned(world.New(t), model, tools...)
}

// manned makes the agent m and sees to it that somebody holds its socket.
func manned(w *world.World, model string, tools ...string) *world.World {
	w.T.Helper()
	credible(w)
	w.MustCtx(modelArgs(model, tools...)...)
	w.MustCtx("agent", "tsh", "m", "help")
	return w
}

// credible looks in the end whether the sessions of a world can be true.
func credible(w *world.World) {
	w.T.Cleanup(func() {
		report, err := checker.Check(checker.Options{Dirs: []string{w.Root + "/home"}, Open: true})
		if err != nil {
			w.T.Error(err)
			return
		}
		for _, p := range report.Problems {
			w.T.Error(p)
		}
	})
}

func modelArgs(model string, tools ...string) []string {
	args, flag := []string{"agent", "new", "m", "--model", model}, "--tool"
	for _, tool := range tools {
		if tool == "--" {
			flag = "--native"
			continue
		}
		args = append(args, flag, tool)
	}
	return args
}

// played is modelled with debug/script and the lines of its script.
func played(t *testing.T, lines []string, tools ...string) *world.World {
	t.Helper()
	w := modelled(t, "debug/script", tools...)
	script(w, lines)
	return w
}

// script makes the lines the script of debug/script.
func script(w *world.World, lines []string) {
	w.T.Helper()
	file := w.Dir + "/script.jsonl"
	w.Write(file, strings.Join(lines, "\n")+"\n")
	w.Write(w.Root+"/model/debug/script.d/default", "script="+file+"\n")
}

// said counts what was asked, for ids.
var said atomic.Int64

// say asks m once and returns the frames up to done.
func say(w *world.World, text string) []world.Frame {
	w.T.Helper()
	return w.Dial("m").Ask(send(fmt.Sprint("say-", said.Add(1)), "s", w.Workspace, text), "done")
}

// recorded is the text of the session's ledger.
func recorded(w *world.World) string { return w.Read(w.Session("m", "s") + "/messages.jsonl") }

// want fails the test unless the frames are of these kinds and end like this.
func want(t *testing.T, frames []world.Frame, kinds, status string) {
	t.Helper()
	if got := world.Kinds(frames); got != kinds || world.Last(frames).Str("status") != status {
		t.Errorf("frames %s\nwant   %s, %s\nare    %s", got, kinds, status, world.JSON(frames))
	}
}

func holds(t *testing.T, frames []world.Frame, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(world.JSON(frames), text) {
			t.Errorf("no %q in %s", text, world.JSON(frames))
		}
	}
}

// TestModelAgent: a model agent really reads a file, and says what is in it.
func TestModelAgent(t *testing.T) {
	w := modelled(t, "debug/tools", "fs.read", "fs.list")
	if out := w.MustCtx("agent", "send", "m", "run: fs.read README.md"); !strings.Contains(out, "one\ntwo\nthree") {
		t.Errorf("%s", out)
	}
	frames := say(w, "run: fs.read README.md\nthen:\nrun: fs.list .")
	want(t, frames, "start tool_call usage tool_policy tool_result tool_call usage tool_policy tool_result message usage done", "ok")
	holds(t, frames, `"via":"tsh"`, "README.md", "three")
	if temp := w.MustCtx("agent", "send", "--scope", "temp", "m", "run: fs.read README.md"); !strings.Contains(temp, "three") {
		t.Errorf("temp: %s", temp)
	}
}

// TestRequest: what a model is told.
func TestRequest(t *testing.T) {
	w := played(t, []string{
		`{"block":"first"}`,
		`{"expect":{"messages":2,"last":"read","tools":["fs.read","tsh"],"contains":["Your only native callable tool is tsh.","be kind","The rules of this place","fs.read"],"lacks":["CTX_TEST_SECRET","hunter2"]}}`,
		`{"answer":{"text":"Reading.","reasoning":"I should.","calls":[{"name":"fs.read","arguments":{"path":"README.md"}},{"name":"tsh","arguments":{"args":["fs.list","."]}}]}}`,
		`{"block":"second"}`,
		`{"expect":{"messages":5,"contains":["call-2-1","call-2-2","three","I should."]}}`,
		`{"answer":{"text":"Done."}}`,
		`{"block":"third"}`,
		`{"expect":{"messages":7,"last":"again"}}`,
		`{"answer":{"text":"Once more."}}`,
	}, "fs.list", "--", "fs.read")
	w.Write(w.Root+"/agent/m.d/system.md", "be kind\n")
	w.Write(w.Workspace+"/AGENTS.md", "The rules of this place.\n")
	frames := say(w, "read")
	want(t, frames, "start reasoning_message message tool_call tool_call usage_uncertain tool_policy tool_policy tool_result tool_result message usage_uncertain done", "ok")
	want(t, say(w, "again"), "start message usage_uncertain done", "ok")
	if snapshot := w.Read(w.Session("m", "s") + "/AGENTS.md"); !strings.Contains(snapshot, "The rules of this place.") {
		t.Errorf("snapshot %q", snapshot)
	}
}

// TestBadCalls: a call that can not be carried out is kept and paired with what
// is wrong with it, and the run goes on.
func TestBadCalls(t *testing.T) {
	var many []string
	for range 34 {
		many = append(many, `{"name":"tsh","arguments":{"args":["help"]}}`)
	}
	w := played(t, []string{
		`{"block":"not well formed"}`,
		`{"answer":{"calls":[{"name":"tsh","arguments":"{\"args\":"},{"name":"no/tool","arguments":{}},{"name":"other","arguments":{}},{"name":"fs.read","arguments":{"path":7}},{"name":"tsh","arguments":" "}]}}`,
		`{"block":"cut off"}`,
		`{"expect":{"messages":8,"contains":["call-2-1","call-2-5","the arguments do not fit","no such tool","only through tsh"]}}`,
		`{"answer":{"calls":[{"name":"tsh","arguments":{"args":["fs.read","README.md"]}}],"stop":"length"}}`,
		`{"block":"too many"}`,
		`{"expect":{"messages":10,"contains":["cut off"],"lacks":["three"]}}`,
		`{"answer":{"calls":[` + strings.Join(many, ",") + `]}}`,
		`{"block":"blank"}`,
		`{"expect":{"messages":45,"contains":["at most 32"]}}`,
		`{"type":"message","content":[{"type":"reasoning","text":"hm"},{"type":"text","text":" \n"}],"stop":"end"}`,
		`{"block":"after a blank answer"}`,
		`{"expect":{"messages":46,"last":"and now"}}`,
		`{"answer":{"text":"Well."}}`,
	}, "--", "fs.read")
	frames := say(w, "go")
	if d := world.Last(frames); d.Str("status") != "ok" {
		t.Fatalf("%s", world.JSON(frames))
	}
	results := map[string]int{}
	for _, f := range frames {
		if f.Type() == "tool_result" {
			results[f.Str("call")]++
		}
	}
	if len(results) != 5+1+34 || strings.Contains(world.JSON(frames), "three") {
		t.Errorf("%d calls have results", len(results))
	}
	want(t, say(w, "and now"), "start message usage_uncertain done", "ok")
}

// TestFallback: the next model is asked while no answer has begun, if the policy
// lets the agent use it, and never afterwards.
func TestFallback(t *testing.T) {
	busy := `{"fail":{"code":"EREMOTEIO","phase":"provider","status":503,"class":"overloaded","accepted":true,"message":"busy"}}`
	w := played(t, []string{
		`{"block":"busy"}`, busy,
		`{"block":"busy again"}`, busy,
		`{"block":"begun"}`, `{"type":"delta","text":"It"}`, busy,
	})
	w.Write(w.Root+"/model/debug/script.d/fallback", "debug/tools\ndebug/echo\n")
	frames := say(w, "one")
	want(t, frames, "start usage_uncertain candidate_error candidate_error error done", "error")
	holds(t, frames, "EACCES")
	policy := w.Root + "/agent/m.d/policy"
	w.Write(policy, w.Read(policy)+"allow m_t model:debug/echo use\n")
	frames = say(w, "two")
	want(t, frames, "start usage_uncertain candidate_error candidate_error message usage done", "ok")
	holds(t, frames, "two")
	frames = say(w, "three")
	want(t, frames, "start usage_uncertain error done", "error")
	holds(t, frames, "EREMOTEIO")
	// A window that does not go with a fallback is told too.
	w.Write(w.Root+"/model/debug/echo.d/limit", "4000\n")
	w.Write(w.Root+"/agent/m.d/window", "8000\n")
	frames = say(w, "four") // the script has ended
	want(t, frames, "start candidate_error candidate_error error done", "error")
	holds(t, frames, "over the model's limit")
}

// TestNotAllowed: without its policy line a model is not asked.
func TestNotAllowed(t *testing.T) {
	w := modelled(t, "debug/echo")
	w.Write(w.Root+"/agent/m.d/policy", "allow m_t tool:tsh execute\n")
	frames := say(w, "hello")
	want(t, frames, "start error done", "error")
	holds(t, frames, "EACCES", "model:debug/echo")
	w.Write(w.Root+"/agent/m.d/policy", "allow m_t model:debug/echo use\n")
	want(t, say(w, "hello"), "start message usage done", "ok")
}

// TestBrokenAnswers: what ends too early is no answer, its use is not known, and
// the session works on, also when ctxmodel died.
func TestBrokenAnswers(t *testing.T) {
	w := played(t, []string{
		`{"block":"dropped"}`, `{"type":"delta","text":"Half an"}`, `{"fault":"drop"}`,
		`{"block":"killed"}`, `{"type":"delta","text":"Half an"}`, `{"fault":"kill"}`,
		`{"block":"unsaid"}`, `{"type":"message","content":[{"type":"text","text":"whole"}],"stop":"end"}`,
		`{"block":"plain"}`, `{"expect":{"messages":4,"lacks":["Half an"]}}`, `{"answer":{"text":"Yes."}}`,
	})
	want(t, say(w, "one"), "start usage_uncertain error done", "error")
	want(t, say(w, "two"), "start usage_uncertain error done", "error")
	want(t, say(w, "three"), "start message usage_uncertain done", "ok")
	want(t, say(w, "four"), "start message usage_uncertain done", "ok")
	if strings.Contains(recorded(w), "Half an") {
		t.Error("half an answer is recorded")
	}
}

// TestCancelModel: a run ends at once while its model thinks, and what the
// model had said is not kept.
func TestCancelModel(t *testing.T) {
	w := played(t, []string{
		`{"block":"silent"}`, `{"type":"lifecycle","state":"loading"}`, `{"fault":"hang"}`,
		`{"block":"speaking"}`, `{"type":"delta","text":"Half an"}`, `{"fault":"hang"}`,
		`{"block":"then"}`, `{"expect":{"lacks":["Half an"]}}`, `{"answer":{"text":"Yes."}}`,
	})
	for i, kind := range []string{"lifecycle", "delta"} {
		c := w.Dial("m")
		c.Send(send(fmt.Sprint("run-", i), "s", w.Workspace, "think"))
		c.Until(kind)
		w.Dial("m").Ask(fmt.Sprintf(`{"op":"cancel","id":"run-%d"}`, i), "accepted")
		want(t, c.Until("done"), "usage_uncertain done", "cancelled")
	}
	want(t, say(w, "now"), "start message usage_uncertain done", "ok")
}

// TestModelWithoutTools: a run without tools declares none, and calls none.
func TestModelWithoutTools(t *testing.T) {
	w := played(t, []string{
		`{"block":"first"}`, `{"expect":{"tools":[]}}`,
		`{"answer":{"calls":[{"name":"tsh","arguments":{"args":["fs.read","README.md"]}}]}}`,
		`{"block":"second"}`, `{"expect":{"tools":[],"contains":["may not call tools"],"lacks":["three"]}}`, `{"answer":{"text":"Well."}}`,
	}, "fs.read")
	frames := w.Dial("m").Ask(world.JSON(map[string]any{
		"op": "send", "id": "free", "session": "s", "workspace": w.Workspace, "input": "go", "tools": false,
	}), "done")
	want(t, frames, "start tool_call usage_uncertain tool_result message usage_uncertain done", "ok")
}

// TestTurnLimit: a model that never ends is ended.
func TestTurnLimit(t *testing.T) {
	w := played(t, []string{
		`{"block":"for ever","repeat":true}`, `{"answer":{"calls":[{"name":"tsh","arguments":"no"}]}}`,
	})
	frames := say(w, "go")
	if f := frames[len(frames)-2]; f.Str("code") != "E2BIG" || !strings.Contains(recorded(w), `"outcome":"max_turns"`) {
		t.Errorf("%v", f)
	}
	if n := strings.Count(world.Kinds(frames), "tool_result"); n != 256 {
		t.Errorf("%d turns", n)
	}
}

// TestDeaf: a model that goes on calling after it was told that it may not is
// asked twice, and no more.
func TestDeaf(t *testing.T) {
	call := `"calls":[{"name":"tsh","arguments":{"args":["tools"]}}]`
	for text, ends := range map[string]string{`"text":"All I know.",`: "done:ok", "": "error done:error"} {
		w := played(t, []string{`{"block":"for ever","repeat":true}`, `{"answer":{` + text + call + `}}`})
		frames := w.Dial("m").Ask(world.JSON(map[string]any{
			"op": "send", "id": "deaf", "session": "s", "workspace": w.Workspace, "input": "go", "tools": false,
		}), "done")
		if n := strings.Count(world.Kinds(frames), "tool_result"); n != 2 {
			t.Errorf("%d turns", n)
		}
		ended := "done:" + world.Last(frames).Str("status")
		if f := frames[len(frames)-2]; f.Str("type") == "error" {
			ended = "error " + ended
			if f.Str("code") != "E2BIG" || !strings.Contains(recorded(w), `"outcome":"max_turns"`) {
				t.Errorf("%v", f)
			}
		}
		if ended != ends {
			t.Errorf("with %q: %s, not %s", text, ended, ends)
		}
	}
}

// TestLongAnswer: an answer of more than a frame holds is whole in the ledger.
func TestLongAnswer(t *testing.T) {
	long := strings.Repeat("All work and no play makes Jack a dull boy. ", 40_000)
	w := played(t, []string{
		`{"block":"long"}`, `{"answer":{"text":` + world.JSON(long) + `}}`,
		`{"block":"after"}`, `{"answer":{"text":"Yes."}}`,
	})
	frames := say(w, "go")
	want(t, frames, "start message usage_uncertain done", "ok")
	holds(t, frames, `"truncated":true`)
	if !strings.Contains(recorded(w), long) {
		t.Error("the answer is not whole in the ledger")
	}
	frames = say(w, "and")
	want(t, frames, "start context message usage_uncertain done", "ok")
}

// TestWindow: a prompt never passes the window; what is left out of it stays in
// the ledger, and what can not be left out ends the run.
func TestWindow(t *testing.T) {
	w := modelled(t, "debug/echo")
	w.Write(w.Root+"/agent/m.d/window", "3000\n")
	for i := range 6 {
		frames := say(w, strings.Repeat(fmt.Sprint("word", i, " "), 200))
		if d := world.Last(frames); d.Str("status") != "ok" {
			t.Fatalf("%s", world.JSON(frames))
		}
		if left := strings.Contains(world.Kinds(frames), "context"); i == 0 && left || i == 5 && !left {
			t.Errorf("message %d: %s", i, world.Kinds(frames))
		}
	}
	frames := say(w, strings.Repeat("much ", 10_000))
	want(t, frames, "start error done", "error")
	holds(t, frames, "E2BIG")
	if text := recorded(w); !strings.Contains(text, "word0") || !strings.Contains(text, `"outcome":"failed","code":"E2BIG"`) && !strings.Contains(text, `"outcome":"failed"`) {
		t.Error("the ledger lost something")
	}
}

// TestWindowVariables: tools are told of a window that is known.
func TestWindowVariables(t *testing.T) {
	w := modelled(t, "debug/tools", "bash")
	w.Write(w.Root+"/agent/m.d/window", "5000\n")
	ask := "call: tsh " + world.JSON(map[string]any{"args": []string{"bash", "-c", "echo $CTX_CONTEXT_WINDOW_TOKENS/$CTX_CONTEXT_WINDOW_CHARS."}})
	holds(t, say(w, ask), "5000/20000.")
	w.Write(w.Root+"/agent/m.d/window", "auto\n")
	if err := os.Remove(w.Root + "/model/debug/tools.d/limit"); err != nil {
		t.Fatal(err)
	}
	holds(t, say(w, ask), `"content":"/.`)
}

// TestNobodyServesModels: a server of an agent that somebody started by hand
// starts a ctxmodel of its own for each request; that of root does not.
func TestNobodyServesModels(t *testing.T) {
	worlds := []*world.World{world.New(t)}
	if os.Geteuid() == 0 {
		worlds = append(worlds, world.NewAs(t, 60001))
	}
	for _, w := range worlds {
		w.MustCtx(modelArgs("debug/tools", "fs.read")...)
		serve(t, w, "m")
		frames := say(w, "run: fs.read README.md")
		if w.Layout.System {
			want(t, frames, "start error done", "error")
			holds(t, frames, "ECONNREFUSED")
			continue
		}
		want(t, frames, "start tool_call usage tool_policy tool_result message usage done", "ok")
	}
}

// TestModelKilledInACall: the server dies while a tool of a model runs. The call
// is not made again, its result says what is known, and the next request is
// whole.
func TestModelKilledInACall(t *testing.T) {
	w := played(t, []string{
		`{"block":"begin"}`,
		`{"answer":{"calls":[{"name":"tsh","arguments":{"args":["shell.exec","echo x >> count; echo > begun; sleep 1000"]}},{"name":"tsh","arguments":{"args":["shell.exec","echo y >> count"]}}]}}`,
		`{"block":"after"}`,
		`{"expect":{"messages":6,"last":"go on","contains":["call-2-1","call-2-2"]}}`,
		`{"answer":{"text":"Where was I?"}}`,
	}, "shell.exec")
	c := w.Dial("m")
	c.Send(send("killed", "s", w.Workspace, "work"))
	w.AwaitExists(w.Workspace + "/begun")
	w.Kill(pid(w, "m"))
	w.AwaitGone("a killed server's sandboxes", w.Inside)
	want(t, say(w, "go on"), "start message usage_uncertain done", "ok")
	if n := w.Read(w.Workspace + "/count"); n != "x\n" {
		t.Errorf("the calls left %q", n)
	}
	if text := recorded(w); strings.Count(text, `"type":"tool_result"`) != 2 || !strings.Contains(text, `"outcome":"interrupted"`) {
		t.Errorf("%s", text)
	}
}

// TestCancelInACall: a cancelled run asks its model nothing more, and every call
// has a result.
func TestCancelInACall(t *testing.T) {
	w := played(t, []string{
		`{"block":"begin"}`,
		`{"answer":{"calls":[{"name":"tsh","arguments":{"args":["shell.exec","echo > begun; sleep 1000"]}},{"name":"tsh","arguments":{"args":["shell.exec","echo > never"]}}]}}`,
		`{"block":"after"}`,
		`{"expect":{"messages":6,"last":"go on","contains":["call-2-1","call-2-2"]}}`,
		`{"answer":{"text":"Well."}}`,
	}, "shell.exec")
	c := w.Dial("m")
	c.Send(send("cancelled", "s", w.Workspace, "work"))
	w.AwaitExists(w.Workspace + "/begun")
	w.Dial("m").Ask(`{"op":"cancel","id":"cancelled"}`, "accepted")
	want(t, c.Until("done"), "start tool_call tool_call usage_uncertain tool_policy tool_result tool_result changes done", "cancelled")
	want(t, say(w, "go on"), "start message usage_uncertain done", "ok")
	if _, err := os.Stat(w.Workspace + "/never"); err == nil {
		t.Error("a call was made after the run was cancelled")
	}
}
