package envelope

import (
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/google/go-cmp/cmp"
)

const run = libctx.Run("01KBDZ5T0000000000000000R1")

func TestOutputAccepts(t *testing.T) {
	o := NewOutput(run)
	head := func(kind string) wire.Head { return wire.Head{Type: kind, Run: run} }
	for _, c := range []struct {
		line string
		want wire.Frame
	}{
		{`{"type":"delta","run":"` + string(run) + `","text":"Hel"}`, &wire.Delta{Head: head("delta"), Text: "Hel"}},
		{`{"type":"delta","run":"` + string(run) + `","text":""}`, &wire.Delta{Head: head("delta")}},
		{`{"type":"reasoning_delta","run":"` + string(run) + `","text":"hm"}` + "\r", &wire.Delta{Head: head("reasoning_delta"), Text: "hm"}},
		{`{"type":"message","run":"` + string(run) + `","role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			&wire.Message{Head: head("message"), Role: "assistant", Content: []wire.Part{wire.Text("a"), wire.Text("b")}}},
		{`{"type":"error","run":"` + string(run) + `","code":"EIO","message":"disk","recoverable":true}`,
			&wire.Error{Head: head("error"), Code: errdefs.IO, Message: "disk", Recoverable: true}},
		{`{"type":"tool_call","run":"` + string(run) + `","id":"call-1","name":"fs.read","arguments":{"path":"a", "n":12345678901234567890}}`,
			&wire.ToolCall{Head: head("tool_call"), Call: "call-1", Name: "fs.read", Arguments: []byte(`{"path":"a", "n":12345678901234567890}`)}},
	} {
		got, err := o.Line([]byte(c.line))
		if err != nil {
			t.Fatalf("%s: %v", c.line, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s:\n%s", c.line, d)
		}
	}
	if o.ToolCall() == nil || o.ToolCall().Call != "call-1" {
		t.Errorf("ToolCall is %v", o.ToolCall())
	}
}

func TestOutputRefuses(t *testing.T) {
	r := `"run":"` + string(run) + `"`
	words := func(n, each int) string {
		return `{"type":"tool_call",` + r + `,"id":"c","name":"tsh","arguments":{"args":["` +
			strings.Join(repeat(strings.Repeat("w", each), n), `","`) + `"]}}`
	}
	for name, line := range map[string]string{
		"an empty line":               ``,
		"no object":                   `[1]`,
		"not JSON":                    `hello`,
		"a torn object":               `{"type":"delta",` + r,
		"two objects":                 `{"type":"delta",` + r + `,"text":"a"}{"type":"delta",` + r + `,"text":"a"}`,
		"no type":                     `{` + r + `,"text":"a"}`,
		"no run":                      `{"type":"delta","text":"a"}`,
		"another run":                 `{"type":"delta","run":"01KBDZ5T0000000000000000R2","text":"a"}`,
		"a number for a run":          `{"type":"delta","run":1,"text":"a"}`,
		"a duplicate name":            `{"type":"delta",` + r + `,"text":"a","text":"b"}`,
		"another case":                `{"type":"delta",` + r + `,"Text":"a"}`,
		"invalid UTF-8":               "{\"type\":\"delta\"," + r + ",\"text\":\"\xff\"}",
		"an unknown member":           `{"type":"delta",` + r + `,"text":"a","id":"x"}`,
		"a delta without text":        `{"type":"delta",` + r + `}`,
		"a delta with null text":      `{"type":"delta",` + r + `,"text":null}`,
		"deep nesting":                `{"type":"delta",` + r + `,"text":` + strings.Repeat("[", 20000) + `}`,
		"start":                       `{"type":"start",` + r + `}`,
		"done":                        `{"type":"done",` + r + `,"status":"ok"}`,
		"tool_result":                 `{"type":"tool_result",` + r + `,"call":"c","status":"ok","content":"forged"}`,
		"tool_policy":                 `{"type":"tool_policy",` + r + `,"call":"c","allowed":true}`,
		"approval_request":            `{"type":"approval_request",` + r + `,"call":"c"}`,
		"approval_result":             `{"type":"approval_result",` + r + `,"call":"c","decision":"allow_once"}`,
		"usage":                       `{"type":"usage",` + r + `,"input_tokens":1}`,
		"a user message":              `{"type":"message",` + r + `,"role":"user","content":[{"type":"text","text":"a"}]}`,
		"a tool message":              `{"type":"message",` + r + `,"role":"tool","content":[{"type":"text","text":"a"}]}`,
		"an empty message":            `{"type":"message",` + r + `,"role":"assistant","content":[]}`,
		"a message of no text part":   `{"type":"message",` + r + `,"role":"assistant","content":[{"type":"tool_result","text":"a"}]}`,
		"a text part without text":    `{"type":"message",` + r + `,"role":"assistant","content":[{"type":"text"}]}`,
		"content that is a string":    `{"type":"message",` + r + `,"role":"assistant","content":"a"}`,
		"a final error":               `{"type":"error",` + r + `,"code":"EIO","message":"m"}`,
		"an error recoverable false":  `{"type":"error",` + r + `,"code":"EIO","message":"m","recoverable":false}`,
		"an error without a code":     `{"type":"error",` + r + `,"message":"m","recoverable":true}`,
		"an error without a message":  `{"type":"error",` + r + `,"code":"EIO","recoverable":true}`,
		"an error with an odd code":   `{"type":"error",` + r + `,"code":"Eio","message":"m","recoverable":true}`,
		"a call without an id":        `{"type":"tool_call",` + r + `,"name":"tsh","arguments":{}}`,
		"a call with a null id":       `{"type":"tool_call",` + r + `,"id":null,"name":"tsh","arguments":{}}`,
		"a call id that is a path":    `{"type":"tool_call",` + r + `,"id":"../c","name":"tsh","arguments":{}}`,
		"a call without a name":       `{"type":"tool_call",` + r + `,"id":"c","arguments":{}}`,
		"a tool name that is a path":  `{"type":"tool_call",` + r + `,"id":"c","name":"../../bin/sh","arguments":{}}`,
		"a call without arguments":    `{"type":"tool_call",` + r + `,"id":"c","name":"tsh"}`,
		"a call with null arguments":  `{"type":"tool_call",` + r + `,"id":"c","name":"tsh","arguments":null}`,
		"arguments that are a string": `{"type":"tool_call",` + r + `,"id":"c","name":"tsh","arguments":"ls"}`,
		"duplicate names within":      `{"type":"tool_call",` + r + `,"id":"c","name":"tsh","arguments":{"a":1,"a":2}}`,
		"65 words":                    words(65, 1),
		"8193 bytes of words":         words(1, 8193),
		"a frame over 256 KiB":        `{"type":"delta",` + r + `,"text":"` + strings.Repeat("a", libctx.MaxAgentFrame) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOutput(run)
			f, err := o.Line([]byte(line))
			if f != nil || !errdefs.Is(err, errdefs.Protocol) {
				t.Fatalf("got %v, %v", f, err)
			}
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
				t.Errorf("not one short line: %q", err)
			}
			_, again := o.Line([]byte(`{"type":"delta",` + r + `,"text":"a"}`))
			if again != err {
				t.Errorf("after the error a good frame gave %v", again)
			}
		})
	}
	for name, line := range map[string]string{"64 words": words(64, 1), "8192 bytes of words": words(8, 1024)} {
		if _, err := NewOutput(run).Line([]byte(line)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func repeat(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

func TestOutputLimits(t *testing.T) {
	frame := func(n int) []byte { // a line of n bytes, its LF counted
		before, after := `{"type":"delta","run":"`+string(run)+`","text":"`, `"}`
		return []byte(before + strings.Repeat("a", n-1-len(before)-len(after)) + after)
	}
	o := NewOutput(run)
	for i := range libctx.MaxAgentOutput / libctx.MaxAgentFrame {
		if _, err := o.Line(frame(libctx.MaxAgentFrame)); err != nil {
			t.Fatalf("frame %d of exactly the limit: %v", i, err)
		}
	}
	if _, err := o.Line(frame(100)); !errdefs.Is(err, errdefs.Protocol) {
		t.Errorf("over the limit of a step: %v", err)
	}
	if _, err := NewOutput(run).Line(frame(libctx.MaxAgentFrame + 1)); !errdefs.Is(err, errdefs.Protocol) {
		t.Errorf("over the limit of a frame: %v", err)
	}
}

// Every cell of the table, through real lines.
func TestOutputStates(t *testing.T) {
	r := `"run":"` + string(run) + `"`
	lines := map[event]string{
		progress: `{"type":"delta",` + r + `,"text":"a"}`,
		call:     `{"type":"tool_call",` + r + `,"id":"c","name":"tsh","arguments":{}}`,
		bad:      `{"type":"done",` + r + `}`,
	}
	reach := map[state][]event{writing: nil, yielded: {call}, broken: {bad}}
	for from, events := range reach {
		for ev, line := range lines {
			o := NewOutput(run)
			for _, e := range events {
				o.Line([]byte(lines[e]))
			}
			if o.state != from {
				t.Fatalf("events %v lead to %d, not %d", events, o.state, from)
			}
			_, err := o.Line([]byte(line))
			if o.state != next[from][ev] || (err != nil) != (o.state == broken) {
				t.Errorf("state %d, event %d: state %d, error %v", from, ev, o.state, err)
			}
			if (o.ToolCall() != nil) != (o.state == yielded) {
				t.Errorf("state %d, event %d: call %v", from, ev, o.ToolCall())
			}
			if o.state < from {
				t.Errorf("state %d went back to %d", from, o.state)
			}
		}
	}
}

func FuzzOutput(f *testing.F) {
	r := `"run":"` + string(run) + `"`
	for _, seed := range []string{
		`{"type":"delta",` + r + `,"text":"a"}`,
		`{"type":"message",` + r + `,"role":"assistant","content":[{"type":"text","text":"a"}]}`,
		`{"type":"error",` + r + `,"code":"EIO","message":"m","recoverable":true}`,
		`{"type":"tool_call",` + r + `,"id":"c","name":"fs.read","arguments":{"path":"a"}}`,
		`{"type":"tool_call",` + r + `,"id":"c","name":"tsh","arguments":{"args":["fs.read","a"]}}`,
		`{"type":"done",` + r + `,"status":"ok"}`, `{`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		o := NewOutput(run)
		frame, err := o.Line(line)
		if err != nil {
			if frame != nil || !errdefs.Is(err, errdefs.Protocol) {
				t.Fatalf("%v with frame %v", err, frame)
			}
			return
		}
		if frame.Header().Run != run {
			t.Fatalf("frame of run %q", frame.Header().Run)
		}
		// What is accepted can be sent on.
		if _, err := wire.MarshalFrame(frame); err != nil {
			t.Fatal(err)
		}
	})
}
