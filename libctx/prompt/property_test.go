package prompt

import (
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/window"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

var someText = rapid.Custom(func(t *rapid.T) string {
	s := rapid.SampledFrom([]string{"", " ", "word ", "é", `"`, "\x01", "語", "\n"}).Draw(t, "of")
	return strings.Repeat(s, rapid.SampledFrom([]int{1, 1, 3, 50, 4000}).Draw(t, "times"))
})

// somePart is a part as a ledger may hold one, of any role.
var somePart = rapid.Custom(func(t *rapid.T) wire.Part {
	p := wire.Part{Type: rapid.SampledFrom([]string{"text", "text", "reasoning", "tool_call", "tool_call", "tool_result", "tool_result", "image"}).Draw(t, "type")}
	switch p.Type {
	case "text", "reasoning", "image":
		p.Text = someText.Draw(t, "text")
	case "tool_call":
		p.Call = libctx.Call(rapid.SampledFrom([]string{"c1", "c2", "c3", ""}).Draw(t, "call"))
		p.Name = libctx.Tool(rapid.SampledFrom([]string{"tsh", "fs.read", ""}).Draw(t, "name"))
		p.Arguments = jsontext.Value(`{"a":` + quoted(someText.Draw(t, "argument")) + `}`)
		if rapid.IntRange(0, 5).Draw(t, "invalid") == 0 {
			p.Arguments, p.Invalid = jsontext.Value("{}"), "bad: "+someText.Draw(t, "raw")
			p.Invalid, _ = wire.Clip(p.Invalid, 4000)
		}
	case "tool_result":
		p.Call = libctx.Call(rapid.SampledFrom([]string{"c1", "c2", "c3", ""}).Draw(t, "call"))
		p.Status, p.Text = rapid.SampledFrom([]string{"ok", "error", ""}).Draw(t, "status"), someText.Draw(t, "text")
	}
	return p
})

var someRow = rapid.Custom(func(t *rapid.T) Row {
	r := Row{Message: modelwire.Message{
		Role:    rapid.SampledFrom([]string{"user", "user", "assistant", "assistant", "tool", "tool", "system"}).Draw(t, "role"),
		Content: rapid.SliceOfN(somePart, 0, 4).Draw(t, "content"),
	}}
	if r.Role == "assistant" {
		r.Model = libctx.Model(rapid.SampledFrom([]string{"debug/echo", "debug/tools", ""}).Draw(t, "model"))
		if rapid.Bool().Draw(t, "opaque") && r.Model != "" {
			r.Opaque = &modelwire.Opaque{Provider: "debug", Model: r.Model, Data: jsontext.Value(quoted(someText.Draw(t, "data")))}
		}
	}
	return r
})

// Whatever a ledger holds, the array is a valid request within its bytes, or
// the error says that the user's words do not fit.
func TestAnyHistoryFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(someRow, 0, 12).Draw(t, "rows")
		in := Input{
			System: "system", Rows: append(rows, user("now")), Run: len(rows), Model: model,
			Older:  rapid.Bool().Draw(t, "older"),
			Window: window.Size(rapid.SampledFrom([]uint32{0, 100, 300, 1000, 5000, 100_000}).Draw(t, "window")),
		}
		// Turns of the run itself.
		in.Rows = append(in.Rows, rapid.SliceOfN(someRow, 0, 6).Draw(t, "run")...)
		f, err := Fit(in)
		if err != nil {
			if errdefs.KindOf(err) != errdefs.TooMuch || in.Window > 90_000 {
				t.Fatalf("window %d: %v", in.Window, err)
			}
			return
		}
		check(t, in, f)
		users := 0
		for _, m := range f.Messages {
			for _, p := range m.Content {
				if p.Type == "reasoning" && blank(p.Text) || p.Type == "text" && blank(p.Text) {
					t.Fatal("an empty block")
				}
				if p.Text == "now" && m.Role == "user" {
					users++
				}
			}
			if m.Opaque != nil && m.Opaque.Model != model {
				t.Fatal("opaque data of another model")
			}
		}
		if users == 0 {
			t.Fatalf("the user's input is missing: %s", show(f))
		}
		for i, m := range f.Messages[1:] {
			if m.Role == "user" && f.Messages[i].Role == "user" || m.Role == "assistant" && f.Messages[i].Role == "assistant" {
				t.Fatal("a side speaks twice")
			}
		}
		if f.Dropped == 0 && f.Clipped == 0 {
			return
		}
		// Making the window larger loses nothing.
		in.Window = 1 << 24
		if whole, err := Fit(in); err != nil || whole.Dropped > 0 || whole.Clipped > 0 {
			t.Fatalf("%v", err)
		}
	})
}

// Rows that can not fit are paired but not encoded, so those of a branch of
// 10,000 entries would cost a few milliseconds; callers hand over its newest
// part alone, which is the first of these.
func BenchmarkFit(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		var rows []Row
		for i := range n / 4 {
			id := fmt.Sprint("c", i)
			rows = append(rows, user("question"), assistant(called(id, `{"args":["fs.read","README.md"]}`)), resulted(id, strings.Repeat("line\n", 200)), assistant(wire.Text("answer")))
		}
		in := Input{System: "system", Rows: append(rows, user("now")), Run: len(rows), Model: model, Window: 8192}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Fit(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
