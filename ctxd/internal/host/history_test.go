package host

import (
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func entry(run libctx.Run, role string, parts ...wire.Part) session.Entry {
	return session.Entry{Run: run, Kind: session.KindMessage, Role: role, Content: parts}
}

func call(id string) wire.Part { return wire.Part{Type: "tool_call", Call: libctx.Call(id), Name: "x"} }
func result(id, text string) wire.Part {
	return wire.Part{Type: "tool_result", Call: libctx.Call(id), Status: "ok", Text: text}
}

func roles(entries []session.Entry) (s []string) {
	for _, e := range entries {
		s = append(s, string(e.Run)+":"+e.Role)
	}
	return s
}

// TestHistoryRepeatsNothing: what a step gets as input or observation is not in
// its history.
func TestHistoryRepeatsNothing(t *testing.T) {
	old := []session.Entry{entry("old", "user", wire.Text("q")), entry("old", "assistant", wire.Text("a"))}
	own := []session.Entry{
		entry("now", "user", wire.Text("input")),
		entry("now", "assistant", call("1")), entry("now", "tool", result("1", "one")),
		entry("now", "assistant", call("2")), entry("now", "tool", result("2", "two")),
	}
	for _, c := range []struct{ step, own, want int }{
		{0, 1, 2}, // nothing of this run
		{1, 3, 2}, // call 1 is the observation
		{2, 5, 5}, // input, call 1 and its result; call 2 is the observation
	} {
		got := roles(selectHistory(append(append([]session.Entry{}, old...), own[:c.own]...), "now", c.step))
		all := append(roles(old), "now:user", "now:assistant", "now:tool")
		if diff := cmp.Diff(all[:c.want], got); diff != "" {
			t.Errorf("step %d: %s", c.step, diff)
		}
	}
}

func TestEmptyHistory(t *testing.T) {
	if got, err := render(nil, 100); got != "[]" || err != nil {
		t.Errorf("%q %v", got, err)
	}
}

func TestHistoryIsBoundedValidAndPaired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var entries []session.Entry
		text := rapid.StringN(0, 400, 2000)
		for i := range rapid.IntRange(0, 12).Draw(t, "turns") {
			id := string(rune('a' + i))
			entries = append(entries, entry("r", "user", wire.Text(strings.ToValidUTF8(text.Draw(t, "q"), "?"))))
			if rapid.Bool().Draw(t, "tool") {
				entries = append(entries, entry("r", "assistant", call(id)),
					entry("r", "tool", result(id, strings.ToValidUTF8(text.Draw(t, "r"), "?"))))
			}
			entries = append(entries, entry("r", "assistant", wire.Text("done")))
		}
		max := rapid.IntRange(2, 6000).Draw(t, "max")
		got, err := render(entries, max)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > max {
			t.Fatalf("%d bytes, the bound is %d", len(got), max)
		}
		var back []turnMessage
		if err := json.Unmarshal([]byte(got), &back); err != nil {
			t.Fatalf("%v in %s", err, got)
		}
		if len(back) > 0 && back[0].Role == "tool" {
			t.Fatal("a result without its call")
		}
		for i, m := range back {
			if want := entries[len(entries)-len(back)+i].Role; m.Role != want {
				t.Fatalf("message %d is of %s, want %s: not the newest ones in order", i, m.Role, want)
			}
		}
	})
}
