package session

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

const testRun = libctx.Run("01J00000000000000000000000")

// foldOf is a fold in the middle of a driven run, one frame in.
func foldOf(t *testing.T) *Fold {
	t.Helper()
	f := new(Fold)
	for _, l := range []string{
		`{"seq":1,"ts":"","type":"session","format":1,"agent":"a","session":"s"}`,
		`{"seq":2,"ts":"","type":"fact","run":"01J00000000000000000000000","frame":{"type":"start"}}`,
	} {
		if _, err := f.Next([]byte(l)); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestFoldMapping(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"user entries are silent": {`"type":"entry","id":"e1","parent":null,"kind":"message","role":"user","content":[{"type":"text","text":"x"}]`, ``},
		"other kinds are silent":  {`"type":"entry","id":"e1","parent":null,"kind":"compaction","role":"assistant","content":[{"type":"text","text":"x"}]`, ``},
		"head":                    {`"type":"head","id":null`, ``},
		"message then calls": {`"type":"entry","id":"e1","parent":null,"kind":"message","role":"assistant","content":[{"type":"tool_call","call":"c","name":"n","arguments":{"a":1}},{"type":"text","text":"x"},{"type":"image","text":"y"}]`,
			`{"type":"message","id":"R.2","run":"R","role":"assistant","content":[{"type":"text","text":"x"}]}
{"type":"tool_call","id":"R.3","run":"R","call":"c","name":"n","arguments":{"a":1}}
`},
		"usage":     {`"type":"usage","kind":"assistant","model":"p/m","input":1,"cache_read":2,"cache_write":3,"output":4,"cost_picodollars":5`, `{"type":"usage","id":"R.2","run":"R","input_tokens":1,"output_tokens":4,"cached_tokens":2,"cache_write_tokens":3}` + "\n"},
		"uncertain": {`"type":"usage_uncertain","kind":"assistant","model":"p/m"`, `{"type":"usage_uncertain","id":"R.2","run":"R","kind":"assistant","model":"p/m"}` + "\n"},
		"completed": {`"type":"checkpoint","outcome":"completed"`, `{"type":"done","id":"R.2","run":"R","status":"ok"}` + "\n"},
		"cancelled": {`"type":"checkpoint","outcome":"cancelled","code":"ECANCELED"`, `{"type":"done","id":"R.2","run":"R","status":"cancelled"}` + "\n"},
		"failed": {`"type":"checkpoint","outcome":"failed","code":"EPROTO","message":"why"`,
			`{"type":"error","id":"R.2","run":"R","code":"EPROTO","message":"why"}` + "\n" + `{"type":"done","id":"R.3","run":"R","status":"error"}` + "\n"},
		"max turns": {`"type":"checkpoint","outcome":"max_turns"`,
			`{"type":"error","id":"R.2","run":"R","code":"E2BIG","message":"the run ended: max_turns"}` + "\n" + `{"type":"done","id":"R.3","run":"R","status":"error"}` + "\n"},
		"interrupted": {`"type":"checkpoint","outcome":"interrupted","message":"gone"`,
			`{"type":"error","id":"R.2","run":"R","code":"EINTR","message":"gone"}` + "\n" + `{"type":"done","id":"R.3","run":"R","status":"error"}` + "\n"},
		"fact keeps what it has": {`"type":"fact","frame":{"type":"tool_policy","call":"c","allowed":true,"new":{"x":1.50},"run":"other","id":"9"}`,
			`{"type":"tool_policy","id":"R.2","run":"R","call":"c","allowed":true,"new":{"x":1.50}}` + "\n"},
		"fact of another kind": {`"type":"fact","frame":{"type":"provider_retry","attempt":2,"text":"\u00e9"}`,
			`{"type":"provider_retry","id":"R.2","run":"R","attempt":2,"text":"\u00e9"}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			run := `"run":"01J00000000000000000000000",`
			if strings.Contains(test.body, `"type":"head"`) {
				run = ""
			}
			events, err := foldOf(t).Next([]byte(`{"seq":3,"ts":"",` + run + test.body + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := text(events), strings.ReplaceAll(test.want, `R"`, string(testRun)+`"`); strings.ReplaceAll(got, string(testRun), "R") != strings.ReplaceAll(want, string(testRun), "R") {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestFoldNamesResults(t *testing.T) {
	f := foldOf(t)
	for _, l := range []string{
		`{"seq":3,"ts":"","type":"entry","id":"e1","parent":null,"run":"01J00000000000000000000000","kind":"message","role":"assistant","content":[{"type":"tool_call","call":"c","name":"fs.read","arguments":{}}]}`,
		`{"seq":4,"ts":"","type":"entry","id":"e2","parent":"e1","run":"01J00000000000000000000000","kind":"message","role":"tool","content":[{"type":"tool_result","call":"c","status":"ok","text":"t"}]}`,
	} {
		events, err := f.Next([]byte(l))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text(events), `"name":"fs.read"`) {
			t.Errorf("no name in %s", text(events))
		}
	}
}

func TestFactWithoutRunHasNoFrame(t *testing.T) {
	events, err := foldOf(t).Next([]byte(`{"seq":3,"ts":"","type":"fact","frame":{"type":"agent.start"}}`))
	if err != nil || len(events) != 0 {
		t.Errorf("%v, %v", events, err)
	}
}

// Every member that can be long goes out clipped, and no line passes the limit,
// however the text is escaped.
func TestFoldClips(t *testing.T) {
	long := strings.Repeat("\x01", 512<<10)
	quoted := string(quote(long))
	args := jsontext.Value(`{"text":` + quoted + `}`)
	entry := func(role string, parts ...wire.Part) *Entry {
		return &Entry{ID: "e1", Run: testRun, Kind: KindMessage, Role: role, Content: parts}
	}
	many := make([]wire.Part, 200_000)
	for i := range many {
		many[i] = wire.Text("")
	}
	var members strings.Builder
	for i := range 60 {
		fmt.Fprintf(&members, `,"m%d":%s`, i, quote(strings.Repeat("x", 60<<10)))
	}
	for name, test := range map[string]struct {
		record Record
		bytes  int
	}{
		"message":        {entry(RoleAssistant, wire.Text(long), wire.Text("tail")), len(long) + 4},
		"empty parts":    {entry(RoleAssistant, many...), 0},
		"arguments":      {entry(RoleAssistant, wire.Part{Type: "tool_call", Call: "c", Name: "n", Arguments: args}), len(args)},
		"result":         {entry(RoleTool, wire.Part{Type: "tool_result", Call: "c", Name: "n", Status: "ok", Text: long}), len(long)},
		"fact arguments": {&Fact{Run: testRun, Frame: &wire.ToolCall{Head: wire.Head{Type: "tool_call"}, Call: "c", Name: "n", Arguments: args}}, len(args)},
		"fact content":   {&Fact{Run: testRun, Frame: &wire.ToolResult{Head: wire.Head{Type: "tool_result"}, Call: "c", Name: "n", Content: long}}, len(long)},
		"fact members":   {&Fact{Run: testRun, Frame: &wire.Other{Raw: jsontext.Value(`{"type":"x"` + members.String() + `}`)}}, -1},
		"error":          {&Checkpoint{Run: testRun, Outcome: Failed, Code: errdefs.IO, Message: long}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			*test.record.Header() = Meta{Seq: 3, Type: typeOf(test.record)}
			l, err := encode(test.record)
			if err != nil {
				t.Fatal(err)
			}
			events, err := foldOf(t).Next(l)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				if len(e.Line) > libctx.MaxFrame {
					t.Errorf("line of %d bytes", len(e.Line))
				}
				if _, err := wire.DecodeFrame(e.Line); err != nil {
					t.Error(err)
				}
			}
			first := events[0].Line
			if want := fmt.Sprintf(`"truncated":true,"bytes":%d`, test.bytes); test.bytes > 0 &&
				!(bytes.Contains(first, []byte(want)) || bytes.Contains(first, []byte(`"truncated":true`)) && bytes.Contains(first, []byte(fmt.Sprintf(`"bytes":%d`, test.bytes)))) {
				t.Errorf("no %s in %.200s … %s", want, first, first[len(first)-200:])
			}
			if test.bytes == -1 && !bytes.HasPrefix(first, []byte(`{"type":"x","id":"`)) {
				t.Errorf("line is %.200s", first)
			}
		})
	}
}

// The count that a scan makes of events is the count of the events made.
func TestFoldCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.Custom(func(t *rapid.T) wire.Part {
			return wire.Part{Type: rapid.SampledFrom([]string{"text", "tool_call", "tool_result", "image"}).Draw(t, "part"),
				Text: rapid.String().Draw(t, "text"), Call: "c", Name: "n"}
		})).Draw(t, "parts")
		r := rapid.SampledFrom([]Record{
			&Entry{ID: "e1", Run: testRun, Kind: KindMessage, Role: RoleUser, Content: parts},
			&Entry{ID: "e1", Run: testRun, Kind: KindMessage, Role: RoleAssistant, Content: parts},
			&Entry{ID: "e1", Run: testRun, Kind: KindMessage, Role: RoleTool, Content: parts},
			&Entry{ID: "e1", Run: testRun, Kind: "skill", Content: parts},
			&Checkpoint{Run: testRun, Outcome: Completed}, &Checkpoint{Run: testRun, Outcome: Failed},
			&Usage{Run: testRun}, &UsageUncertain{Run: testRun}, &Head{},
			&Fact{Run: testRun, Frame: &wire.Delta{Head: wire.Head{Type: "x"}}},
		}).Draw(t, "record")
		*r.Header() = Meta{Seq: 1, Type: typeOf(r)}
		l, err := encode(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := decodeBrief(l)
		if err != nil {
			t.Fatal(err)
		}
		events, err := new(Fold).Next(l)
		if err != nil || len(events) != b.frames() {
			t.Errorf("%d events, counted %d (%v): %s", len(events), b.frames(), err, l)
		}
	})
}

func FuzzDecodeRecord(f *testing.F) {
	for _, s := range []string{
		`{"seq":1,"ts":"2026-11-30T12:00:00.000Z","type":"session","format":1,"agent":"coder","session":"default"}`,
		`{"seq":2,"ts":"","type":"entry","id":"e1","parent":null,"run":"01J00000000000000000000000","kind":"message","role":"user","content":[{"type":"text","text":"hello"}],"client_id":"msg-1"}`,
		`{"seq":3,"ts":"","type":"head","id":"e1"}`,
		`{"seq":3,"ts":"","type":"head","id":null}`,
		`{"seq":5,"ts":"","type":"usage","run":"01J00000000000000000000000","kind":"assistant","model":"openai/x","input":10,"cache_read":0,"cache_write":0,"output":2,"cost_picodollars":1200}`,
		`{"seq":6,"ts":"","type":"fact","run":"01J00000000000000000000000","frame":{"type":"tool_policy","call":"call-1","allowed":true,"via":"tsh","name":"fs.read"}}`,
		`{"seq":6,"ts":"","type":"fact","event":"01J00000000000000000000000.1","frame":{"type":"agent.start","terminal":"terminal-a-s","pid":7}}`,
		`{"seq":7,"ts":"","type":"entry","id":"e3","parent":"e2","run":"01J00000000000000000000000","kind":"message","role":"tool","content":[{"type":"tool_result","call":"call-1","status":"ok","text":"x"}]}`,
		`{"seq":12,"ts":"","type":"checkpoint","run":"01J00000000000000000000000","outcome":"failed","code":"EIO"}`,
		`{"seq":9,"ts":"","type":"usage_uncertain","run":"01J00000000000000000000000","kind":"assistant","model":"p/m"}`,
		`{"seq":1,"type":"future"}`, `{"seq":1e400}`, `{"seq":null,"type":"head","id":null}`, `[]`, `{`, "{\"seq\":1,\"seq\":1}", "{\"type\":\"\xff\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := DecodeRecord(in)
		if err != nil {
			if r != nil {
				t.Errorf("a record with an error: %v", r)
			}
			if !errdefs.Is(err, errdefs.Invalid) {
				t.Errorf("kind %s", errdefs.KindOf(err))
			}
			return
		}
		// What was read is written so that it reads the same. A fact's frame is
		// typed by package wire, which writes members that the fact left out.
		if _, fact := r.(*Fact); !fact {
			once, err := encode(r)
			if err != nil {
				t.Fatalf("%v of %q", err, in)
			}
			again, err := DecodeRecord(once)
			if err != nil {
				t.Fatalf("%v: %q from %q", err, once, in)
			}
			twice, err := encode(again)
			if err != nil || !bytes.Equal(once, twice) {
				t.Errorf("%q became %q (%v)", once, twice, err)
			}
		}
		// And its frames, if it has any, are frames.
		events, err := new(Fold).Next(in)
		if err != nil {
			return
		}
		for _, e := range events {
			if len(e.Line) > libctx.MaxFrame || bytes.IndexByte(e.Line, '\n') != len(e.Line)-1 {
				t.Errorf("line %q", e.Line)
			}
			if _, err := wire.DecodeFrame(e.Line); err != nil {
				t.Errorf("%v: %q", err, e.Line)
			}
		}
	})
}
