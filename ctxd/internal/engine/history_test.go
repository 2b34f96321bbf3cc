package engine

import (
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/prompt"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func entry(run libctx.Run, role string, parts ...wire.Part) session.Entry {
	return session.Entry{Run: run, Kind: session.KindMessage, Role: role, Content: parts}
}

func result(id string) wire.Part {
	return wire.Part{Type: "tool_result", Call: libctx.Call(id), Name: "tsh", Status: "ok", Text: id}
}

// shape is a conversation in words.
func shape(entries []session.Entry, run libctx.Run) (s []string, start int) {
	list, start := rows(entries, run)
	for _, r := range list {
		word := r.Role
		for _, p := range r.Content {
			word += " " + p.Type + ":" + p.Text + string(p.Call)
		}
		s = append(s, word)
	}
	return s, start
}

// TestResultsFollowTheirCalls in the order of the calls, though they are recorded
// as they settle.
func TestResultsFollowTheirCalls(t *testing.T) {
	got, start := shape([]session.Entry{
		entry("old", "user", wire.Text("q")), entry("old", "assistant", wire.Text("a")),
		entry("now", "user", wire.Text("do")),
		entry("now", "assistant", wire.Text("well"), call("1", "tsh", "{}"), call("2", "tsh", "{}"), call("3", "tsh", "{}")),
		entry("now", "tool", result("2")), entry("now", "tool", result("3")), entry("now", "tool", result("1")),
		entry("now", "assistant", call("4", "tsh", "")), entry("now", "tool", result("4")),
	}, "now")
	want := []string{
		"user text:q", "assistant text:a", "user text:do",
		"assistant text:well tool_call:1 tool_call:2 tool_call:3", "tool tool_result:11 tool_result:22 tool_result:33",
		"assistant tool_call:4", "tool tool_result:44",
	}
	if diff := cmp.Diff(want, got); diff != "" || start != 2 {
		t.Errorf("start %d: %s", start, diff)
	}
}

// TestNothingBlank: what says nothing is in no request.
func TestNothingBlank(t *testing.T) {
	got, start := shape([]session.Entry{
		entry("old", "user", wire.Text("q")), entry("old", "assistant", wire.Text(" "), wire.Part{Type: "reasoning", Text: "r"}),
		entry("old", "assistant"), entry("now", "user", wire.Text("go on")), entry("now", "assistant", wire.Text("\n"), wire.Text("a")),
	}, "other")
	if diff := cmp.Diff([]string{"user text:q", "user text:go on", "assistant text:a"}, got); diff != "" || start != 3 {
		t.Errorf("start %d: %s", start, diff)
	}
}

// TestReasoningStaysWithItsModel: what a provider wants to see again is kept with
// the model it came from, unless the answer broke off.
func TestReasoningStaysWithItsModel(t *testing.T) {
	for stop, whole := range map[string]bool{"end": true, "tool_calls": true, "": true, "length": false, "filtered": false, "refusal": false} {
		e := entry("r", "assistant", wire.Part{Type: "reasoning", Text: "hm"}, wire.Text("a"))
		e.Model, e.Stop = "lab/large", stop
		e.Opaque = &modelwire.Opaque{Provider: "lab", Model: "lab/large", Data: []byte(`{"signature":"x"}`)}
		list, _ := rows([]session.Entry{entry("r", "user", wire.Text("q")), e}, "r")
		if r := list[1]; (r.Opaque == e.Opaque) != whole || (r.Model == e.Model) != whole || len(r.Content) != 2 {
			t.Errorf("stop %q: %+v", stop, r)
		}
	}
}

// TestBegins: a run begins with its own message, not with what was said into it.
func TestBegins(t *testing.T) {
	steer := entry("r", "user", wire.Text("left"))
	steer.Origin = session.OpSteer
	first := entry("r", "user", wire.Text("q"))
	if begins(&steer) || !begins(&first) {
		t.Error("a run begins with what was said into it")
	}
}

// TestRowsAreARequest: whatever the order in which calls settle, a request made
// of the rows is one.
func TestRowsAreARequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var entries []session.Entry
		n := 0
		for range rapid.IntRange(1, 6).Draw(t, "turns") {
			entries = append(entries, entry("r", "user", wire.Text("u")))
			var parts, results []wire.Part
			for range rapid.IntRange(0, 5).Draw(t, "calls") {
				n++
				id := string(callID("e1", n))
				parts, results = append(parts, call(id, "tsh", "{}")), append(results, result(id))
			}
			if len(parts) == 0 {
				continue
			}
			entries = append(entries, entry("r", "assistant", parts...))
			for _, p := range rapid.Permutation(results).Draw(t, "order") {
				entries = append(entries, entry("r", "tool", p))
			}
		}
		list, _ := rows(entries, "r")
		checkPairs(t, list)
	})
}

func checkPairs(t *rapid.T, list []prompt.Row) {
	g := &modelwire.Generate{Version: modelwire.Version, Model: "a/b"}
	for i, r := range list {
		g.Messages = append(g.Messages, r.Message)
		if r.Role != session.RoleTool {
			continue
		}
		for j, p := range r.Content {
			if list[i-1].Content[j].Call != p.Call {
				t.Fatalf("result %d is of call %s", j, p.Call)
			}
		}
	}
	if _, err := modelwire.MarshalRequest(g); err != nil {
		t.Fatal(err)
	}
}
