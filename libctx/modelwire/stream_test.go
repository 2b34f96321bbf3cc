package modelwire

import (
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"pgregory.net/rapid"
)

// words are short names of frames, for tables.
var words2frame = map[string]Frame{
	"start":     &Start{Model: "debug/echo"},
	"loading":   &Lifecycle{State: "loading"},
	"text":      &Delta{Text: "a"},
	"reasoning": &ReasoningDelta{Text: "a"},
	"call0":     &CallStart{Index: 0},
	"more0":     &CallDelta{Index: 0, Text: "{"},
	"end0":      &CallEnd{Index: 0},
	"call1":     &CallStart{Index: 1},
	"end1":      &CallEnd{Index: 1},
	"message":   &MessageFrame{Content: []wire.Part{wire.Text("a")}, Stop: StopEnd},
	"usage":     &Usage{},
	"error":     &Error{Failure: *Fail(errdefs.Provider, PhaseBody, ClassInterrupted, "x")},
	"found":     &Found{Name: "ollama", Format: "openai.chat", BaseURL: "http://localhost"},
	"verdict":   &Verdict{OK: true},
	"ok":        &Done{Status: "ok"},
	"failed":    &Done{Status: "error"},
	"weather":   &Other{Type: "weather"},
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		op, frames string
		whole      bool // done has come; else the last frame is refused
	}{
		{"", "start message ok", true},
		{"generate", "loading start loading reasoning text text call0 more0 call1 end0 end1 usage message ok", true},
		{"", "start message usage ok", true},
		{"", "start text error failed", true},
		{"", "error failed", true},
		{"", "loading error failed", true},
		{"", "start message error failed", true},
		{"", "start usage error failed", true},
		{"", "weather start weather message weather ok", true},
		{"", "text", false}, {"", "message", false}, {"", "usage", false}, {"", "ok", false}, {"", "failed", false},
		{"", "start start", false}, {"", "start ok", false}, {"", "start failed", false}, {"", "start verdict", false}, {"", "found", false},
		{"", "start message message", false}, {"", "start message text", false}, {"", "start message failed", false},
		{"", "start message loading", false}, {"", "start message call0", false},
		{"", "start usage usage", false}, {"", "start usage message usage", false},
		{"", "start error ok", false}, {"", "start error error", false}, {"", "start error message", false}, {"", "error start", false}, {"", "start error usage", false},
		{"", "start call0 call0", false}, {"", "start more0", false}, {"", "start end0", false},
		{"", "start call0 end0 more0", false}, {"", "start call0 end0 end0", false}, {"", "start call0 end0 call0", false},
		{"", "start message ok ok", false}, {"", "start message ok text", false}, {"", "start message ok weather", false}, {"", "error failed error", false},
		{"probe", "verdict ok", true}, {"probe", "error failed", true},
		{"probe", "ok", false}, {"probe", "verdict verdict", false}, {"probe", "start", false}, {"probe", "verdict failed", false}, {"probe", "message", false},
		{"detect", "ok", true}, {"detect", "found found ok", true}, {"detect", "found error failed", true},
		{"detect", "failed", false}, {"detect", "found failed", false}, {"detect", "start", false},
	} {
		s := Stream{Op: c.op}
		list := strings.Fields(c.frames)
		for i, name := range list {
			f := words2frame[name]
			var err error
			if o, other := f.(*Other); other {
				_, err = s.Next([]byte(`{"type":"` + o.Type + `"}`))
			} else {
				line, merr := MarshalFrame(f)
				if merr != nil {
					t.Fatal(merr)
				}
				_, err = s.Next(line[:len(line)-1])
			}
			last := i == len(list)-1
			if refused := last && !c.whole; (err != nil) != refused || err != nil && !errdefs.Is(err, errdefs.Protocol) {
				t.Errorf("%s %q: %s: %v", c.op, c.frames, name, err)
				break
			}
		}
		if want := c.whole || strings.Contains(c.frames, " ok ") || strings.Contains(c.frames, " failed "); s.Done() != want {
			t.Errorf("%s %q: done is %v", c.op, c.frames, s.Done())
		}
	}
}

// Whatever comes, an answer that is accepted is one: it ends once, with what it
// promises.
func TestOrderProperties(t *testing.T) {
	var names []string
	for name := range words2frame {
		names = append(names, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		var s Stream
		seen := map[string]int{}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 30).Draw(t, "frames") {
			if s.Follow(words2frame[name]) == nil {
				seen[name]++
			}
		}
		switch {
		case s.Done() != (seen["ok"]+seen["failed"] == 1):
			t.Fatalf("done %v after %v", s.Done(), seen)
		case seen["message"] > 1 || seen["usage"] > 1 || seen["start"] > 1 || seen["error"] > 1:
			t.Fatalf("%v", seen)
		case seen["ok"] == 1 && (seen["message"] != 1 || seen["error"] != 0 || seen["start"] != 1):
			t.Fatalf("ended well with %v", seen)
		case seen["failed"] == 1 && seen["error"] != 1:
			t.Fatalf("failed with %v", seen)
		}
	})
}

func TestLimitsOfAnAnswer(t *testing.T) {
	var s Stream
	follow := func(f Frame) error { return s.Follow(f) }
	if err := follow(words2frame["start"]); err != nil {
		t.Fatal(err)
	}
	for range libctx.MaxModelEvents - 1 {
		if err := follow(&Delta{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := follow(&Delta{}); !errdefs.Is(err, errdefs.TooBig) {
		t.Errorf("one frame more: %v", err)
	}
	for _, f := range []Frame{words2frame["error"], words2frame["failed"]} {
		if err := follow(f); err != nil {
			t.Errorf("the end has no room: %v", err)
		}
	}

	s = Stream{}
	text := strings.Repeat("a", 1<<20)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(follow(words2frame["start"]))
	must(follow(words2frame["call0"]))
	for range libctx.MaxModelMessage / len(text) / 3 {
		must(follow(&Delta{text}))
		must(follow(&ReasoningDelta{text}))
		must(follow(&CallDelta{0, text}))
	}
	for _, f := range []Frame{&Delta{"a"}, &ReasoningDelta{"a"}, &CallDelta{0, "a"}} {
		if err := follow(f); !errdefs.Is(err, errdefs.TooBig) {
			t.Errorf("%s: one byte more: %v", f.Kind(), err)
		}
	}
}
