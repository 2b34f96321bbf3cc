package responses

import (
	"strings"
	"testing"

	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func someProvider(base string) *provider.Provider {
	return &provider.Provider{
		Name: "p", Format: "openai.responses", BaseURL: base, Key: provider.KeyRequired,
		Models: []provider.Model{{ID: "gpt-4.1"}, {ID: "vendor/big:1", Name: "big"}},
	}
}

// sent is the body of a request with sorted names, a member a line.
func sent(t *testing.T, base string, g *modelwire.Generate) string {
	t.Helper()
	body, err := request(someProvider(base), g, toolnames.New(g.Tools))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if again, err := request(someProvider(base), g, toolnames.New(g.Tools)); err != nil || string(again) != string(body) {
			t.Fatalf("the same request is\n%s and\n%s, %v", body, again, err)
		}
	}
	v := jsontext.Value(body)
	if err := v.Format(jsontext.ReorderRawObjects(true), jsontext.WithIndent("\t")); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("\n\t", "\n").Replace(string(v))
}

func user(text string) modelwire.Message {
	return modelwire.Message{Role: "user", Content: []wire.Part{wire.Text(text)}}
}

func asks(model libctx.Model) *modelwire.Generate {
	return &modelwire.Generate{Version: 1, Model: model, Messages: []modelwire.Message{user("hello")}}
}

const elsewhere = "http://127.0.0.1:1234/v1"

func TestRequest(t *testing.T) {
	g := asks("p/big")
	g.MaxOutput, g.Effort, g.CacheKey, g.ToolChoice = 500, "high", strings.Repeat("k", 65), "none"
	g.Options = map[string]string{"temperature": "0.2", "service_tier": "flex", "reasoning": `{"summary":"auto"}`, "text": `{"verbosity":"low"}`, "truncation": "null"}
	g.Tools = []modelwire.Tool{
		{Name: "fs.read", Description: "reads", Parameters: jsontext.Value(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}`)},
		{Name: "tsh", Parameters: jsontext.Value(`{}`)},
	}
	opaque := &modelwire.Opaque{Provider: "p", Model: "p/big", Data: jsontext.Value(`[{"at":0,"data":{"phase":"commentary"}},{"at":1,"data":` + secret + `},{"at":9,"data":` + secret + `}]`)}
	g.Messages = []modelwire.Message{
		{Role: "system", Content: []wire.Part{wire.Text("be <good> & „kurz“")}},
		user("hello"),
		{Role: "assistant", Opaque: opaque, Content: []wire.Part{
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
		{Role: "assistant", Content: []wire.Part{{Type: "reasoning", Text: "only this"}}, Opaque: opaque},
		{Role: "assistant", Content: []wire.Part{wire.Text(" \n")}},
		{Role: "user", Content: []wire.Part{wire.Text("one"), wire.Text(""), wire.Text("two")}},
	}
	got := sent(t, "https://api.openai.com/v1", g)
	want := `{
"include": [
	"reasoning.encrypted_content"
],
"input": [
	{
		"content": "hello",
		"role": "user"
	},
	{
		"content": "I read.",
		"phase": "commentary",
		"role": "assistant"
	},
	{
		"encrypted_content": "gAAA+/==",
		"id": "rs_1",
		"summary": [],
		"type": "reasoning"
	},
	{
		"arguments": "{\"path\":\"a\",\"n\":9007199254740993}",
		"call_id": "call-3-1",
		"name": "fs__read",
		"type": "function_call"
	},
	{
		"arguments": "{}",
		"call_id": "call-3-2",
		"name": "gone__tool",
		"type": "function_call"
	},
	{
		"arguments": "{}",
		"call_id": "call-3-3",
		"name": "unknown",
		"type": "function_call"
	},
	{
		"call_id": "call-3-1",
		"output": "content",
		"type": "function_call_output"
	},
	{
		"call_id": "call-3-2",
		"output": "",
		"type": "function_call_output"
	},
	{
		"call_id": "call-3-3",
		"output": "no such tool",
		"type": "function_call_output"
	},
	{
		"content": "one\ntwo",
		"role": "user"
	}
],
"instructions": "be <good> & „kurz“",
"max_output_tokens": 500,
"model": "vendor/big:1",
"prompt_cache_key": "f39cdc2584758c99cf81c1f41d2572f54e17066afffc9d187aeafe5f7cbe2122",
"reasoning": {
	"effort": "high",
	"summary": "auto"
},
"service_tier": "flex",
"store": false,
"stream": true,
"temperature": 0.2,
"text": {
	"verbosity": "low"
},
"tool_choice": "none",
"tools": [
	{
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
		},
		"strict": false,
		"type": "function"
	},
	{
		"name": "tsh",
		"parameters": {},
		"strict": false,
		"type": "function"
	}
]
}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What only this provider and model understand goes to nobody else.
func TestOpaqueStays(t *testing.T) {
	g := asks("p/big")
	g.Messages = append(g.Messages, modelwire.Message{Role: "assistant", Content: []wire.Part{wire.Text("x")}}, user("go on"))
	for what, o := range map[string]*modelwire.Opaque{
		"another model":    {Provider: "p", Model: "p/small", Data: jsontext.Value(`[{"at":0,"data":` + secret + `}]`)},
		"another provider": {Provider: "q", Model: "p/big", Data: jsontext.Value(`[{"at":0,"data":` + secret + `}]`)},
		"no marks":         {Provider: "p", Model: "p/big", Data: jsontext.Value(`{"signature":"x"}`)},
		"no items":         {Provider: "p", Model: "p/big", Data: jsontext.Value(`[{"at":0,"data":7},{"at":0,"data":"encrypted"}]`)},
	} {
		g.Messages[1].Opaque = o
		if got := sent(t, elsewhere, g); strings.Contains(got, "encrypted_content\":") || strings.Contains(got, "signature") || strings.Contains(got, "phase") {
			t.Errorf("%s: %s", what, got)
		}
	}
}

func TestRequestMembers(t *testing.T) {
	const openAI = "https://api.openai.com/v1"
	for what, c := range map[string]struct {
		base   string
		change func(g *modelwire.Generate)
		want   string // "" where lacks says what is not there
		lacks  string
	}{
		"no effort": {openAI, func(g *modelwire.Generate) { g.Effort = "auto" }, "", `"reasoning": {`},
		"effort":    {elsewhere, func(g *modelwire.Generate) { g.Effort = "xhigh" }, `"effort": "xhigh"`, ""},
		"the option's effort": {elsewhere, func(g *modelwire.Generate) {
			g.Effort, g.Options = "low", map[string]string{"reasoning": `{"effort":"max"}`}
		}, `"effort": "max"`, `"low"`},
		"no option's effort":      {elsewhere, func(g *modelwire.Generate) { g.Options = map[string]string{"reasoning": `{"summary":"auto"}`} }, `"summary": "auto"`, `"effort"`},
		"a model without":         {openAI, func(g *modelwire.Generate) { g.Model = "p/gpt-4.1" }, "", `"include"`},
		"the same elsewhere":      {elsewhere, func(g *modelwire.Generate) { g.Model = "p/gpt-4.1" }, `"reasoning.encrypted_content"`, ""},
		"include null":            {elsewhere, func(g *modelwire.Generate) { g.Options = map[string]string{"include": "null"} }, "", `"include"`},
		"a list of includes":      {elsewhere, func(g *modelwire.Generate) { g.Options = map[string]string{"include": `["x"]`} }, `"x"`, "encrypted"},
		"a cache key":             {openAI, func(g *modelwire.Generate) { g.CacheKey = "coder/default" }, `"prompt_cache_key": "coder/default"`, ""},
		"no cache key elsewhere":  {elsewhere, func(g *modelwire.Generate) { g.CacheKey = "coder/default" }, "", "prompt_cache_key"},
		"no limit":                {elsewhere, func(g *modelwire.Generate) {}, "", "max_output_tokens"},
		"the option's limit":      {elsewhere, func(g *modelwire.Generate) { g.Options = map[string]string{"max_output_tokens": "50"} }, `"max_output_tokens": 50`, ""},
		"a smaller option":        {elsewhere, func(g *modelwire.Generate) { g.MaxOutput, g.Options = 60, map[string]string{"max_output_tokens": "50"} }, `"max_output_tokens": 50`, "60"},
		"a larger option":         {elsewhere, func(g *modelwire.Generate) { g.MaxOutput, g.Options = 40, map[string]string{"max_output_tokens": "50"} }, `"max_output_tokens": 40`, "50"},
		"no choice without tools": {elsewhere, func(g *modelwire.Generate) { g.ToolChoice = "none" }, "", "tool_choice"},
		"a text option":           {elsewhere, func(g *modelwire.Generate) { g.Options = map[string]string{"x": `a "b"`} }, `"x": "a \"b\""`, ""},
	} {
		g := asks("p/big")
		c.change(g)
		got := sent(t, c.base, g)
		if !strings.Contains(got, c.want) || c.lacks != "" && strings.Contains(got, c.lacks) {
			t.Errorf("%s: %s", what, got)
		}
		if !strings.Contains(got, `"store": false`) || strings.Contains(got, "previous_response_id") {
			t.Errorf("%s: keeps state: %s", what, got)
		}
	}
}

func TestRequestRefused(t *testing.T) {
	for what, c := range map[string]struct {
		change func(g *modelwire.Generate)
		kind   errdefs.Kind
	}{
		"an unknown model":  {func(g *modelwire.Generate) { g.Model = "p/none" }, errdefs.NotFound},
		"no text":           {func(g *modelwire.Generate) { g.Messages = []modelwire.Message{user(" \n")} }, errdefs.Invalid},
		"only a system":     {func(g *modelwire.Generate) { g.Messages[0].Role = "system" }, errdefs.Invalid},
		"a schema":          {func(g *modelwire.Generate) { g.Tools = []modelwire.Tool{{Name: "x", Parameters: jsontext.Value(`[]`)}} }, errdefs.Invalid},
		"an option of ours": {func(g *modelwire.Generate) { g.Options = map[string]string{"store": "true"} }, errdefs.Invalid},
		"state":             {func(g *modelwire.Generate) { g.Options = map[string]string{"previous_response_id": "resp_1"} }, errdefs.Invalid},
		"no tokens":         {func(g *modelwire.Generate) { g.Options = map[string]string{"max_output_tokens": "many"} }, errdefs.Invalid},
		"no object":         {func(g *modelwire.Generate) { g.Options = map[string]string{"reasoning": "high"} }, errdefs.Invalid},
		"no UTF-8":          {func(g *modelwire.Generate) { g.Options = map[string]string{"x": "\xff"} }, errdefs.Invalid},
	} {
		g := asks("p/big")
		c.change(g)
		if _, err := request(someProvider(elsewhere), g, toolnames.New(g.Tools)); !errdefs.Is(err, c.kind) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
