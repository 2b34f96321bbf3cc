package openai

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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

// play runs events through an answer; the events are data lines.
func play(events ...string) (*sinktest.Sink, error) {
	s := &sinktest.Sink{}
	a := newAnswer(s, toolnames.New([]modelwire.Tool{{Name: "fs.read"}, {Name: "tsh"}}), 200, provider.NewSecret("hush-hush-key"))
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

func delta(members string) string {
	return `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{` + members + `},"finish_reason":null}]}`
}

func content(text string) string { return delta(`"content":` + quote(text)) }

func tool(members string) string { return delta(`"tool_calls":[{` + members + `}]`) }

func opens(index int, id, name, arguments string) string {
	return tool(fmt.Sprintf(`"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":%s}`, index, quote(id), quote(name), quote(arguments)))
}

func more(index int, arguments string) string {
	return tool(fmt.Sprintf(`"index":%d,"function":{"arguments":%s}`, index, quote(arguments)))
}

func finish(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":` + quote(reason) + `}]}`
}

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
			[]string{delta(`"role":"assistant","content":""`), content("Hel"), content("lo"), finish("stop")},
			"text Hel\ntext lo\nstop end\n  text Hello\n",
		},
		"unknown members, null error, an odd choice": {
			[]string{
				`{"error":null,"future":{"x":[1]},"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes","mood":"good"},"logprobs":null}]}`,
				`{"choices":[]}`, `{}`, finish("stop"),
			},
			"text yes\nstop end\n  text yes\n",
		},
		"nothing": {[]string{finish("stop")}, "stop end\n"},
		"text after the reason": {
			[]string{content("a"), finish("stop"), content("b"), finish("length")},
			"text a\ntext b\nstop end\n  text ab\n",
		},
		"reasoning_content": {
			[]string{delta(`"reasoning_content":"hm"`), delta(`"reasoning_content":"m","content":null`), content("x"), finish("stop")},
			"think hm\nthink m\ntext x\nstop end\n  reasoning hmm\n  text x\n",
		},
		"reasoning, and both at once": {
			[]string{delta(`"reasoning":"a"`), delta(`"reasoning":"b","reasoning_content":"b"`), delta(`"reasoning":{"odd":1}`), finish("stop")},
			"think a\nthink b\nstop end\n  reasoning ab\n",
		},
		"content as parts": {
			[]string{delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"image_url","image_url":"x"},{"type":"text","text":"x"}]`), finish("stop")},
			"think hm\ntext x\nstop end\n  reasoning hm\n  text x\n",
		},
		"NUL": {[]string{delta(`"content":"a\u0000b"`), finish("stop")}, "text a␀b\nstop end\n  text a␀b\n"},
		"refusal": {
			[]string{delta(`"refusal":"I can"`), delta(`"refusal":"not"`), finish("stop")},
			"text I can\ntext not\nstop refusal\n  text I cannot\n",
		},
		"filtered":      {[]string{content("x"), finish("content_filter")}, "text x\nstop filtered\n  text x\n"},
		"length":        {[]string{content("x"), finish("length")}, "text x\nstop length\n  text x\n"},
		"another end":   {[]string{content("x"), finish("eos")}, "text x\nstop other\n  text x\n"},
		"calls, no one": {[]string{content("x"), finish("tool_calls")}, "text x\nstop other\n  text x\n"},
		"a call": {
			[]string{content("I read."), opens(0, "id1", "fs__read", ""), more(0, `{"pa`), more(0, `th":"a"}`), finish("tool_calls")},
			"text I read.\ncall 0 id1 fs.read\nargs 0 {\"pa\nargs 0 th\":\"a\"}\nstop tool_calls\n  text I read.\n  tool_call call-1fs.read{\"path\":\"a\"}\n",
		},
		"a call that ends with stop": {
			[]string{opens(0, "id1", "tsh", `{"args":["x"]}`), finish("stop")},
			"call 0 id1 tsh\nargs 0 {\"args\":[\"x\"]}\nstop tool_calls\n  tool_call call-1tsh{\"args\":[\"x\"]}\n",
		},
		"interleaved calls": {
			[]string{opens(0, "a", "tsh", `{"a`), opens(1, "b", "tsh", `{"b`), more(0, `":1}`), more(1, `":2}`), finish("tool_calls")},
			"call 0 a tsh\nargs 0 {\"a\ncall 1 b tsh\nargs 1 {\"b\nargs 0 \":1}\nargs 1 \":2}\nstop tool_calls\n" +
				"  tool_call call-1tsh{\"a\":1}\n  tool_call call-2tsh{\"b\":2}\n",
		},
		"one index, different ids": {
			[]string{opens(0, "a", "tsh", `{"a":1}`), opens(0, "b", "tsh", `{"b":2`), more(0, `2}`), opens(0, "c", "tsh", ``), finish("tool_calls")},
			"call 0 a tsh\nargs 0 {\"a\":1}\ncall 1 b tsh\nargs 1 {\"b\":2\nargs 1 2}\ncall 2 c tsh\nstop tool_calls\n" +
				"  tool_call call-1tsh{\"a\":1}\n  tool_call call-2tsh{\"b\":22}\n  tool_call call-3tsh{}\n",
		},
		"one index, ids interleaved": {
			[]string{opens(0, "a", "tsh", `{"a`), opens(0, "b", "tsh", `{"b`), opens(0, "a", "", `":1}`), opens(0, "b", "", `":2}`), finish("tool_calls")},
			"call 0 a tsh\nargs 0 {\"a\ncall 1 b tsh\nargs 1 {\"b\nargs 0 \":1}\nargs 1 \":2}\nstop tool_calls\n" +
				"  tool_call call-1tsh{\"a\":1}\n  tool_call call-2tsh{\"b\":2}\n",
		},
		"the same id twice": {
			[]string{opens(0, "a", "tsh", `{"a":1}`), opens(1, "a", "tsh", `{"b":2}`), opens(1, "a", "tsh", `{"c":3}`), finish("tool_calls")},
			"call 0 a tsh\nargs 0 {\"a\":1}\ncall 1 a tsh\nargs 1 {\"b\":2}\ncall 2 a tsh\nargs 2 {\"c\":3}\nstop tool_calls\n" +
				"  tool_call call-1tsh{\"a\":1}\n  tool_call call-2tsh{\"b\":2}\n  tool_call call-3tsh{\"c\":3}\n",
		},
		"no ids, one index": {
			[]string{opens(0, "", "tsh", `{"a":1}`), opens(0, "", "fs__read", ``), more(0, `{"b":2}`), finish("tool_calls")},
			"call 0  tsh\nargs 0 {\"a\":1}\ncall 1  fs.read\nargs 1 {\"b\":2}\nstop tool_calls\n" +
				"  tool_call call-1tsh{\"a\":1}\n  tool_call call-2fs.read{\"b\":2}\n",
		},
		"no index at all": {
			[]string{tool(`"id":"a","function":{"name":"tsh","arguments":"{}"}`), tool(`"id":"b","function":{"name":"tsh","arguments":"{}"}`), finish("tool_calls")},
			"call 0 a tsh\nargs 0 {}\ncall 1 b tsh\nargs 1 {}\nstop tool_calls\n  tool_call call-1tsh{}\n  tool_call call-2tsh{}\n",
		},
		"odd indexes": {
			[]string{opens(-7, "a", "tsh", `{}`), opens(1<<40, "b", "tsh", `{}`), finish("tool_calls")},
			"call 0 a tsh\nargs 0 {}\ncall 1 b tsh\nargs 1 {}\nstop tool_calls\n  tool_call call-1tsh{}\n  tool_call call-2tsh{}\n",
		},
		"id and name in every piece": {
			[]string{opens(0, "a", "tsh", `{"x`), opens(0, "a", "tsh", `":"}`), opens(0, "a", "tsh", `{\"}`), opens(0, "a", "tsh", `"}`), finish("tool_calls")},
			"call 0 a tsh\nargs 0 {\"x\nargs 0 \":\"}\nargs 0 {\\\"}\nargs 0 \"}\nstop tool_calls\n  tool_call call-1tsh{\"x\":\"}{\\\"}\"}\n",
		},
		"the id comes late, the name in pieces": {
			[]string{tool(`"index":0,"function":{"name":"fs_"}`), tool(`"index":0,"id":"a","function":{"name":"","arguments":""}`), tool(`"index":0,"function":{"name":"_read"}`), more(0, `{}`), finish("tool_calls")},
			"call 0  fs_\nargs 0 {}\nstop tool_calls\n  tool_call call-1fs.read{}\n",
		},
		"a name after the arguments began": {
			[]string{tool(`"index":0,"id":"a","function":{"arguments":"{\"a\""}`), more(0, `:1}`), finish("tool_calls")},
			"call 0 a \nstop tool_calls\n  tool_call call-1{} !not the name of a tool: \n",
		},
		"arguments as an object": {
			[]string{tool(`"index":0,"id":"a","function":{"name":"tsh","arguments":{"args":["x"]}}`), finish("tool_calls")},
			"call 0 a tsh\nargs 0 {\"args\":[\"x\"]}\nstop tool_calls\n  tool_call call-1tsh{\"args\":[\"x\"]}\n",
		},
		"arguments missing, null, blank": {
			[]string{tool(`"index":0,"id":"a","function":{"name":"tsh"}`), tool(`"index":1,"id":"b","function":{"name":"tsh","arguments":null}`), opens(2, "c", "tsh", " \n"), finish("tool_calls")},
			"call 0 a tsh\ncall 1 b tsh\ncall 2 c tsh\nargs 2  \n\nstop tool_calls\n  tool_call call-1tsh{}\n  tool_call call-2tsh{}\n  tool_call call-3tsh{}\n",
		},
		"arguments that are wrong": {
			[]string{opens(0, "a", "tsh", `{"a":`), opens(1, "b", "tsh", `[1]`), opens(2, "c", "tsh", `{"a":1,"a":2}`), finish("length")},
			"call 0 a tsh\nargs 0 {\"a\":\ncall 1 b tsh\nargs 1 [1]\ncall 2 c tsh\nargs 2 {\"a\":1,\"a\":2}\nstop length\n" +
				"  tool_call call-1tsh{} !the arguments are not JSON: {\"a\":\n  tool_call call-2tsh{} !the arguments are not an object: [1]\n" +
				"  tool_call call-3tsh{} !the arguments are not JSON: {\"a\":1,\"a\":2}\n",
		},
		"a name that is none": {
			[]string{opens(0, "a", "../x\u001b", `{}`), finish("tool_calls")},
			"call 0 a ../x\\x1b\nargs 0 {}\nstop tool_calls\n  tool_call call-1{} !not the name of a tool: ../x\u001b\n",
		},
		"usage": {
			[]string{content("x"), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":5}}}`},
			"text x\nstop end\n  text x\nusage 40 60 - 20 5\n",
		},
		"usage null, then twice": {
			[]string{
				`{"usage":null,"choices":[{"index":0,"delta":{"content":"x"}}]}`,
				`{"usage":{"prompt_tokens":10,"completion_tokens":1},"choices":[]}`, finish("stop"), `{"usage":{"prompt_tokens":10,"completion_tokens":2},"choices":[]}`,
			},
			"text x\nstop end\n  text x\nusage 10 - - 2 -\n",
		},
		"usage of nothing":     {[]string{finish("stop"), `{"usage":{"prompt_tokens":0,"completion_tokens":0}}`}, "stop end\n"},
		"usage of half":        {[]string{finish("stop"), `{"usage":{"completion_tokens":3}}`}, "stop end\nusage - - - 3 -\n"},
		"usage that can't be":  {[]string{finish("stop"), `{"usage":{"prompt_tokens":5,"completion_tokens":-3,"prompt_tokens_details":{"cached_tokens":6}}}`}, "stop end\nusage 5 - - - -\n"},
		"more reasoning":       {[]string{finish("stop"), `{"usage":{"prompt_tokens":5,"completion_tokens":3,"completion_tokens_details":{"reasoning_tokens":4}}}`}, "stop end\nusage 5 - - 3 -\n"},
		"usage with no number": {[]string{finish("stop"), `{"usage":{"prompt_tokens":"many","completion_tokens":[1]}}`}, "stop end\n"},
		"blank events":         {[]string{"", " \n", finish("stop")}, "stop end\n"},
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
		"no reason": {
			[]string{content("x")},
			modelwire.Failure{Code: errdefs.Provider, Phase: "body", Class: "interrupted", GenerationSeen: true, Message: "the answer ends without a finish_reason"},
		},
		"no JSON": {
			[]string{`{"choices":[`},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "interrupted", Message: "an event of the answer is no chunk of a completion"},
		},
		"no object": {
			[]string{content("x"), `[1]`},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "interrupted", GenerationSeen: true, Message: "an event of the answer is no chunk of a completion"},
		},
		"half a character": {
			[]string{delta(`"content":"\ud83d"`)},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "interrupted", Message: "an event of the answer is no chunk of a completion"},
		},
		"an error": {
			[]string{content("x"), `{"error":{"message":"The server had hush-hush-key","type":"server_error","code":null}}`},
			modelwire.Failure{Code: errdefs.Provider, Phase: "provider", Class: "server", ProviderCode: "server_error", GenerationSeen: true, Message: "The server had [redacted]"},
		},
		"an error with a number": {
			[]string{`{"id":"x","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":429,"message":"slow"}}`},
			modelwire.Failure{Code: errdefs.Provider, Phase: "provider", Class: "rate_limit", ProviderCode: "429", Message: "slow"},
		},
		"an error as a text": {
			[]string{`{"error":"out of memory"}`},
			modelwire.Failure{Code: errdefs.Provider, Phase: "provider", Class: "other", Message: "out of memory"},
		},
		"an error by its event": {
			[]string{`error|{"message":"busy","type":"overloaded_error"}`},
			modelwire.Failure{Code: errdefs.Provider, Phase: "provider", Class: "overloaded", ProviderCode: "overloaded_error", Message: "busy"},
		},
		"an error that is no JSON": {
			[]string{`error|worker died`},
			modelwire.Failure{Code: errdefs.Provider, Phase: "provider", Class: "other", Message: "worker died"},
		},
		"an error as an object": {
			[]string{`{"object":"error","message":"maximum context length is 10","type":"BadRequestError","code":400}`},
			modelwire.Failure{Code: errdefs.TooMuch, Phase: "provider", Class: "context_overflow", ProviderCode: "400", Message: "maximum context length is 10"},
		},
		"long arguments": {
			[]string{opens(0, "a", "tsh", half), more(0, half), more(0, "x")},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Class: "limit", GenerationSeen: true, Message: "the arguments of a call are longer than 16777216 bytes"},
		},
		"long in all": {
			[]string{opens(0, "a", "tsh", half), opens(1, "b", "tsh", half), content(half), content("x")},
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

// What is short as a text can be long as JSON.
func TestAnswerLongAsJSON(t *testing.T) {
	s, err := play(content(strings.Repeat("\x01", 5<<20)), finish("stop"))
	var f *modelwire.Failure
	if !errors.As(err, &f) || f.Class != "limit" {
		t.Errorf("%v", err)
	}
	if n := len(s.Frames); n != 2 {
		t.Errorf("%d frames", n)
	}
}

func TestAnswerManyCalls(t *testing.T) {
	var events []string
	for i := range libctx.MaxModelParts - 2 {
		events = append(events, opens(i, "a", "tsh", `{}`))
	}
	whole := append(append([]string{content("x"), delta(`"reasoning":"y"`)}, events...), finish("tool_calls"))
	if _, err := play(whole...); err != nil {
		t.Error(err)
	}
	_, err := play(append(events, opens(-1, "z", "tsh", `{}`))...)
	var f *modelwire.Failure
	if !errors.As(err, &f) || f.Class != "limit" {
		t.Errorf("%v", err)
	}
}

// Usage that came before an answer broke is not lost.
func TestUsageOfFailure(t *testing.T) {
	s, err := play(`{"usage":{"prompt_tokens":10,"completion_tokens":1},"choices":[]}`, `{"error":{"message":"x"}}`)
	var f *modelwire.Failure
	if !errors.As(err, &f) || s.String() != "usage 10 - - 1 -\n" {
		t.Errorf("%v after %q", err, s)
	}
}

func FuzzEvent(f *testing.F) {
	f.Add(content("x"), opens(0, "a", "tsh", `{"a":1}`))
	f.Add(`{"error":{"message":"x","code":429}}`, finish("stop"))
	f.Add(delta(`"content":[{"type":"text","text":"x"}],"reasoning":"y","refusal":"z"`), `{"usage":{"prompt_tokens":1e400,"completion_tokens":-1}}`)
	f.Add(`{"choices":{"index":[]}}`, `error|{`)
	f.Add(tool(`"index":9223372036854775808,"id":5,"function":[]`), more(0, "}"))
	f.Fuzz(func(t *testing.T, first, second string) {
		s, err := play(first, second, finish("stop"))
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
