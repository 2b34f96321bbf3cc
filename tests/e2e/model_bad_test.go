package e2e

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	provider "cortexfs.org/tests/internal/scripted"
	"cortexfs.org/tests/internal/world"
)

// TestCancelAnywhere: a run that is cancelled ends at once whatever its provider
// is about, and its model is asked nothing more. The session goes on.
func TestCancelAnywhere(t *testing.T) {
	here := make(chan struct{})
	stand := provider.Seq(provider.Then(func() { here <- struct{}{} }), provider.Hang)
	after := provider.Text("well")
	w, s := lab(t, provider.InTurn(t,
		stand, after,
		provider.Seq(provider.Head(), stand), after,
		provider.Seq(provider.Head(), provider.Events(provider.Content("Half an")), stand), after,
		provider.Seq(provider.Head(), provider.Events(provider.Tool(0, "c", "tsh", `{"args":["bash","-c","echo x > ne`)), stand), after,
		provider.Calls(bash("c", "echo > begun; sleep 1000"), bash("d", "echo x > never")), after,
	), "bash")
	cancelled := func(what string, await func()) {
		t.Helper()
		before := len(s.Requests())
		c := w.Dial("m")
		c.Send(send(what, "s", w.Workspace, what))
		await()
		w.Dial("m").Ask(world.JSON(map[string]any{"op": "cancel", "id": what}), "accepted")
		if d := world.Last(c.Until("done")); d.Str("status") != "cancelled" {
			t.Errorf("%s: %v", what, d)
		}
		if what != "connect" && len(s.Requests()) != before+1 {
			t.Errorf("%s: %d more requests", what, len(s.Requests())-before)
		}
	}
	for _, what := range []string{"headers", "body", "text", "call"} {
		cancelled(what, func() { <-here })
		if frames := say(w, "then"); world.Last(frames).Str("status") != "ok" {
			t.Errorf("%s: %s", what, world.JSON(frames))
		}
	}
	cancelled("tool", func() { w.AwaitExists(w.Workspace + "/begun") })
	// One that takes connections and says nothing: no handshake is ever over.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w.MustCtx("provider", "add", "mute", "--base-url", "https://"+l.Addr().String(), "--model", "m", "--no-key")
	use(w, "mute/m")
	cancelled("connect", func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { c.Close() })
	})
	use(w, "lab/m")
	if frames := say(w, "then"); world.Last(frames).Str("status") != "ok" {
		t.Errorf("%s", world.JSON(frames))
	}
	if _, err := os.Stat(w.Workspace + "/never"); err == nil || strings.Contains(recorded(w), "Half an") {
		t.Error("something of what was cancelled is left")
	}
}

// use gives the agent m a model that its policy allows.
func use(w *world.World, model string) {
	w.T.Helper()
	policy := w.Root + "/agent/m.d/policy"
	line := "allow m_t model:" + model + " use\n"
	if text := w.Read(policy); !strings.Contains(text, line) {
		w.Write(policy, text+line)
	}
	w.Write(w.Root+"/agent/m.d/model", model+"\n")
}

// TestOddAnswers: what a model may say that can not be carried out, or is
// nothing. The next request holds all of it in good order, and no blank message.
func TestOddAnswers(t *testing.T) {
	var many []provider.Call
	for i := range 33 {
		many = append(many, provider.Call{ID: fmt.Sprint("c", i%2), Name: "tsh", Arguments: `{"args":["help"]}`})
	}
	reasoning := provider.Delta(`"reasoning_content":"Secretly."`)
	usage := provider.Usage(3, 4)
	w, s := lab(t, provider.InTurn(t,
		// The same id twice in an answer, and again in the next.
		provider.Calls(bash("same", "echo 1 >> did-1"), bash("same", "echo 1 >> did-2")),
		provider.Calls(bash("same", "echo 1 >> did-3"), bash("", "echo 1 >> did-4")),
		provider.Text("one"),
		// The limit of the output comes among the calls; a whole one does not count.
		provider.Stream(provider.Tool(0, "a", "tsh", bash("", "echo 1 >> never").Arguments), provider.Tool(1, "b", "tsh", `{"args":["ba`), provider.Finish("length"), usage, provider.Done),
		provider.Text("two"),
		// Nothing, blank, and only reasoning.
		provider.Stream(provider.Finish("stop"), usage, provider.Done),
		provider.Text(" \n", "\t"),
		provider.Stream(reasoning, provider.Finish("stop"), usage, provider.Done),
		// One call too many, and arguments that are none, or not those of the tool.
		provider.Calls(many...),
		provider.Calls(provider.Call{ID: "x", Name: "tsh"}, provider.Call{ID: "y", Name: "tsh", Arguments: "[]"}, provider.Call{ID: "z", Name: "n o", Arguments: "{}"}),
		provider.Text("three"),
		provider.Text("four"),
	), "bash")
	status := func(input string) string {
		t.Helper()
		frames := say(w, input)
		if d := world.Last(frames); d.Str("status") != "ok" {
			t.Fatalf("%s: %s", input, world.JSON(frames))
		}
		return world.JSON(frames)
	}
	status("same ids")
	for i := range 4 {
		if text := w.Read(fmt.Sprintf("%s/did-%d", w.Workspace, i+1)); text != "1\n" {
			t.Errorf("call %d left %q", i+1, text)
		}
	}
	if text := status("limit"); !strings.Contains(text, "cut off") {
		t.Errorf("%s", text)
	}
	if _, err := os.Stat(w.Workspace + "/never"); err == nil {
		t.Error("a call of an answer that was cut off was made")
	}
	status("nothing")
	status("blank")
	status("reasoning")
	if text := status("many"); strings.Count(text, "at most 32") != 1 || strings.Count(text, `"tool_result"`) != 36 {
		t.Errorf("%s", text)
	}
	status("end")
	for i, r := range s.Requests() {
		for _, m := range r.Chat(t).Messages {
			if strings.TrimSpace(m.Content) == "" && len(m.ToolCalls) == 0 || strings.Contains(m.Content, "Secretly.") {
				t.Errorf("request %d has the message %+v", i+1, m)
			}
		}
	}
}

// TestHugeArguments: a call with 17 MiB of arguments is no answer; nothing of it
// is kept, and the session goes on.
func TestHugeArguments(t *testing.T) {
	piece := strings.Repeat("x", 1<<20)
	events := []string{provider.Tool(0, "c", "tsh", `{"args":["bash","-c","`)}
	for range 17 {
		events = append(events, provider.Tool(0, "", "", piece))
	}
	events = append(events, provider.Tool(0, "", "", `"]}`), provider.Finish("tool_calls"), provider.Done)
	var answers []provider.Answer
	for _, e := range events {
		answers = append(answers, provider.Events(e))
	}
	huge := provider.Seq(provider.Head(), provider.Seq(answers...), provider.End())
	w, _ := lab(t, provider.InTurn(t, huge, provider.Text("well")), "bash")
	frames := say(w, "much")
	want(t, frames, "start usage_uncertain error done", "error")
	holds(t, frames, `"code":"EREMOTEIO"`)
	want(t, say(w, "less"), "start message usage done", "ok")
	if n := len(recorded(w)); n > 1<<20 {
		t.Errorf("the ledger has %d bytes", n)
	}
}

// TestAnotherModel: what one model thought goes to no other; the calls and their
// results do.
func TestAnotherModel(t *testing.T) {
	thinking := provider.Stream(provider.Delta(`"reasoning_content":"Between you and me."`), provider.Content("Looking."),
		provider.Tool(0, "c", "tsh", bash("", "echo three words").Arguments), provider.Finish("tool_calls"), provider.Usage(1, 2), provider.Done)
	w, first := lab(t, provider.InTurn(t, thinking, provider.Text("one"), provider.Text("three")), "bash")
	second := addLab(w, "other", provider.InTurn(t, provider.Text("two")))
	say(w, "look")
	use(w, "other/m")
	want(t, say(w, "and you"), "start message usage done", "ok")
	use(w, "lab/m")
	want(t, say(w, "and again"), "start message usage done", "ok")
	body := string(second.Requests()[0].Body)
	if strings.Contains(body, "Between you and me") || !strings.Contains(body, "three words") || !strings.Contains(body, "Looking.") {
		t.Errorf("the other model was sent %s", body)
	}
	if n := len(first.Requests()[2].Chat(t).Messages); n != 8 {
		t.Errorf("the first model was sent %d messages at last", n)
	}
}

// TestChain: of a chain of models those that can not be reached, that do not go
// with the window, and that the policy does not allow are passed over, each with
// a word about it; one that began to answer is not.
func TestChain(t *testing.T) {
	busy := provider.Status(503, "application/json", `{"error":{"message":"busy"}}`)
	begun := provider.Seq(provider.Head(), provider.Events(provider.Content("Well")), provider.Reset)
	w, _ := lab(t, provider.InTurn(t, busy, begun), "bash")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	w.MustCtx("provider", "add", "gone", "--base-url", "http://"+l.Addr().String(), "--model", "m", "--limit", "200000", "--no-key")
	w.MustCtx("provider", "add", "small", "--base-url", "http://"+l.Addr().String(), "--model", "m", "--limit", "9000", "--no-key")
	w.MustCtx("provider", "add", "secret", "--base-url", "http://"+l.Addr().String(), "--model", "m", "--limit", "200000", "--no-key")
	good := addLab(w, "good", provider.InTurn(t, provider.Calls(bash("c", "true")), provider.Text("done")))
	for _, model := range []string{"gone/m", "small/m", "good/m", "lab/m"} {
		use(w, model)
	}
	w.Write(w.Root+"/agent/m.d/window", "20000\n")
	w.Write(w.Root+"/model/lab/m.d/fallback", "gone/m\nsmall/m\nsecret/m\ngood/m\n")
	frames := say(w, "go")
	if d := world.Last(frames); d.Str("status") != "ok" || len(good.Requests()) != 2 {
		t.Errorf("%s", world.JSON(frames))
	}
	var passed []string
	for _, f := range frames {
		if f.Type() == "candidate_error" {
			passed = append(passed, f.Str("model")+" "+f.Str("code"))
		}
	}
	if got := strings.Join(passed, ", "); got != "lab/m EREMOTEIO, gone/m EREMOTEIO, small/m EINVAL, secret/m EACCES" {
		t.Errorf("passed over: %s", got)
	}
	frames = say(w, "again")
	want(t, frames, "start usage_uncertain error done", "error")
}
