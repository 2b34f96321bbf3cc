package envelope

import (
	"bytes"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// example is the invocation of docs/reference/envelope.md.
const example = `{
  "schema": "cortexfs.agent-invocation/v1",
  "run": "run-1",
  "step": 1,
  "input": "original user input",
  "history_messages": "[]",
  "tool_context": "",
  "observation": {
    "tool_call_id": "call-1",
    "name": "example.echo",
    "status": "ok",
    "content": "authoritative normalized result",
    "truncated": false
  }
}
`

func TestDecodeExample(t *testing.T) {
	want := &Invocation{
		Run: "run-1", Step: 1, Input: "original user input", HistoryMessages: "[]",
		Observation: &Observation{
			ToolCallID: "call-1", Name: "example.echo", Status: "ok", Content: "authoritative normalized result",
		},
	}
	got, err := Decode([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestEncode(t *testing.T) {
	i := &Invocation{Run: run, Input: "hello \"<&>\"\n", HistoryMessages: "[]"}
	got, err := i.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schema":"cortexfs.agent-invocation/v1","run":"` + string(run) + `","step":0,"input":"hello \"<&>\"\n",` +
		`"history_messages":"[]","tool_context":"","observation":null}` + "\n"
	if string(got) != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	edit := func(old, new string) string {
		if !strings.Contains(example, old) {
			t.Fatalf("the example does not hold %q", old)
		}
		return strings.Replace(example, old, new, 1)
	}
	cases := map[string]string{
		"nothing":                       "",
		"only a newline":                "\n",
		"no newline":                    strings.TrimSuffix(example, "\n"),
		"two newlines":                  example + "\n",
		"CR LF":                         strings.TrimSuffix(example, "\n") + "\r\n",
		"a space before":                " " + example,
		"a byte order mark":             "\ufeff" + example,
		"bytes after":                   example + "x",
		"two objects":                   example + example,
		"an array":                      "[]\n",
		"an unfinished object":          example[:60] + "}\n",
		"an unknown member":             edit(`"step": 1`, `"step": 1, "more": 1`),
		"a duplicate member":            edit(`"step": 1`, `"step": 1, "step": 1`),
		"a member of another case":      edit(`"step"`, `"Step"`),
		"another schema":                edit("invocation/v1", "invocation/v2"),
		"invalid UTF-8":                 edit("original", "\xff"),
		"a run that is a path":          edit("run-1", "../run"),
		"an empty run":                  edit("run-1", ""),
		"a run of null":                 edit(`"run-1"`, "null"),
		"a step that is a text":         edit(`"step": 1`, `"step": "1"`),
		"a step that is a fraction":     edit(`"step": 1`, `"step": 1.5`),
		"a huge step":                   edit(`"step": 1`, `"step": 1e400`),
		"a negative step":               edit(`"step": 1`, `"step": -1`),
		"a ninth step":                  edit(`"step": 1`, `"step": 9`),
		"step 0 with an observation":    edit(`"step": 1`, `"step": 0`),
		"an unknown observation member": edit(`"truncated": false`, `"truncated": false, "x": 1`),
		"truncated that is a number":    edit(`"truncated": false`, `"truncated": 0`),
		"another status":                edit(`"status": "ok"`, `"status": "done"`),
		"a tool name that is a path":    edit("example.echo", "../echo"),
		"a call id with a slash":        edit("call-1", "a/b"),
		"an observation that is a list": edit(example[strings.Index(example, `{
    "tool`):len(example)-3], "[]"),
		"long history":        edit(`"[]"`, `"`+strings.Repeat("h", libctx.MaxContextText+1)+`"`),
		"long tool context":   edit(`"tool_context": ""`, `"tool_context": "`+strings.Repeat("h", libctx.MaxContextText+1)+`"`),
		"a long observation":  edit("authoritative", strings.Repeat("c", libctx.MaxObservation)),
		"more than one MiB":   edit("original", strings.Repeat("i", libctx.MaxEnvelope)),
		"20,000 levels":       edit(`"step": 1`, `"step": `+strings.Repeat("[", 20000)),
		"a step 1 with null":  `{"schema":"` + libctx.EnvelopeSchema + `","run":"r","step":1,"input":"","history_messages":"","tool_context":"","observation":null}` + "\n",
		"a lone surrogate":    edit("original", `\ud800`),
		"a NUL byte in place": edit("original", "\x00"),
	}
	for _, member := range []string{
		"schema", "run", "step", "input", "history_messages", "tool_context",
		"tool_call_id", "name", "status", "content",
	} {
		// Drop the member's whole line.
		at := strings.Index(example, `"`+member+`"`)
		end := at + strings.IndexByte(example[at:], '\n')
		cases["no "+member] = example[:at] + example[end:]
	}
	cases["no truncated"] = edit(",\n    \"truncated\": false", "")
	cases["no observation"] = example[:strings.Index(example, ",\n  \"observation\"")] + "\n}\n"
	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			i, err := Decode([]byte(body))
			if i != nil || !errdefs.Is(err, errdefs.Invalid) {
				t.Fatalf("got %v, %v", i, err)
			}
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
				t.Errorf("not one short line: %q", err)
			}
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	seen := &Observation{ToolCallID: "c", Name: "tsh", Status: "ok"}
	long := strings.Repeat("a", libctx.MaxContextText+1)
	for name, c := range map[string]struct {
		in   Invocation
		kind errdefs.Kind
	}{
		"no run":               {Invocation{}, errdefs.Invalid},
		"step 0, observation":  {Invocation{Run: run, Observation: seen}, errdefs.Invalid},
		"step 1, none":         {Invocation{Run: run, Step: 1}, errdefs.Invalid},
		"step 9":               {Invocation{Run: run, Step: 9, Observation: seen}, errdefs.Invalid},
		"history":              {Invocation{Run: run, HistoryMessages: long}, errdefs.Invalid},
		"tool context":         {Invocation{Run: run, ToolContext: long}, errdefs.Invalid},
		"input not UTF-8":      {Invocation{Run: run, Input: "\xff"}, errdefs.Invalid},
		"observation too long": {Invocation{Run: run, Step: 1, Observation: &Observation{ToolCallID: "c", Name: "tsh", Status: "ok", Content: long}}, errdefs.Invalid},
		"whole too long":       {Invocation{Run: run, Input: strings.Repeat("\x01", libctx.MaxEnvelope/2)}, errdefs.TooBig},
	} {
		body, err := c.in.Encode()
		if body != nil || !errdefs.Is(err, c.kind) {
			t.Errorf("%s: %d bytes, %v", name, len(body), err)
		}
	}
}

func TestEncodeExactlyTheLimit(t *testing.T) {
	i := &Invocation{Run: run}
	empty, err := i.Encode()
	if err != nil {
		t.Fatal(err)
	}
	i.Input = strings.Repeat("a", libctx.MaxEnvelope-len(empty))
	body, err := i.Encode()
	if err != nil || len(body) != libctx.MaxEnvelope {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	if _, err := Decode(body); err != nil {
		t.Error(err)
	}
	i.Input += "a"
	if _, err := i.Encode(); !errdefs.Is(err, errdefs.TooBig) {
		t.Errorf("one byte more: %v", err)
	}
}

func TestRoundTrip(t *testing.T) {
	name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_+-]{0,20}`)
	rapid.Check(t, func(t *rapid.T) {
		in := &Invocation{
			Run: libctx.Run(name.Draw(t, "run")), Step: rapid.IntRange(0, MaxStep).Draw(t, "step"),
			Input: rapid.String().Draw(t, "input"), HistoryMessages: rapid.String().Draw(t, "history"),
			ToolContext: rapid.String().Draw(t, "context"),
		}
		if in.Step > 0 {
			in.Observation = &Observation{
				ToolCallID: libctx.Call(name.Draw(t, "call")), Name: libctx.Tool(name.Draw(t, "tool")),
				Status:  rapid.SampledFrom([]string{"ok", "error"}).Draw(t, "status"),
				Content: rapid.String().Draw(t, "content"), Truncated: rapid.Bool().Draw(t, "truncated"),
			}
		}
		body, err := in.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Count(body, []byte("\n")) != 1 {
			t.Fatalf("not one line: %q", body)
		}
		out, err := Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(in, out); d != "" {
			t.Fatal(d)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(`{"schema":"cortexfs.agent-invocation/v1","run":"r","step":0,"input":"","history_messages":"","tool_context":"","observation":null}` + "\n"))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		i, err := Decode(body)
		if err != nil {
			if i != nil || !errdefs.Is(err, errdefs.Invalid) {
				t.Fatalf("%v with %v", err, i)
			}
			return
		}
		again, err := i.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(i, back); d != "" {
			t.Fatal(d)
		}
	})
}
