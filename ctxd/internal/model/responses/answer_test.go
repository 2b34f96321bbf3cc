package responses

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
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// play runs events through an answer up to the last one, as read does; the
// events are data lines, with TYPE| before them where there is an event line.
func play(events ...string) (*sinktest.Sink, error) {
	s := &sinktest.Sink{}
	g := &modelwire.Generate{Model: "p/m", Tools: []modelwire.Tool{{Name: "fs.read"}, {Name: "tsh"}}}
	a := &answer{Answer: compose.New(s, toolnames.New(g.Tools), 200), request: g, key: provider.NewSecret("hush-hush-key")}
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
		if isLast(ev) {
			return s, a.finish()
		}
	}
	return s, errors.New("no last event")
}

func quote(s string) string {
	text, _ := jsontext.AppendQuote(nil, s)
	return string(text)
}

func ev(kind, members string) string {
	return `{"type":"` + kind + `",` + members + `}`
}

func added(index int, item string) string {
	return ev("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, index, item))
}

func done(index int, item string) string {
	return ev("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, index, item))
}

func at(index int, id string, members string) string {
	return fmt.Sprintf(`"output_index":%d,"item_id":%s,%s`, index, quote(id), members)
}

func says(index int, id, text string) string {
	return ev("response.output_text.delta", at(index, id, `"content_index":0,"delta":`+quote(text)))
}

func args(index int, id, text string) string {
	return ev("response.function_call_arguments.delta", at(index, id, `"delta":`+quote(text)))
}

func msg(id, text string) string {
	return `{"id":` + quote(id) + `,"type":"message","role":"assistant","content":[{"type":"output_text","text":` + quote(text) + `}]}`
}

func fn(id, callID, name, arguments string) string {
	return `{"id":` + quote(id) + `,"type":"function_call","call_id":` + quote(callID) + `,"name":` + quote(name) + `,"arguments":` + quote(arguments) + `}`
}

func ends(members string) string { return ev("response.completed", `"response":{`+members+`}`) }

func stops(reason string) string {
	return ev("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":`+quote(reason)+`}}`)
}

var over = ends(`"status":"completed","output":[],"usage":null`)

const secret = `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA+/=="}`

func TestAnswer(t *testing.T) {
	for what, c := range map[string]struct {
		events []string
		want   string
	}{
		"text": {
			[]string{ev("response.created", `"response":{}`), added(0, `{"id":"m","type":"message","content":[]}`), says(0, "m", "Hel"), says(0, "m", "lo"), done(0, msg("m", "Hello")), over},
			"text Hel\ntext lo\nstop end\n  text Hello\n",
		},
		"event lines": {
			[]string{"response.output_text.delta|" + says(0, "m", "x"), "response.later|{}", "response.completed|" + over},
			"text x\nstop end\n  text x\n",
		},
		"nothing":                 {[]string{over}, "stop end\n"},
		"blank and foreign":       {[]string{"", " ", `{}`, `{"type":"keepalive"}`, `{"type":7}`, over}, "stop end\n"},
		"no item event":           {[]string{says(0, "m", "x"), over}, "text x\nstop end\n  text x\n"},
		"no pieces":               {[]string{added(0, `{"id":"m","type":"message"}`), done(0, msg("m", "x")), over}, "text x\nstop end\n  text x\n"},
		"the end of a text alone": {[]string{ev("response.output_text.done", at(0, "m", `"content_index":0,"text":"x"`)), done(0, msg("m", "x")), over}, "text x\nstop end\n  text x\n"},
		"the pieces of a text stand": {
			[]string{says(0, "m", " x"), ev("response.output_text.done", at(0, "m", `"content_index":0,"text":"x"`)), done(0, msg("m", "x")), over},
			"text  x\nstop end\n  text  x\n",
		},
		"nothing but the end": {
			[]string{ends(`"output":[` + msg("m", "x") + `,` + fn("f", "c", "tsh", "{}") + `]`)},
			"text x\ncall 0 c tsh\nargs 0 {}\nstop tool_calls\n  text x\n  tool_call call-1tsh{}\n",
		},
		"the end repeats": {
			[]string{says(0, "m", "x"), done(0, msg("m", "x")), done(0, msg("m", "x")), ends(`"output":[` + msg("m", "x") + `]`)},
			"text x\nstop end\n  text x\n",
		},
		"two texts of an item": {
			[]string{says(0, "m", "a"), ev("response.output_text.delta", at(0, "m", `"content_index":1,"delta":"b"`)), says(0, "m", "c"), over},
			"text a\ntext b\ntext c\nstop end\n  text ac\n  text b\n",
		},
		"NUL": {[]string{says(0, "m", "a\x00b"), over}, "text a␀b\nstop end\n  text a␀b\n"},
		"a refusal": {
			[]string{ev("response.refusal.delta", at(0, "m", `"content_index":0,"delta":"I can"`)), ev("response.refusal.delta", at(0, "m", `"content_index":0,"delta":"not"`)), over},
			"text I can\ntext not\nstop refusal\n  text I cannot\n",
		},
		"a refusal at once": {
			[]string{done(0, `{"id":"m","type":"message","content":[{"type":"refusal","refusal":"no"}]}`), over},
			"text no\nstop refusal\n  text no\n",
		},
		"length":          {[]string{says(0, "m", "x"), stops("max_output_tokens")}, "text x\nstop length\n  text x\n"},
		"filtered":        {[]string{says(0, "m", "x"), stops("content_filter")}, "text x\nstop filtered\n  text x\n"},
		"another reason":  {[]string{says(0, "m", "x"), stops("steered")}, "text x\nstop length\n  text x\n"},
		"no reason":       {[]string{ev("response.incomplete", `"response":{"incomplete_details":null}`)}, "stop length\n"},
		"only the status": {[]string{says(0, "m", "x"), ends(`"status":"incomplete","incomplete_details":{"reason":"content_filter"}`)}, "text x\nstop filtered\n  text x\n"},
		"a call": {
			[]string{says(0, "m", "I read."), added(1, fn("f", "c1", "fs__read", "")), args(1, "f", `{"pa`), args(1, "f", `th":"a"}`), ev("response.function_call_arguments.done", at(1, "f", `"arguments":"{\"path\":\"a\"}"`)), done(1, fn("f", "c1", "fs__read", `{"path":"a"}`)), over},
			"text I read.\ncall 0 c1 fs.read\nargs 0 {\"pa\nargs 0 th\":\"a\"}\nstop tool_calls\n  text I read.\n  tool_call call-1fs.read{\"path\":\"a\"}\n",
		},
		"interleaved calls": {
			[]string{added(0, fn("a", "1", "tsh", "")), added(1, fn("b", "2", "tsh", "")), args(0, "a", `{"a`), args(1, "b", `{"b`), args(0, "a", `":1}`), args(1, "b", `":2}`), done(1, fn("b", "2", "tsh", `{"b":2}`)), done(0, fn("a", "1", "tsh", `{"a":1}`)), over},
			"call 0 1 tsh\ncall 1 2 tsh\nargs 0 {\"a\nargs 1 {\"b\nargs 0 \":1}\nargs 1 \":2}\nstop tool_calls\n  tool_call call-1tsh{\"a\":1}\n  tool_call call-2tsh{\"b\":2}\n",
		},
		"one index, different ids": {
			[]string{added(0, fn("a", "1", "tsh", "")), added(0, fn("b", "2", "tsh", "")), args(0, "a", `{"a":1}`), args(0, "b", `{"b":2}`), done(0, fn("a", "1", "tsh", `{"a":1}`)), done(0, fn("b", "2", "tsh", `{"b":2}`)), over},
			"call 0 1 tsh\ncall 1 2 tsh\nargs 0 {\"a\":1}\nargs 1 {\"b\":2}\nstop tool_calls\n  tool_call call-1tsh{\"a\":1}\n  tool_call call-2tsh{\"b\":2}\n",
		},
		"one index, no ids, one after the other": {
			[]string{added(0, fn("", "", "tsh", "")), args(0, "", `{"a":1}`), done(0, fn("", "", "tsh", `{"a":1}`)), added(0, fn("", "", "tsh", "")), args(0, "", `{"b":2}`), done(0, fn("", "", "tsh", `{"b":2}`)), over},
			"call 0  tsh\nargs 0 {\"a\":1}\ncall 1  tsh\nargs 1 {\"b\":2}\nstop tool_calls\n  tool_call call-1tsh{\"a\":1}\n  tool_call call-2tsh{\"b\":2}\n",
		},
		"ids that change": {
			[]string{added(0, fn("a", "1", "tsh", "")), args(0, "b", `{"a":`), args(0, "c", `1}`), done(0, fn("d", "1", "tsh", `{"a":1}`)), over},
			"call 0 1 tsh\nargs 0 {\"a\":\nargs 0 1}\nstop tool_calls\n  tool_call call-1tsh{\"a\":1}\n",
		},
		"one call id twice": {
			[]string{done(0, fn("a", "1", "tsh", `{"a":1}`)), done(1, fn("b", "1", "tsh", `{"a":1}`)), over},
			"call 0 1 tsh\nargs 0 {\"a\":1}\ncall 1 1 tsh\nargs 1 {\"a\":1}\nstop tool_calls\n  tool_call call-1tsh{\"a\":1}\n  tool_call call-2tsh{\"a\":1}\n",
		},
		"announced twice": {
			[]string{added(0, fn("a", "1", "tsh", "")), added(0, fn("a", "1", "tsh", "")), args(0, "a", "{}"), done(0, fn("a", "1", "tsh", "{}")), over},
			"call 0 1 tsh\nargs 0 {}\nstop tool_calls\n  tool_call call-1tsh{}\n",
		},
		"the name comes late": {
			[]string{args(0, "a", `{"a":`), args(0, "a", `1}`), done(0, fn("a", "1", "tsh", `{"a":1}`)), over},
			"call 0 1 tsh\nargs 0 {\"a\":1}\nstop tool_calls\n  tool_call call-1tsh{\"a\":1}\n",
		},
		"no name": {
			[]string{added(0, `{"id":"a","type":"function_call"}`), ev("response.function_call_arguments.done", at(0, "a", `"arguments":"{}"`)), over},
			"call 0  \nargs 0 {}\nstop tool_calls\n  tool_call call-1{} !not the name of a tool: \n",
		},
		"arguments as an object": {
			[]string{done(0, `{"id":"a","type":"function_call","call_id":"1","name":"tsh","arguments":{"args":["x"]}}`), over},
			"call 0 1 tsh\nargs 0 {\"args\":[\"x\"]}\nstop tool_calls\n  tool_call call-1tsh{\"args\":[\"x\"]}\n",
		},
		"spaced otherwise": {
			[]string{added(0, fn("a", "1", "tsh", "")), args(0, "a", `{"a": 1}`), done(0, fn("a", "1", "tsh", `{"a":1}`)), over},
			"call 0 1 tsh\nargs 0 {\"a\": 1}\nstop tool_calls\n  tool_call call-1tsh{\"a\":1}\n",
		},
		"arguments missing, null, blank": {
			[]string{done(0, `{"id":"a","type":"function_call","call_id":"1","name":"tsh"}`), done(1, `{"id":"b","type":"function_call","call_id":"2","name":"tsh","arguments":null}`), done(2, fn("c", "3", "tsh", " \n")), over},
			"call 0 1 tsh\ncall 1 2 tsh\ncall 2 3 tsh\nargs 2  \n\nstop tool_calls\n  tool_call call-1tsh{}\n  tool_call call-2tsh{}\n  tool_call call-3tsh{}\n",
		},
		"cut arguments": {
			[]string{added(0, fn("a", "1", "tsh", "")), args(0, "a", `{"a":`), stops("max_output_tokens")},
			"call 0 1 tsh\nargs 0 {\"a\":\nstop length\n  tool_call call-1tsh{} !the arguments are not JSON: {\"a\":\n",
		},
		"reasoning": {
			[]string{
				ev("response.reasoning_summary_text.delta", at(0, "rs_1", `"summary_index":0,"delta":"hm"`)), ev("response.reasoning_summary_text.delta", at(0, "rs_1", `"summary_index":1,"delta":"so"`)),
				done(0, `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"so"}]}`), says(1, "m", "x"), over,
			},
			"think hm\nthink so\ntext x\nstop end\n  reasoning hm\n  reasoning so\n  text x\n",
		},
		"reasoning of an open model": {
			[]string{ev("response.reasoning_text.delta", at(0, "r", `"content_index":0,"delta":"hm"`)), ev("response.reasoning_text.done", at(0, "r", `"content_index":0,"text":"hm"`)), says(1, "m", "x"), over},
			"think hm\ntext x\nstop end\n  reasoning hm\n  text x\n",
		},
		"encrypted reasoning": {
			[]string{added(0, `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"not yet"}`), done(0, secret), says(1, "m", "x"), done(2, fn("f", "1", "tsh", "{}")), over},
			"text x\ncall 0 1 tsh\nargs 0 {}\nstop tool_calls\n  text x\n  tool_call call-1tsh{}\n  opaque p/m [{\"at\":0,\"data\":" + secret + "}]\n",
		},
		"reasoning between": {
			[]string{says(0, "m", "x"), done(1, secret), done(2, fn("f", "1", "tsh", "{}")), over},
			"text x\ncall 0 1 tsh\nargs 0 {}\nstop tool_calls\n  text x\n  tool_call call-1tsh{}\n  opaque p/m [{\"at\":1,\"data\":" + secret + "}]\n",
		},
		"reasoning before what is blank": {
			[]string{done(0, secret), says(1, "m", " "), done(2, fn("f", "1", "tsh", "{}")), over},
			"text  \ncall 0 1 tsh\nargs 0 {}\nstop tool_calls\n  text  \n  tool_call call-1tsh{}\n  opaque p/m [{\"at\":0,\"data\":" + secret + "}]\n",
		},
		"reasoning and nothing":    {[]string{done(0, secret), over}, "stop end\n"},
		"reasoning with two names": {[]string{done(0, `{"id":"r","id":"s","type":"reasoning","encrypted_content":"x"}`), says(1, "m", "x"), over}, "text x\nstop end\n  text x\n"},
		"reasoning in the deep":    {[]string{done(0, `{"type":"reasoning","encrypted_content":"x","y":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+`}`), says(1, "m", "x"), over}, "text x\nstop end\n  text x\n"},
		"a phase": {
			[]string{says(0, "m", "x"), done(0, `{"id":"m","type":"message","phase":"commentary","content":[]}`), done(1, fn("f", "1", "tsh", "{}")), over},
			"text x\ncall 0 1 tsh\nargs 0 {}\nstop tool_calls\n  text x\n  tool_call call-1tsh{}\n  opaque p/m [{\"at\":0,\"data\":{\"phase\":\"commentary\"}}]\n",
		},
		"what the provider does itself": {
			[]string{added(0, `{"id":"w","type":"web_search_call","status":"in_progress"}`), ev("response.web_search_call.completed", at(0, "w", `"x":1`)), done(0, `{"id":"w","type":"web_search_call","status":"completed"}`), says(1, "m", "x"), over},
			"text x\nstop end\n  text x\n",
		},
		"usage": {
			[]string{ends(`"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":10},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":120}`)},
			"stop end\nusage 30 60 10 20 5\n",
		},
		"usage of half":        {[]string{ends(`"usage":{"output_tokens":3}`)}, "stop end\nusage - - - 3 -\n"},
		"usage of nothing":     {[]string{ends(`"usage":{"input_tokens":0,"output_tokens":0}`)}, "stop end\n"},
		"usage that can't be":  {[]string{ends(`"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":6},"output_tokens":-3,"output_tokens_details":{"reasoning_tokens":1}}`)}, "stop end\nusage 5 - - - -\n"},
		"more reasoning":       {[]string{ends(`"usage":{"input_tokens":5,"output_tokens":3,"output_tokens_details":{"reasoning_tokens":4}}`)}, "stop end\nusage 5 - - 3 -\n"},
		"usage with no number": {[]string{ends(`"usage":{"input_tokens":"many","output_tokens":[1]}`)}, "stop end\n"},
	} {
		s, err := play(c.events...)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if diff := cmp.Diff(c.want, s.String()); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
}

func TestAnswerFails(t *testing.T) {
	half := strings.Repeat("x", libctx.MaxModelArguments/2)
	for what, c := range map[string]struct {
		events []string
		want   modelwire.Failure
	}{
		"no JSON":          {[]string{`{"type":`}, modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "interrupted", Message: "an event of the answer is no event of a response"}},
		"[DONE]":           {[]string{says(0, "m", "x"), "[DONE]"}, modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "interrupted", GenerationSeen: true, Message: "an event of the answer is no event of a response"}},
		"half a character": {[]string{ev("response.output_text.delta", `"delta":"\ud83d"`)}, modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "interrupted", Message: "an event of the answer is no event of a response"}},
		"no response":      {[]string{`{"type":"response.completed"}`}, modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "interrupted", Message: "the last event of the answer has no response"}},
		"an error":         {[]string{says(0, "m", "x"), ev("error", `"code":"server_error","message":"The server had hush-hush-key","param":null`)}, modelwire.Failure{Code: errdefs.Provider, Phase: "provider", Class: "server", ProviderCode: "server_error", GenerationSeen: true, Message: "The server had [redacted]"}},
		"an error inside":  {[]string{ev("error", `"error":{"type":"rate_limit_error","code":null,"message":"slow"}`)}, modelwire.Failure{Code: errdefs.Provider, Phase: "provider", Class: "rate_limit", ProviderCode: "rate_limit_error", Message: "slow"}},
		"an error by its event": {
			[]string{"error|worker died"}, modelwire.Failure{Code: errdefs.Provider, Phase: "provider", Class: "other", Message: "worker died"},
		},
		"an error without a word": {[]string{ev("error", `"code":null,"message":"odd"`)}, modelwire.Failure{Code: errdefs.Provider, Phase: "provider", Class: "other", Message: "odd"}},
		"failed": {
			[]string{ev("response.failed", `"response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow"}}`)},
			modelwire.Failure{Code: errdefs.Provider, Phase: "provider", Class: "rate_limit", ProviderCode: "rate_limit_exceeded", Message: "slow"},
		},
		"too long": {
			[]string{ev("response.failed", `"response":{"status":"failed","error":{"code":"context_length_exceeded","message":"x"}}`)},
			modelwire.Failure{Code: errdefs.TooMuch, Phase: "provider", Class: "context_overflow", ProviderCode: "context_length_exceeded", Message: "x"},
		},
		"a policy": {
			[]string{ev("response.failed", `"response":{"error":{"code":"bio_policy","message":"x"}}`)},
			modelwire.Failure{Code: errdefs.Provider, Phase: "provider", Class: "policy", ProviderCode: "bio_policy", Message: "x"},
		},
		"a prompt": {
			[]string{ev("response.failed", `"response":{"error":{"code":"invalid_prompt","message":"x"}}`)},
			modelwire.Failure{Code: errdefs.Invalid, Phase: "provider", Class: "invalid", ProviderCode: "invalid_prompt", Message: "x"},
		},
		"failed without a word": {
			[]string{says(0, "m", "x"), ev("response.failed", `"response":{"status":"failed","error":null}`)},
			modelwire.Failure{Code: errdefs.Provider, Phase: "provider", Class: "other", GenerationSeen: true, Message: "the provider gave the answer up"},
		},
		"failed by its status": {
			[]string{ends(`"status":"cancelled"`)},
			modelwire.Failure{Code: errdefs.Provider, Phase: "provider", Class: "other", Message: "the provider gave the answer up"},
		},
		"a call without end": {
			[]string{added(0, fn("a", "1", "tsh", "")), args(0, "a", `{}`), over},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "interrupted", GenerationSeen: true, Message: "a call of the answer has no end"},
		},
		"other arguments": {
			[]string{added(0, fn("a", "1", "tsh", "")), args(0, "a", `{"a":1}`), done(0, fn("a", "1", "tsh", `{"a":2}`)), over},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "interrupted", GenerationSeen: true, Message: "the arguments of a call are not what their pieces were"},
		},
		"another name": {
			[]string{added(0, fn("a", "1", "tsh", "")), done(0, fn("a", "1", "fs__read", `{}`)), over},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "interrupted", GenerationSeen: true, Message: "a call of the answer changes its name"},
		},
		"another type": {
			[]string{says(0, "m", "x"), done(0, fn("m", "1", "tsh", `{}`)), over},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "interrupted", GenerationSeen: true, Message: "an item of the answer ends as another one than it began"},
		},
		"a piece after the end": {
			[]string{says(0, "m", "x"), done(0, msg("m", "x")), says(0, "m", "y"), over},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "interrupted", GenerationSeen: true, Message: "a piece of the answer belongs to no open item"},
		},
		"a piece of a call after the end": {
			[]string{done(0, fn("a", "1", "tsh", `{}`)), args(0, "a", `{}`), over},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "interrupted", GenerationSeen: true, Message: "a piece of the answer belongs to no open call"},
		},
		"an item nobody asked for": {
			[]string{added(0, `{"id":"c","type":"computer_call\u001b"}`), over},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "other", Message: `the answer holds an item that nobody asked for: computer_call\x1b`},
		},
		"long arguments": {
			[]string{added(0, fn("a", "1", "tsh", "")), args(0, "a", half), args(0, "a", half), args(0, "a", "x")},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "limit", GenerationSeen: true, Message: "the arguments of a call are longer than 16777216 bytes"},
		},
		"long arguments without a name": {
			[]string{args(0, "a", half), args(0, "a", half), args(0, "a", "x")},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "limit", Message: "the arguments of a call are longer than 16777216 bytes"},
		},
		"long in all": {
			[]string{says(0, "m", half), says(1, "n", half), says(2, "o", half), says(0, "m", "x")},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "limit", GenerationSeen: true, Message: "the answer is longer than 25165824 bytes"},
		},
	} {
		c.want.Status, c.want.Accepted = 200, true
		s, err := play(c.events...)
		var f *modelwire.Failure
		if !errors.As(err, &f) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if diff := cmp.Diff(c.want, *f); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
		for _, f := range s.Frames {
			if f.Kind() == "message" {
				t.Errorf("%s: a message is sent", what)
			}
		}
	}
}

func TestAnswerManyItems(t *testing.T) {
	var events []string
	for i := range maxItems {
		events = append(events, done(i, fn(fmt.Sprint("f", i), "1", "tsh", "{}")))
	}
	if _, err := play(append(events, over)...); err != nil {
		t.Error(err)
	}
	for _, more := range []string{done(maxItems, fn("z", "1", "tsh", "{}")), says(maxItems, "m", "x"), args(maxItems, "z", "{}")} {
		_, err := play(append(events, more, over)...)
		var f *modelwire.Failure
		if !errors.As(err, &f) {
			t.Errorf("%.80s: %v", more, err)
		}
	}
}

// Usage that a failed answer tells is not lost.
func TestUsageOfFailure(t *testing.T) {
	s, err := play(ev("response.failed", `"response":{"error":{"code":"server_error","message":"x"},"usage":{"input_tokens":10,"output_tokens":1}}`))
	var f *modelwire.Failure
	if !errors.As(err, &f) || s.String() != "usage 10 - - 1 -\n" {
		t.Errorf("%v after %q", err, s)
	}
}

func TestIsLast(t *testing.T) {
	for _, c := range []struct {
		kind, data string
		want       bool
	}{
		{"", over, true}, {"", ` {"x":{"type":"x"},"type":"error"}`, true}, {"response.failed", "", true}, {"response.incomplete", "{}", true},
		{"", says(0, "m", "response.completed"), false}, {"response.created", over, false}, {"", "error", false}, {"", "", false},
	} {
		if got := isLast(transport.Event{Type: c.kind, Data: []byte(c.data)}); got != c.want {
			t.Errorf("%s %s: %v", c.kind, c.data, got)
		}
	}
}

func FuzzEvent(f *testing.F) {
	f.Add(says(0, "m", "x"), done(1, fn("a", "1", "tsh", `{"a":1}`)))
	f.Add(added(0, fn("a", "1", "tsh", "")), args(0, "a", "{"))
	f.Add(ev("error", `"error":{"message":"x","code":429}`), over)
	f.Add(done(0, secret), done(1, msg("m", "x")))
	f.Add(`{"type":"response.output_item.done","output_index":1e400,"item":[]}`, `error|{`)
	f.Add(ends(`"output":[`+secret+`,7],"usage":{"input_tokens":-1}`), stops("x"))
	f.Fuzz(func(t *testing.T, first, second string) {
		s, err := play(first, second, over)
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
