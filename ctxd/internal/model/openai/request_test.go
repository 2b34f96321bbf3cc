package openai

import (
	"strings"
	"testing"

	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func someProvider(base string) *provider.Provider {
	return &provider.Provider{
		Name: "p", Format: "openai.chat", BaseURL: base, Key: provider.KeyRequired,
		Models: []provider.Model{{ID: "vendor/big:1", Name: "big"}},
	}
}

// sent is the body of a request, indented and with sorted names, for reading.
func sent(t *testing.T, p *provider.Provider, g *modelwire.Generate) string {
	t.Helper()
	params, err := request(p, g, toolnames.New(g.Tools))
	if err != nil {
		t.Fatal(err)
	}
	text, err := params.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	v := jsontext.Value(text)
	if err := v.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		t.Fatal(err)
	}
	return string(v)
}

func user(text string) modelwire.Message {
	return modelwire.Message{Role: "user", Content: []wire.Part{wire.Text(text)}}
}

func TestRequest(t *testing.T) {
	g := &modelwire.Generate{
		Version: 1, Model: "p/big", MaxOutput: 500, Effort: "high", CacheKey: "agent-session", ToolChoice: "none",
		Options: map[string]string{"temperature": "0.2", "service_tier": "flex", "top_k": "40", "stop": `["END"]`},
		Tools: []modelwire.Tool{
			{Name: "fs.read", Description: "reads", Parameters: jsontext.Value(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}`)},
			{Name: "tsh", Parameters: jsontext.Value(`{}`)},
		},
		Messages: []modelwire.Message{
			{Role: "system", Content: []wire.Part{wire.Text("be <good> & „kurz“")}},
			user("hello"),
			{Role: "assistant", Content: []wire.Part{
				{Type: "reasoning", Text: "secret thoughts"}, wire.Text("I read."),
				{Type: "tool_call", Call: "call-3-1", Name: "fs.read", Arguments: jsontext.Value(`{"path":"a","n":9007199254740993}`)},
				{Type: "tool_call", Call: "call-3-2", Name: "gone.tool", Arguments: jsontext.Value(`{}`), Invalid: "the arguments are not JSON: {"},
				{Type: "tool_call", Call: "call-3-3", Arguments: jsontext.Value(`{}`), Invalid: "not the name of a tool: ???"},
			}},
			{Role: "tool", Content: []wire.Part{
				{Type: "tool_result", Call: "call-3-1", Status: "ok", Text: "content"},
				{Type: "tool_result", Call: "call-3-2", Status: "error"},
				{Type: "tool_result", Call: "call-3-3", Status: "error", Text: "no such tool"},
			}},
			{Role: "assistant", Content: []wire.Part{{Type: "reasoning", Text: "only this"}}},
			{Role: "assistant", Content: []wire.Part{wire.Text(" \n")}},
			{Role: "user", Content: []wire.Part{wire.Text("one"), wire.Text(""), wire.Text("two")}},
		},
	}
	got := sent(t, someProvider("https://api.openai.com/v1"), g)
	want := `{
  "max_completion_tokens": 500,
  "messages": [
    {
      "content": "be <good> & „kurz“",
      "role": "system"
    },
    {
      "content": "hello",
      "role": "user"
    },
    {
      "content": "I read.",
      "role": "assistant",
      "tool_calls": [
        {
          "function": {
            "arguments": "{\"path\":\"a\",\"n\":9007199254740993}",
            "name": "fs__read"
          },
          "id": "call-3-1",
          "type": "function"
        },
        {
          "function": {
            "arguments": "{}",
            "name": "gone__tool"
          },
          "id": "call-3-2",
          "type": "function"
        },
        {
          "function": {
            "arguments": "{}",
            "name": "unknown"
          },
          "id": "call-3-3",
          "type": "function"
        }
      ]
    },
    {
      "content": "content",
      "role": "tool",
      "tool_call_id": "call-3-1"
    },
    {
      "content": "",
      "role": "tool",
      "tool_call_id": "call-3-2"
    },
    {
      "content": "no such tool",
      "role": "tool",
      "tool_call_id": "call-3-3"
    },
    {
      "content": "one\ntwo",
      "role": "user"
    }
  ],
  "model": "vendor/big:1",
  "prompt_cache_key": "agent-session",
  "reasoning_effort": "high",
  "service_tier": "flex",
  "stop": [
    "END"
  ],
  "stream": true,
  "stream_options": {
    "include_usage": true
  },
  "temperature": 0.2,
  "tool_choice": "none",
  "tools": [
    {
      "function": {
        "description": "reads",
        "name": "fs__read",
        "parameters": {
          "properties": {
            "n": {
              "maximum": 9007199254740993,
              "type": "integer"
            }
          },
          "type": "object"
        }
      },
      "type": "function"
    },
    {
      "function": {
        "name": "tsh",
        "parameters": {}
      },
      "type": "function"
    }
  ],
  "top_k": 40
}`
	// The canonical form rounds the number; the body itself is checked below.
	got = strings.ReplaceAll(got, `"maximum": 9007199254740992`, `"maximum": 9007199254740993`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// The same request is the same bytes, numbers as they came: caches of prompts
	// depend on it.
	first := ""
	for range 20 {
		params, err := request(someProvider("https://api.openai.com/v1"), g, toolnames.New(g.Tools))
		if err != nil {
			t.Fatal(err)
		}
		text, err := params.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(text)
		}
		if string(text) != first || !strings.Contains(first, "9007199254740993}") {
			t.Fatalf("once %s, then %s", first, text)
		}
	}
}

func TestRequestElsewhere(t *testing.T) {
	for what, c := range map[string]struct {
		base string
		g    modelwire.Generate
		want string
	}{
		"a compatible server": {
			"http://127.0.0.1:8080/v1", modelwire.Generate{MaxOutput: 7, CacheKey: "k", Effort: "auto"},
			`"max_tokens":7,"messages":[{"content":"x","role":"user"}],"model":"vendor/big:1","stream":true,"stream_options":{"include_usage":true}`,
		},
		"Azure": {
			"https://me.openai.azure.com/openai/v1", modelwire.Generate{MaxOutput: 7, CacheKey: "k"},
			`"max_completion_tokens":7,"messages":[{"content":"x","role":"user"}],"model":"vendor/big:1","stream":true,"stream_options":{"include_usage":true}`,
		},
		"the option chooses the member and bounds it": {
			"http://127.0.0.1:8080/v1", modelwire.Generate{MaxOutput: 7, Options: map[string]string{"max_completion_tokens": "5"}},
			`"max_completion_tokens":5,"messages":[{"content":"x","role":"user"}],"model":"vendor/big:1","stream":true,"stream_options":{"include_usage":true}`,
		},
		"null takes an option out": {
			"http://127.0.0.1:8080/v1", modelwire.Generate{Options: map[string]string{"stream_options": "null"}},
			`"messages":[{"content":"x","role":"user"}],"model":"vendor/big:1","stream":true`,
		},
		"no tool, no tool_choice": {
			"http://127.0.0.1:8080/v1", modelwire.Generate{ToolChoice: "none", Options: map[string]string{"reasoning_effort": "minimal"}},
			`"messages":[{"content":"x","role":"user"}],"model":"vendor/big:1","reasoning_effort":"minimal","stream":true,"stream_options":{"include_usage":true}`,
		},
	} {
		c.g.Model, c.g.Messages = "p/big", []modelwire.Message{user("x")}
		v := jsontext.Value(sent(t, someProvider(c.base), &c.g))
		if err := v.Compact(); err != nil {
			t.Fatal(err)
		}
		if string(v) != "{"+c.want+"}" {
			t.Errorf("%s:\n%s, not\n{%s}", what, v, c.want)
		}
	}
}

func TestRequestRefused(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*modelwire.Generate)
		kind   errdefs.Kind
	}{
		"unknown model":       {func(g *modelwire.Generate) { g.Model = "p/small" }, errdefs.NotFound},
		"nothing to say":      {func(g *modelwire.Generate) { g.Messages = []modelwire.Message{user(" ")} }, errdefs.Invalid},
		"option messages":     {func(g *modelwire.Generate) { g.Options = map[string]string{"messages": "[]"} }, errdefs.Invalid},
		"option stream":       {func(g *modelwire.Generate) { g.Options = map[string]string{"stream": "false"} }, errdefs.Invalid},
		"option n":            {func(g *modelwire.Generate) { g.Options = map[string]string{"n": "2"} }, errdefs.Invalid},
		"option of streams":   {func(g *modelwire.Generate) { g.Options = map[string]string{"stream_options": "{}"} }, errdefs.Invalid},
		"option of no tokens": {func(g *modelwire.Generate) { g.Options = map[string]string{"max_tokens": "0"} }, errdefs.Invalid},
		"option no number":    {func(g *modelwire.Generate) { g.Options = map[string]string{"max_tokens": "1.5"} }, errdefs.Invalid},
		"option a word":       {func(g *modelwire.Generate) { g.Options = map[string]string{"max_tokens": "many"} }, errdefs.Invalid},
	} {
		g := &modelwire.Generate{Model: "p/big", Messages: []modelwire.Message{user("x")}}
		c.change(g)
		if _, err := request(someProvider("https://api.openai.com/v1"), g, toolnames.New(nil)); errdefs.KindOf(err) != c.kind {
			t.Errorf("%s: %v", what, err)
		}
	}
}
