package anthropic

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/ctxd/internal/model/sinktest"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// play runs events through an answer; the events are data lines.
func play(events ...string) (*sinktest.Sink, error) {
	s := &sinktest.Sink{}
	names := toolnames.New([]modelwire.Tool{{Name: "fs.read"}, {Name: "tsh"}})
	a := &answer{Answer: compose.New(s, names, 200), request: &modelwire.Generate{Model: "p/m"}, key: provider.NewSecret("hush-hush-key")}
	if err := s.Send(&modelwire.Start{Model: "p/m"}); err != nil {
		return s, err
	}
	for _, data := range events {
		ev := transport.Event{Data: []byte(data)}
		if typed, rest, ok := strings.Cut(data, "|"); ok && !strings.HasPrefix(data, "{") {
			ev = transport.Event{Type: typed, Data: []byte(rest)}
		}
		if err := a.event(ev); err != nil {
			var f *modelwire.Failure
			if errors.As(err, &f) {
				err = a.Fail(f)
			}
			return s, err
		}
	}
	return s, a.finish()
}

const begin = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":7,"cache_read_input_tokens":100,"output_tokens":1}}}`

func opens(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func calls(index int, id, name string) string {
	return opens(index, `{"type":"tool_use","id":`+quote(id)+`,"name":`+quote(name)+`,"input":{}}`)
}

func piece(index int, kind, member, text string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":%s}}`, index, kind, member, quote(text))
}

func said(index int, text string) string { return piece(index, "text_delta", "text", text) }
func input(index int, text string) string {
	return piece(index, "input_json_delta", "partial_json", text)
}
func closes(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

func stops(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":` + quote(reason) + `,"stop_sequence":null},"usage":{"output_tokens":15}}`
}

const openText = `{"type":"text","text":""}`

func quote(s string) string {
	text, _ := jsontext.AppendQuote(nil, s)
	return string(text)
}

func TestAnswer(t *testing.T) {
	for what, c := range map[string]struct {
		events []string
		want   string
	}{
		"text": {
			[]string{begin, opens(0, openText), `{"type":"ping"}`, said(0, "Hel"), said(0, "lo"), closes(0), stops("end_turn")},
			"text Hel\ntext lo\nstop end\n  text Hello\nusage 25 100 7 15 -\n",
		},
		"nothing":          {[]string{stops("end_turn")}, "stop end\nusage - - - 15 -\n"},
		"a stop sequence":  {[]string{stops("stop_sequence")}, "stop end\nusage - - - 15 -\n"},
		"length":           {[]string{stops("max_tokens")}, "stop length\nusage - - - 15 -\n"},
		"window":           {[]string{stops("model_context_window_exceeded")}, "stop length\nusage - - - 15 -\n"},
		"refusal":          {[]string{opens(0, openText), said(0, "no"), stops("refusal")}, "text no\nstop refusal\n  text no\nusage - - - 15 -\n"},
		"a pause":          {[]string{stops("pause_turn")}, "stop other\nusage - - - 15 -\n"},
		"calls, no one":    {[]string{stops("tool_use")}, "stop other\nusage - - - 15 -\n"},
		"a new reason":     {[]string{stops("bored")}, "stop other\nusage - - - 15 -\n"},
		"events of later":  {[]string{`{"type":"weather","index":7}`, opens(0, `{"type":"hologram","x":1}`), said(0, "x"), closes(0), closes(9), stops("end_turn")}, "stop end\nusage - - - 15 -\n"},
		"text at once":     {[]string{opens(0, `{"type":"text","text":"x"}`), stops("end_turn")}, "text x\nstop end\n  text x\nusage - - - 15 -\n"},
		"another's pieces": {[]string{opens(0, openText), input(0, "{}"), piece(0, "signature_delta", "signature", "s"), said(0, "x"), stops("end_turn")}, "text x\nstop end\n  text x\nusage - - - 15 -\n"},
		"NUL":              {[]string{opens(0, openText), said(0, "a\x00b"), stops("end_turn")}, "text a␀b\nstop end\n  text a␀b\nusage - - - 15 -\n"},
		"a call": {
			[]string{begin, opens(0, openText), said(0, "I read."), closes(0), calls(1, "toolu_1", "fs__read"), input(1, ""), input(1, `{"n":12345678901234567890,"pa`), input(1, `th": "a"}`), closes(1), stops("tool_use")},
			"text I read.\ncall 0 toolu_1 fs.read\nargs 0 {\"n\":12345678901234567890,\"pa\nargs 0 th\": \"a\"}\nstop tool_calls\n  text I read.\n" +
				"  tool_call call-1fs.read{\"n\":12345678901234567890,\"path\":\"a\"}\nusage 25 100 7 15 -\n",
		},
		"interleaved calls": {
			[]string{calls(0, "a", "tsh"), calls(1, "b", "tsh"), input(1, `{"b"`), input(0, `{"a"`), input(1, `:2}`), input(0, `:1}`), closes(1), closes(0), stops("tool_use")},
			"call 0 a tsh\ncall 1 b tsh\nargs 1 {\"b\"\nargs 0 {\"a\"\nargs 1 :2}\nargs 0 :1}\nstop tool_calls\n  tool_call call-1tsh{\"a\":1}\n  tool_call call-2tsh{\"b\":2}\nusage - - - 15 -\n",
		},
		"one id, one index": {
			[]string{calls(0, "a", "tsh"), input(0, `{"a":1}`), closes(0), calls(0, "a", "tsh"), input(0, `{"b":2}`), closes(0), stops("end_turn")},
			"call 0 a tsh\nargs 0 {\"a\":1}\ncall 1 a tsh\nargs 1 {\"b\":2}\nstop tool_calls\n  tool_call call-1tsh{\"a\":1}\n  tool_call call-2tsh{\"b\":2}\nusage - - - 15 -\n",
		},
		"arguments at once": {
			[]string{opens(0, `{"type":"tool_use","id":"a","name":"tsh","input":{"a":1}}`), closes(0), opens(1, `{"type":"tool_use","id":"b","name":"tsh"}`), stops("tool_use")},
			"call 0 a tsh\nargs 0 {\"a\":1}\ncall 1 b tsh\nstop tool_calls\n  tool_call call-1tsh{\"a\":1}\n  tool_call call-2tsh{}\nusage - - - 15 -\n",
		},
		"arguments cut off": {
			[]string{calls(0, "a", "tsh"), input(0, `{"a":`), stops("max_tokens")},
			"call 0 a tsh\nargs 0 {\"a\":\nstop length\n  tool_call call-1tsh{} !the arguments are not JSON: {\"a\":\nusage - - - 15 -\n",
		},
		"no tool": {
			[]string{calls(0, "a", "../tsh"), stops("tool_use")},
			"call 0 a ../tsh\nstop tool_calls\n  tool_call call-1{} !not the name of a tool: ../tsh\nusage - - - 15 -\n",
		},
		"thinking": {
			[]string{
				opens(0, `{"type":"thinking","thinking":"","signature":""}`), piece(0, "thinking_delta", "thinking", "h"), piece(0, "thinking_delta", "thinking", "m\x00"),
				piece(0, "signature_delta", "signature", "Sig+/="), closes(0), opens(1, `{"type":"redacted_thinking","data":"Red=="}`), closes(1),
				opens(2, openText), said(2, "x"), closes(2), opens(3, openText), said(3, " "), closes(3), opens(4, `{"type":"thinking","thinking":"more","signature":"S2"}`), closes(4),
				calls(5, "a", "tsh"), closes(5), opens(6, `{"type":"thinking","thinking":"cut off"}`), stops("tool_use"),
			},
			"think h\nthink m␀\ntext x\ntext  \nthink more\ncall 0 a tsh\nthink cut off\nstop tool_calls\n  reasoning hm␀\n  text x\n  text  \n  reasoning more\n" +
				"  tool_call call-1tsh{}\n  reasoning cut off\n" +
				`  opaque p/m [{"at":0,"data":{"type":"thinking","thinking":"hm\u0000","signature":"Sig+/="}},{"at":0,"data":{"type":"redacted_thinking","data":"Red=="}},{"at":1,"data":{"type":"thinking","thinking":"more","signature":"S2"}}]` +
				"\nusage - - - 15 -\n",
		},
		"thinking that is not shown": {
			[]string{opens(0, `{"type":"thinking","thinking":"","signature":""}`), piece(0, "signature_delta", "signature", "S"), closes(0), opens(1, openText), said(1, "x"), stops("end_turn")},
			"text x\nstop end\n  text x\n  opaque p/m [{\"at\":0,\"data\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"S\"}}]\nusage - - - 15 -\n",
		},
		"usage at the end, with thinking": {
			[]string{begin, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":30,"cache_read_input_tokens":0,"output_tokens":20,"output_tokens_details":{"thinking_tokens":12}}}`},
			"stop end\nusage 30 0 7 20 12\n",
		},
		"usage that can not be": {
			[]string{`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":-1,"output_tokens":2,"output_tokens_details":{"thinking_tokens":3}}}`},
			"stop end\nusage - - - 2 -\n",
		},
		"no usage at all":  {[]string{`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`}, "stop end\n"},
		"usage of nothing": {[]string{`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":0}}`}, "stop end\n"},
		"the first reason": {[]string{stops("end_turn"), stops("max_tokens")}, "stop end\nusage - - - 15 -\n"},
	} {
		s, err := play(c.events...)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if diff := cmp.Diff(c.want, s.String()); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
}

func TestFailures(t *testing.T) {
	for what, c := range map[string]struct {
		events []string
		want   string
	}{
		"no stop_reason":      {[]string{begin, opens(0, openText), said(0, "x"), closes(0)}, "EREMOTEIO body 200 interrupted  seen true"},
		"overloaded":          {[]string{begin, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded hush-hush-key"}}`}, "EREMOTEIO provider 200 overloaded overloaded_error seen false"},
		"an event of errors":  {[]string{`error|{"error":{"type":"api_error","message":"x"}}`}, "EREMOTEIO provider 200 other api_error seen false"},
		"no JSON":             {[]string{`hello`}, "EREMOTEIO decode 200 interrupted  seen false"},
		"half JSON":           {[]string{`{"type":`}, "EREMOTEIO decode 200 interrupted  seen false"},
		"a piece of nothing":  {[]string{said(3, "x")}, "EREMOTEIO decode 200 interrupted  seen false"},
		"a piece that's late": {[]string{calls(0, "a", "tsh"), closes(0), input(0, "{}")}, "EREMOTEIO decode 200 interrupted  seen true"},
	} {
		s, err := play(c.events...)
		var f *modelwire.Failure
		if !errors.As(err, &f) {
			t.Fatalf("%s: %v", what, err)
		}
		got := fmt.Sprintf("%s %s %d %s %s seen %v", f.Code, f.Phase, f.Status, f.Class, f.ProviderCode, f.GenerationSeen)
		if got != c.want || !f.Accepted || strings.Contains(f.Message, "hush") {
			t.Errorf("%s: %s, not %s (%s)", what, got, c.want, f.Message)
		}
		if strings.Contains(s.String(), "stop") {
			t.Errorf("%s: a message", what)
		}
	}
}

func TestLimits(t *testing.T) {
	big := strings.Repeat("x", 8<<20)
	many := []string{begin}
	for i := range libctx.MaxModelParts + 1 {
		many = append(many, opens(i, openText))
	}
	for what, events := range map[string][]string{
		"arguments":  {calls(0, "a", "tsh"), input(0, big), input(0, big), input(0, "x")},
		"text":       {opens(0, openText), said(0, big), said(0, big), said(0, big), said(0, "x")},
		"signatures": {opens(0, `{"type":"thinking","thinking":"x"}`), piece(0, "signature_delta", "signature", big), piece(0, "signature_delta", "signature", big), piece(0, "signature_delta", "signature", big)},
		"both":       {opens(0, `{"type":"thinking","thinking":"","signature":"x"}`), piece(0, "thinking_delta", "thinking", big), piece(0, "thinking_delta", "thinking", big), stops("end_turn")},
		"parts":      many,
	} {
		_, err := play(events...)
		var f *modelwire.Failure
		if !errors.As(err, &f) || f.Class != modelwire.ClassLimit || f.Code != errdefs.Provider {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What an answer leaves behind goes back as it came, to the same model and to no
// other.
func TestThinkingGoesBack(t *testing.T) {
	thinking := `{"type":"thinking","thinking":"a<b>\u0000é","signature":"Sig+/="}`
	s, err := play(opens(0, thinking), opens(1, openText), said(1, "x"), opens(2, `{"type":"redacted_thinking","data":"R"}`), calls(3, "a", "tsh"), input(3, `{"n":9007199254740993}`), stops("tool_use"))
	if err != nil {
		t.Fatal(err)
	}
	var m *modelwire.MessageFrame
	for _, f := range s.Frames {
		if f, ok := f.(*modelwire.MessageFrame); ok {
			m = f
		}
	}
	g := &modelwire.Generate{Model: "p/m", Messages: []modelwire.Message{
		{Role: "user", Content: []wire.Part{wire.Text("hello")}}, {Role: "assistant", Content: m.Content, Opaque: m.Opaque},
		{Role: "tool", Content: []wire.Part{{Type: "tool_result", Call: "call-1", Status: "ok", Text: "y"}}},
	}}
	p := &provider.Provider{Name: "p", Models: []provider.Model{{ID: "claude-opus-4-1-20250805", Name: "m"}, {ID: "other"}}}
	want := `"content":[{"type":"thinking","thinking":"a\u003cb\u003e\u0000é","signature":"Sig+/="},{"text":"x","type":"text"},{"type":"redacted_thinking","data":"R"},{"id":"call-1","input":{"n":9007199254740993},"name":"tsh","type":"tool_use"}]`
	if got := sent(t, p, g); !strings.Contains(got, want) {
		t.Errorf("%s\nhas no\n%s", got, want)
	}
	g.Model = "p/other"
	if got := sent(t, p, g); strings.Contains(got, "thinking") || strings.Contains(got, "Sig") {
		t.Errorf("to another model: %s", got)
	}
}

func TestIsLast(t *testing.T) {
	for what, c := range map[string]struct {
		ev   transport.Event
		want bool
	}{
		"as it is":       {transport.Event{Type: "message_stop", Data: []byte(`{"type":"message_stop"}`)}, true},
		"without a type": {transport.Event{Data: []byte(`{"type":"message_stop","x":1}`)}, true},
		"only said":      {transport.Event{Data: []byte(said(0, "message_stop"))}, false},
		"another":        {transport.Event{Type: "ping", Data: []byte(`{"type":"message_stop"}`)}, false},
		"no JSON":        {transport.Event{Data: []byte(`message_stop`)}, false},
	} {
		if got := isLast(c.ev); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func FuzzEvent(f *testing.F) {
	f.Add(begin, opens(0, openText), said(0, "x"))
	f.Add(calls(0, "a", "tsh"), input(0, `{"a":1}`), closes(0))
	f.Add(opens(0, `{"type":"thinking","thinking":"x","signature":"y"}`), piece(0, "signature_delta", "signature", "z"), piece(0, "thinking_delta", "thinking", "z"))
	f.Add(`{"type":"message_start","message":{"usage":{"input_tokens":1e400,"output_tokens":"x"}}}`, `{"type":"error","error":7}`, `error|{`)
	f.Add(opens(-1, `{"type":"tool_use","id":5,"input":[]}`), closes(-1), `{"type":"message_delta","delta":[],"usage":{"output_tokens":-1}}`)
	f.Fuzz(func(t *testing.T, first, second, third string) {
		s, err := play(first, second, third, stops("end_turn"))
		var failure *modelwire.Failure
		if err != nil && !errors.As(err, &failure) {
			t.Fatal(err)
		}
		for _, f := range s.Frames {
			if f.Kind() == "message" && err != nil {
				t.Fatalf("a message and %v", err)
			}
		}
		if failure != nil {
			if _, err := modelwire.MarshalFrame(&modelwire.Error{Failure: *failure}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
