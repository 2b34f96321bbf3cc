package anthropic

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

func someProvider(id string) *provider.Provider {
	return &provider.Provider{Name: "p", Format: "anthropic.messages", BaseURL: "https://api.anthropic.com", Key: provider.KeyRequired, Models: []provider.Model{{ID: id, Name: "big"}}}
}

// sent is the body of a request.
func sent(t *testing.T, p *provider.Provider, g *modelwire.Generate) string {
	t.Helper()
	text, err := request(p, g, toolnames.New(g.Tools))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readable is a body, indented and with sorted names.
func readable(t *testing.T, body string) string {
	t.Helper()
	v := jsontext.Value(body)
	if err := v.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		t.Fatal(err)
	}
	return string(v)
}

func says(text string) modelwire.Message {
	return modelwire.Message{Role: "user", Content: []wire.Part{wire.Text(text)}}
}

func TestRequest(t *testing.T) {
	g := &modelwire.Generate{
		Version: 1, Model: "p/big", MaxOutput: 500, CacheKey: "agent-session", ToolChoice: "none",
		Options: map[string]string{"temperature": "0.2", "service_tier": "auto", "top_k": "40", "stop_sequences": `["END"]`, "max_tokens": "400", "anthropic_beta": "x", "metadata": "null"},
		Tools: []modelwire.Tool{
			{Name: "fs.read", Description: "reads", Parameters: jsontext.Value(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}`)},
			{Name: "tsh", Parameters: jsontext.Value(` {}`)}, {Name: "x", Parameters: jsontext.Value(`{ "required":["a"]}`)},
		},
		Messages: []modelwire.Message{
			{Role: "system", Content: []wire.Part{wire.Text("be <good> & „kurz“")}},
			{Role: "assistant", Content: []wire.Part{wire.Text("welcome")}},
			says("hello"), says("again"),
			{Role: "assistant", Content: []wire.Part{
				{Type: "reasoning", Text: "secret thoughts"}, wire.Text("I read."),
				{Type: "tool_call", Call: "call-3-1", Name: "fs.read", Arguments: jsontext.Value(`{"path":"a","n":9007199254740993}`)},
				{Type: "tool_call", Call: "call-3-2", Name: "gone.tool", Arguments: jsontext.Value(`{}`), Invalid: "the arguments are not JSON: {"},
				{Type: "tool_call", Call: "a.b_c+d", Arguments: jsontext.Value(`{}`), Invalid: "not the name of a tool: ???"},
			}},
			{Role: "tool", Content: []wire.Part{{Type: "tool_result", Call: "call-3-1", Status: "ok", Text: "content"}}},
			{Role: "tool", Content: []wire.Part{{Type: "tool_result", Call: "call-3-2", Status: "error"}}},
			{Role: "tool", Content: []wire.Part{{Type: "tool_result", Call: "a.b_c+d", Status: "error", Text: "no such tool"}}},
			{Role: "assistant", Content: []wire.Part{{Type: "reasoning", Text: "only this"}}},
			{Role: "assistant", Content: []wire.Part{wire.Text(" \n")}},
			{Role: "user", Content: []wire.Part{wire.Text("one"), wire.Text(""), wire.Text("two")}},
		},
	}
	p := someProvider("vendor/big:1")
	body := sent(t, p, g)
	// The canonical form rounds the number; the body itself is checked below.
	got := strings.ReplaceAll(readable(t, body), `"maximum": 9007199254740992`, `"maximum": 9007199254740993`)
	got = strings.ReplaceAll(got, `"n": 9007199254740992`, `"n": 9007199254740993`)
	if diff := cmp.Diff(wantRequest, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(body, "9007199254740993}") || !strings.Contains(body, `"n":9007199254740993`) {
		t.Error(body)
	}
	// The same request is the same bytes: caches of prompts depend on it.
	for range 20 {
		if again := sent(t, p, g); again != body {
			t.Fatalf("once %s, then %s", body, again)
		}
	}
}

const wantRequest = `{
  "max_tokens": 400,
  "messages": [
    {
      "content": [
        {
          "text": "(What came before is left out.)",
          "type": "text"
        }
      ],
      "role": "user"
    },
    {
      "content": [
        {
          "text": "welcome",
          "type": "text"
        }
      ],
      "role": "assistant"
    },
    {
      "content": [
        {
          "text": "hello",
          "type": "text"
        },
        {
          "cache_control": {
            "type": "ephemeral"
          },
          "text": "again",
          "type": "text"
        }
      ],
      "role": "user"
    },
    {
      "content": [
        {
          "text": "I read.",
          "type": "text"
        },
        {
          "id": "call-3-1",
          "input": {
            "n": 9007199254740993,
            "path": "a"
          },
          "name": "fs__read",
          "type": "tool_use"
        },
        {
          "id": "call-3-2",
          "input": {},
          "name": "gone__tool",
          "type": "tool_use"
        },
        {
          "id": "a_pb__c_ad",
          "input": {},
          "name": "unknown",
          "type": "tool_use"
        }
      ],
      "role": "assistant"
    },
    {
      "content": [
        {
          "content": [
            {
              "text": "content",
              "type": "text"
            }
          ],
          "tool_use_id": "call-3-1",
          "type": "tool_result"
        },
        {
          "is_error": true,
          "tool_use_id": "call-3-2",
          "type": "tool_result"
        },
        {
          "content": [
            {
              "text": "no such tool",
              "type": "text"
            }
          ],
          "is_error": true,
          "tool_use_id": "a_pb__c_ad",
          "type": "tool_result"
        },
        {
          "cache_control": {
            "type": "ephemeral"
          },
          "text": "one\ntwo",
          "type": "text"
        }
      ],
      "role": "user"
    }
  ],
  "model": "vendor/big:1",
  "service_tier": "auto",
  "stop_sequences": [
    "END"
  ],
  "stream": true,
  "system": [
    {
      "cache_control": {
        "type": "ephemeral"
      },
      "text": "be <good> & „kurz“",
      "type": "text"
    }
  ],
  "temperature": 0.2,
  "tool_choice": {
    "type": "none"
  },
  "tools": [
    {
      "description": "reads",
      "input_schema": {
        "properties": {
          "n": {
            "maximum": 9007199254740993,
            "type": "integer"
          }
        },
        "type": "object"
      },
      "name": "fs__read"
    },
    {
      "input_schema": {
        "type": "object"
      },
      "name": "tsh"
    },
    {
      "input_schema": {
        "required": [
          "a"
        ],
        "type": "object"
      },
      "name": "x"
    }
  ],
  "top_k": 40
}`

// How much it may say and think.
func TestLimitsOfRequest(t *testing.T) {
	for what, c := range map[string]struct {
		id   string
		max  uint32
		g    modelwire.Generate
		want string
	}{
		"unknown":                    {"m", 0, modelwire.Generate{}, `"max_tokens":8192`},
		"of the provider file":       {"m", 64000, modelwire.Generate{}, `"max_tokens":64000`},
		"of the request":             {"m", 64000, modelwire.Generate{MaxOutput: 7}, `"max_tokens":7`},
		"auto":                       {"m", 0, modelwire.Generate{Effort: "auto"}, `"max_tokens":8192`},
		"low":                        {"m", 0, modelwire.Generate{Effort: "low"}, `"max_tokens":10240,"thinking":{"budget_tokens":2048,"type":"enabled"}`},
		"xhigh":                      {"claude-opus-4-20250514", 0, modelwire.Generate{Effort: "xhigh"}, `"max_tokens":32000,"thinking":{"budget_tokens":23808,"type":"enabled"}`},
		"xhigh, with room":           {"m", 64000, modelwire.Generate{Effort: "xhigh"}, `"max_tokens":64000,"thinking":{"budget_tokens":32768,"type":"enabled"}`},
		"hardly any room":            {"m", 0, modelwire.Generate{Effort: "high", MaxOutput: 4000}, `"max_tokens":4000,"thinking":{"budget_tokens":2000,"type":"enabled"}`},
		"no room":                    {"m", 0, modelwire.Generate{Effort: "high", MaxOutput: 2000}, `"max_tokens":2000`},
		"it decides":                 {"claude-opus-4-8", 0, modelwire.Generate{Effort: "xhigh"}, `"max_tokens":32000,"output_config":{"effort":"xhigh"},"thinking":{"type":"adaptive"}`},
		"it decides, and knows less": {"anthropic.claude-sonnet-4-6", 9000, modelwire.Generate{Effort: "xhigh"}, `"max_tokens":9000,"output_config":{"effort":"high"},"thinking":{"type":"adaptive"}`},
		"a date is no version":       {"claude-sonnet-5-20270101", 0, modelwire.Generate{Effort: "low"}, `"max_tokens":10240,"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}`},
		"an old name":                {"claude-3-7-sonnet-20250219", 0, modelwire.Generate{Effort: "low"}, `"max_tokens":10240,"thinking":{"budget_tokens":2048,"type":"enabled"}`},
		"own thinking":               {"m", 0, modelwire.Generate{Effort: "low", Options: map[string]string{"thinking": `{"type":"adaptive"}`}}, `"max_tokens":10240,"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}`},
		"no thinking":                {"m", 0, modelwire.Generate{Effort: "low", Options: map[string]string{"thinking": "null"}}, `"max_tokens":10240,"output_config":{"effort":"low"}`},
		"own everything":             {"m", 0, modelwire.Generate{Effort: "low", Options: map[string]string{"thinking": "null", "output_config": `{"effort":"max"}`}}, `"max_tokens":10240,"output_config":{"effort":"max"}`},
	} {
		p := someProvider(c.id)
		p.Models[0].MaxOutput = c.max
		c.g.Model, c.g.Messages = "p/big", []modelwire.Message{says("x")}
		v := jsontext.Value(sent(t, p, &c.g))
		if err := v.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		got := string(v)
		for _, same := range []string{`,"model":"` + c.id + `"`, `,"stream":true`, `,"messages":[{"content":[{"text":"x","type":"text"}],"role":"user"}]`} {
			got = strings.Replace(got, same, "", 1)
		}
		if got != "{"+c.want+"}" {
			t.Errorf("%s:\n%s, not\n{%s}", what, got, c.want)
		}
	}
}

// In the middle of a turn that began without thinking none can begin.
func TestThinkingInTurn(t *testing.T) {
	g := &modelwire.Generate{Model: "p/big", Effort: "high", Messages: []modelwire.Message{
		says("x"), {Role: "assistant", Content: []wire.Part{{Type: "tool_call", Call: "call-1", Name: "tsh", Arguments: jsontext.Value("{}")}}},
		{Role: "tool", Content: []wire.Part{{Type: "tool_result", Call: "call-1", Status: "ok", Text: "y"}}},
	}}
	if body := sent(t, someProvider("m"), g); strings.Contains(body, "thinking") {
		t.Error(body)
	}
	g.Messages = append(g.Messages, says("next"))
	if body := sent(t, someProvider("m"), g); !strings.Contains(body, "budget_tokens") {
		t.Error(body)
	}
}

func TestHints(t *testing.T) {
	g := &modelwire.Generate{Model: "p/big", Messages: []modelwire.Message{says("x")}, Tools: []modelwire.Tool{{Name: "a", Parameters: jsontext.Value("{}")}, {Name: "b", Parameters: jsontext.Value("{}")}}}
	for what, c := range map[string]struct {
		key     string
		options map[string]string
		want    int
	}{"no session": {"", nil, 0}, "a session": {"k", nil, 2}, "not wanted": {"k", map[string]string{"cache_control": "null"}, 0}, "its own": {"k", map[string]string{"cache_control": `{"type":"ephemeral"}`}, 1}} {
		g.CacheKey, g.Options = c.key, c.options
		if n := strings.Count(sent(t, someProvider("m"), g), "cache_control"); n != c.want {
			t.Errorf("%s: %d hints", what, n)
		}
	}
}

func TestRequestRefused(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*modelwire.Generate)
		kind   errdefs.Kind
	}{
		"unknown model":       {func(g *modelwire.Generate) { g.Model = "p/small" }, errdefs.NotFound},
		"nothing to say":      {func(g *modelwire.Generate) { g.Messages = []modelwire.Message{says(" ")} }, errdefs.Invalid},
		"option messages":     {func(g *modelwire.Generate) { g.Options = map[string]string{"messages": "[]"} }, errdefs.Invalid},
		"option stream":       {func(g *modelwire.Generate) { g.Options = map[string]string{"stream": "false"} }, errdefs.Invalid},
		"option of no tokens": {func(g *modelwire.Generate) { g.Options = map[string]string{"max_tokens": "0"} }, errdefs.Invalid},
		"option a word":       {func(g *modelwire.Generate) { g.Options = map[string]string{"max_tokens": "many"} }, errdefs.Invalid},
	} {
		g := &modelwire.Generate{Model: "p/big", Messages: []modelwire.Message{says("x")}}
		c.change(g)
		if _, err := request(someProvider("m"), g, toolnames.New(nil)); errdefs.KindOf(err) != c.kind {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestPath(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.anthropic.com": "v1/messages", "https://api.anthropic.com/v1": "messages", "https://x/anthropic": "v1/messages", "https://x/v1x": "v1/messages", "https://v1": "v1/messages", "https://x/y/v2": "messages",
	} {
		if got := path(base); got != want {
			t.Errorf("%s: %s", base, got)
		}
	}
}
