package compose

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"cortexfs.org/ctxd/internal/model/sinktest"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func begin(t testing.TB) (*Answer, *sinktest.Sink) {
	t.Helper()
	s := &sinktest.Sink{}
	if err := s.Send(&modelwire.Start{Model: "p/m"}); err != nil {
		t.Fatal(err)
	}
	return New(s, toolnames.New([]modelwire.Tool{{Name: "fs.read"}}), 200), s
}

// Parts that are written at the same time come out whole and in order, and a
// call that nobody ended is ended.
func TestParts(t *testing.T) {
	a, s := begin(t)
	first, err := a.Text()
	must(t, err)
	hm, err := a.Reasoning()
	must(t, err)
	call, err := a.Call("id", "fs__read")
	must(t, err)
	empty, err := a.Text()
	must(t, err)
	must(t, call.Add(`{"a":`))
	must(t, first.Add("x\x00"))
	must(t, hm.Add("hm"))
	must(t, empty.Add(""))
	must(t, call.Add(`1}`))
	must(t, hm.End())
	if first.Says() != true || hm.Says() || empty.Says() || !call.Says() || a.Calls() != 1 || call.Len() != 7 {
		t.Error("parts say what they do not")
	}
	one := int64(1)
	a.SetUsage(&modelwire.Usage{Output: &one})
	must(t, a.Finish(modelwire.StopToolCalls, nil))
	want := "call 0 id fs.read\nargs 0 {\"a\":\ntext x␀\nthink hm\nargs 0 1}\nstop tool_calls\n  text x␀\n  reasoning hm\n  tool_call call-1fs.read{\"a\":1}\nusage - - - 1 -\n"
	if got := s.String(); got != want {
		t.Errorf("%s, not\n%s", got, want)
	}
}

func TestFail(t *testing.T) {
	a, _ := begin(t)
	f := modelwire.Fail(errdefs.Provider, modelwire.PhaseBody, modelwire.ClassInterrupted, "x")
	var got *modelwire.Failure
	if !errors.As(a.Fail(f), &got) || got.GenerationSeen || !got.Accepted || got.Status != 200 {
		t.Errorf("%+v", got)
	}
	p, err := a.Text()
	must(t, err)
	must(t, p.Add("x"))
	if !errors.As(a.Fail(f), &got) || !got.GenerationSeen {
		t.Errorf("%+v", got)
	}
}

func TestLimits(t *testing.T) {
	a, _ := begin(t)
	for range libctx.MaxModelParts {
		_, err := a.Text()
		must(t, err)
	}
	if _, err := a.Call("x", "tsh"); !errdefs.Is(err, errdefs.Provider) {
		t.Errorf("a part too many: %v", err)
	}
	a, _ = begin(t)
	if err := a.Grow(libctx.MaxModelMessage + 1); !errdefs.Is(err, errdefs.Provider) {
		t.Errorf("too long: %v", err)
	}
}

// Marks come back at their places, for their model alone.
func TestMarks(t *testing.T) {
	g := &modelwire.Generate{Model: "p/m"}
	if Pack(g, nil) != nil || Unpack(g, &modelwire.Message{}) != nil {
		t.Error("something of nothing")
	}
	o := Pack(g, []Mark{{0, jsontext.Value(`"a"`)}, {2, jsontext.Value(`"b"`)}, {2, jsontext.Value(`{"c":1}`)}})
	m := &modelwire.Message{Role: "assistant", Opaque: o, Content: []wire.Part{wire.Text(" "), wire.Text("x"), {Type: "reasoning", Text: "y"}, {Type: "tool_call", Call: "call-1"}}}
	at := Unpack(g, m)
	if len(at) != 2 || len(at[0]) != 1 || len(at[2]) != 2 || string(at[2][1]) != `{"c":1}` || len(Speaking(m)) != 2 {
		t.Errorf("%v", at)
	}
	if Unpack(&modelwire.Generate{Model: "p/other"}, m) != nil {
		t.Error("marks of another model")
	}
	for _, data := range []string{`{"signature":"x"}`, `[1]`, `[{"at":"x"}]`, `"x"`} {
		m.Opaque = &modelwire.Opaque{Provider: "p", Model: "p/m", Data: jsontext.Value(data)}
		if got := Unpack(g, m); len(got) > 0 {
			t.Errorf("%s: %v", data, got)
		}
	}
}

func TestWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.String().Draw(t, "text"), 20)
		if w := Word(text); len(w) > libctx.MaxProviderCode || !utf8.ValidString(w) || strings.ContainsAny(w, "\n\x1b\x00") {
			t.Fatalf("%q", w)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
