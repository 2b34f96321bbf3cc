package engine

import (
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/ctxd/internal/calls"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func call(id, name, args string) wire.Part {
	return wire.Part{Type: "tool_call", Call: libctx.Call(id), Name: libctx.Tool(name), Arguments: jsontext.Value(args)}
}

func invalid(id, name, why string) wire.Part {
	p := call(id, name, "{}")
	p.Invalid = why
	return p
}

// TestRead goes through what an answer can be.
func TestRead(t *testing.T) {
	said, reasons := wire.Text("hello"), wire.Part{Type: "reasoning", Text: "because"}
	one := call("call-1", "tsh", `{"args":["tools"]}`)
	kept := one
	kept.Call = "call-7-1"
	for _, c := range []struct {
		name     string
		content  []wire.Part
		stop     string
		toolFree bool
		want     []wire.Part
		calls    []string // carried out
		refused  []string // id: code: sentence
		goesOn   bool
	}{
		{name: "text", content: []wire.Part{said}, want: []wire.Part{said}},
		{name: "nothing"},
		{name: "blank text", content: []wire.Part{wire.Text(" \n\t")}},
		{name: "blank parts beside text", content: []wire.Part{wire.Text(""), said, wire.Text("\n")}, want: []wire.Part{said}},
		{name: "reasoning alone", content: []wire.Part{reasons}},
		{name: "reasoning and text", content: []wire.Part{reasons, said}, want: []wire.Part{reasons, said}},
		{name: "text cut off", content: []wire.Part{said}, stop: modelwire.StopLength, want: []wire.Part{said}},
		{name: "refusal in words", content: []wire.Part{said}, stop: modelwire.StopRefusal, want: []wire.Part{said}},
		{name: "a call", content: []wire.Part{one}, stop: modelwire.StopToolCalls,
			want: []wire.Part{kept}, calls: []string{"call-7-1"}, goesOn: true},
		{name: "a call, and the end", content: []wire.Part{one}, stop: modelwire.StopEnd,
			want: []wire.Part{kept}, calls: []string{"call-7-1"}, goesOn: true},
		{name: "a call, and some other stop", content: []wire.Part{one}, stop: modelwire.StopOther,
			want: []wire.Part{kept}, calls: []string{"call-7-1"}, goesOn: true},
		{name: "blank text before a call", content: []wire.Part{wire.Text(" "), one},
			want: []wire.Part{kept}, calls: []string{"call-7-1"}, goesOn: true},
		{name: "a call cut off", content: []wire.Part{one}, stop: modelwire.StopLength,
			want: []wire.Part{kept}, refused: []string{"call-7-1::" + incomplete}, goesOn: true},
		{name: "a call filtered", content: []wire.Part{one}, stop: modelwire.StopFiltered,
			want: []wire.Part{kept}, refused: []string{"call-7-1::" + incomplete}, goesOn: true},
		{name: "a call in a refusal", content: []wire.Part{one}, stop: modelwire.StopRefusal,
			want: []wire.Part{kept}, refused: []string{"call-7-1::" + incomplete}, goesOn: true},
		{name: "a call without tools", content: []wire.Part{one}, toolFree: true,
			want: []wire.Part{kept}, refused: []string{"call-7-1::" + calls.ToolFree}, goesOn: true},
		{name: "arguments that are no object", content: []wire.Part{invalid("call-1", "tsh", "nonsense")},
			want:    []wire.Part{invalid("call-7-1", "tsh", "nonsense")},
			refused: []string{"call-7-1:invalid_tool_arguments:" + admit.InvalidArguments.Sentence()}, goesOn: true},
		{name: "a name that is none", content: []wire.Part{invalid("call-1", "", "name: a/b")},
			want:    []wire.Part{invalid("call-7-1", "unnamed", "name: a/b")},
			refused: []string{"call-7-1:tool_not_found:" + admit.NotFound.Sentence()}, goesOn: true},
		{name: "wrong and cut off", content: []wire.Part{invalid("call-1", "tsh", "{")}, stop: modelwire.StopLength,
			want: []wire.Part{invalid("call-7-1", "tsh", "{")}, refused: []string{"call-7-1::" + incomplete}, goesOn: true},
		{name: "one id twice", content: []wire.Part{one, one},
			want:  []wire.Part{kept, call("call-7-2", "tsh", `{"args":["tools"]}`)},
			calls: []string{"call-7-1", "call-7-2"}, goesOn: true},
		{name: "right beside wrong", content: []wire.Part{one, invalid("call-2", "tsh", "x"), one},
			want:    []wire.Part{kept, invalid("call-7-2", "tsh", "x"), call("call-7-3", "tsh", `{"args":["tools"]}`)},
			calls:   []string{"call-7-1", "call-7-3"},
			refused: []string{"call-7-2:invalid_tool_arguments:" + admit.InvalidArguments.Sentence()}, goesOn: true},
	} {
		p := read("e7", &modelwire.MessageFrame{Content: c.content, Stop: c.stop}, c.toolFree)
		var carried, refused []string
		for _, call := range p.calls {
			carried = append(carried, string(call.ID))
		}
		for _, r := range p.refused {
			refused = append(refused, fmt.Sprintf("%s:%s:%s", r.call.ID, r.code, r.sentence))
		}
		for _, diff := range []string{cmp.Diff(c.want, p.content), cmp.Diff(c.calls, carried), cmp.Diff(c.refused, refused)} {
			if diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
		}
		if p.goesOn() != c.goesOn {
			t.Errorf("%s: goes on: %v", c.name, p.goesOn())
		}
	}
}

// TestManyCalls: those over the bound are kept and settled, and the run goes on.
func TestManyCalls(t *testing.T) {
	var m modelwire.MessageFrame
	for i := range libctx.MaxTurnCalls + 3 {
		m.Content = append(m.Content, call(fmt.Sprintf("call-%d", i+1), "tsh", "{}"))
	}
	p := read("e12", &m, false)
	if len(p.content) != len(m.Content) || len(p.calls) != libctx.MaxTurnCalls || len(p.refused) != 3 || !p.goesOn() {
		t.Fatalf("%d parts, %d calls, %d refused", len(p.content), len(p.calls), len(p.refused))
	}
	for i, r := range p.refused {
		if r.sentence != tooMany || r.call.ID != libctx.Call(fmt.Sprintf("call-12-%d", libctx.MaxTurnCalls+1+i)) {
			t.Errorf("%+v", r)
		}
	}
	if !strings.Contains(tooMany, fmt.Sprint(libctx.MaxTurnCalls)) {
		t.Error("the sentence names another bound")
	}
}

// TestEveryCallHasOneWay: each call of an answer is kept once, under an id of its
// own, and is either carried out or refused.
func TestEveryCallHasOneWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]wire.Part{
			wire.Text("x"), wire.Text(" "), {Type: "reasoning", Text: "y"},
			call("same", "tsh", "{}"), call("other", "fs.read", `{"path":"a"}`), invalid("same", "tsh", "?"), invalid("", "", "?"),
		}), 0, 50).Draw(t, "parts")
		stop := rapid.SampledFrom([]string{"end", "tool_calls", "length", "refusal", "filtered", "other"}).Draw(t, "stop")
		p := read("e3", &modelwire.MessageFrame{Content: parts, Stop: stop}, rapid.Bool().Draw(t, "free"))
		ways, kept, want := map[libctx.Call]int{}, 0, 0
		for _, c := range p.calls {
			ways[c.ID]++
		}
		for _, r := range p.refused {
			ways[r.call.ID]++
		}
		for _, part := range p.content {
			switch {
			case part.Type == "tool_call":
				if kept++; ways[part.Call] != 1 || part.Name == "" {
					t.Fatalf("call %s (%s) goes %d ways", part.Call, part.Name, ways[part.Call])
				}
			case strings.TrimSpace(part.Text) == "":
				t.Fatal("a blank part is kept")
			}
		}
		for _, part := range parts {
			if part.Type == "tool_call" {
				want++
			}
		}
		if kept != want || len(ways) != want || p.goesOn() != (want > 0) {
			t.Fatalf("%d calls, %d kept, %d settled", want, kept, len(ways))
		}
	})
}

// TestDeaf: how often a model is asked that calls although it may not.
func TestDeaf(t *testing.T) {
	for answers, want := range map[string]string{ // o: with tools; then c: calls, t: text, b: both
		"c c": "again giveUp", "b c": "again end", "c b": "again end", "b b": "again end",
		"t": "end", "c t": "again end", "oc oc oc oc": "again again again again",
		"oc oc c c": "again again again giveUp", "ob oc c c": "again again again giveUp", "ot": "end",
	} {
		var d deaf
		var got []string
		for _, a := range strings.Fields(answers) {
			kind, tools := strings.CutPrefix(a, "o")
			var m modelwire.MessageFrame
			if kind != "c" {
				m.Content = append(m.Content, wire.Text("so"))
			}
			if kind != "t" {
				m.Content = append(m.Content, call("call-1", "tsh", "{}"))
			}
			p := read("e3", &m, !tools)
			got = append(got, map[step]string{end: "end", again: "again", giveUp: "giveUp"}[d.after(&p, !tools)])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, not %s", answers, got, want)
		}
	}
}
