package google

import (
	"strings"
	"testing"

	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// sent is the body of a request to a model of this id.
func sent(t *testing.T, id string, g *modelwire.Generate) string {
	t.Helper()
	_, body, err := served(t, someProvider(id), g, ends("STOP"))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestRequest(t *testing.T) {
	g := &modelwire.Generate{
		Version: 1, Model: "p/m", MaxOutput: 500, CacheKey: "agent-session", ToolChoice: "none",
		Options: map[string]string{"temperature": "0.2", "topK": "40", "stopSequences": `["END"]`, "maxOutputTokens": "400", "seed": "null", "safetySettings": "[]", "responseMimeType": "text/plain", "labels": `{"a":"b"}`},
		Tools: []modelwire.Tool{
			{Name: "7.z", Parameters: jsontext.Value(`{}`)},
			{Name: "fs.read", Description: "reads", Parameters: jsontext.Value(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993},"a":{}}}`)},
		},
		Messages: []modelwire.Message{
			{Role: "system", Content: []wire.Part{wire.Text("be „kurz“")}},
			{Role: "assistant", Content: []wire.Part{wire.Text("welcome")}},
			says("hello"), says("again"),
			{Role: "assistant", Content: []wire.Part{
				{Type: "reasoning", Text: "secret thoughts"}, wire.Text("I read."),
				{Type: "tool_call", Call: "call-3-1", Name: "fs.read", Arguments: jsontext.Value(`{"path":"a","n":9007199254740993}`)},
				{Type: "tool_call", Call: "call-3-2", Name: "gone.tool", Arguments: jsontext.Value(`{}`), Invalid: "the arguments are not JSON: {"},
				{Type: "tool_call", Call: "call-3-3", Arguments: jsontext.Value(`{}`), Invalid: "not the name of a tool: ???"},
			}},
			{Role: "tool", Content: []wire.Part{{Type: "tool_result", Call: "call-3-1", Status: "ok", Text: "content"}}},
			{Role: "tool", Content: []wire.Part{{Type: "tool_result", Call: "call-3-2", Status: "error"}}},
			{Role: "tool", Content: []wire.Part{{Type: "tool_result", Call: "call-3-3", Status: "error", Text: "no such tool"}}},
			{Role: "assistant", Content: []wire.Part{{Type: "reasoning", Text: "only this"}}},
			{Role: "assistant", Content: []wire.Part{wire.Text(" \n")}},
			{Role: "user", Content: []wire.Part{wire.Text("one"), wire.Text(""), wire.Text("two")}},
		},
	}
	body := sent(t, "vendor/big:1", g)
	v := jsontext.Value(body)
	if err := v.Format(jsontext.ReorderRawObjects(true)); err != nil {
		t.Fatal(err)
	}
	if err := v.Indent(jsontext.WithIndent(" ")); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(v)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	want := `{
"contents": [
{ "parts": [ { "text": "(What came before is left out.)" } ], "role": "user" },
{ "parts": [ { "text": "welcome" } ], "role": "model" },
{ "parts": [ { "text": "hello" }, { "text": "again" } ], "role": "user" },
{ "parts": [ { "text": "I read." },
{ "functionCall": { "args": { "n": 9007199254740993, "path": "a" }, "id": "call-3-1", "name": "fs__read" } },
{ "functionCall": { "args": {}, "id": "call-3-2", "name": "gone__tool" } },
{ "functionCall": { "args": {}, "id": "call-3-3", "name": "unknown" } } ], "role": "model" },
{ "parts": [ { "functionResponse": { "id": "call-3-1", "name": "fs__read", "response": { "output": "content" } } },
{ "functionResponse": { "id": "call-3-2", "name": "gone__tool", "response": { "error": "" } } },
{ "functionResponse": { "id": "call-3-3", "name": "unknown", "response": { "error": "no such tool" } } } ], "role": "user" },
{ "parts": [ { "text": "one\ntwo" } ], "role": "user" } ],
"generationConfig": { "maxOutputTokens": 400, "responseMimeType": "text/plain", "stopSequences": [ "END" ], "temperature": 0.2, "topK": 40 },
"labels": { "a": "b" },
"safetySettings": [],
"systemInstruction": { "parts": [ { "text": "be „kurz“" } ], "role": "user" },
"toolConfig": { "functionCallingConfig": { "mode": "NONE" } },
"tools": [ { "functionDeclarations": [
{ "name": "_7__z", "parametersJsonSchema": {} },
{ "description": "reads", "name": "fs__read", "parametersJsonSchema": { "properties": { "a": {}, "n": { "maximum": 9007199254740993, "type": "integer" } }, "type": "object" } } ] } ]
}`
	if diff := cmp.Diff(strings.Join(strings.Fields(want), " "), strings.Join(lines, " ")); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(body, `"properties":{"n":{"type":"integer","maximum":9007199254740993},"a":{}}`) {
		t.Error("the schema is another one: " + body)
	}
	// The same request is the same bytes: caches of prompts depend on it.
	for range 10 {
		if again := sent(t, "vendor/big:1", g); again != body {
			t.Fatalf("once %s, then %s", body, again)
		}
	}
}

// What an answer leaves behind goes back as it came, to the same model and to no
// other.
func TestSignaturesGoBack(t *testing.T) {
	g := &modelwire.Generate{Model: "p/m", Messages: []modelwire.Message{says("hello")}}
	s, _, err := served(t, someProvider("gemini-3-pro"), g,
		parts(`{"text":"a"}`), parts(`{"text":"b","thoughtSignature":"S-_1"},{"functionCall":{"name":"tsh","args":{"n":9007199254740993}},"thoughtSignature":"S2"},{"functionCall":{"name":"tsh"}}`), parts(`{"text":"","thoughtSignature":"S3"}`), ends("STOP"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Frames {
		if m, ok := f.(*modelwire.MessageFrame); ok {
			g.Messages = append(g.Messages, modelwire.Message{Role: "assistant", Content: m.Content, Opaque: m.Opaque})
		}
	}
	g.Messages = append(g.Messages, modelwire.Message{Role: "tool", Content: []wire.Part{{Type: "tool_result", Call: "call-1", Status: "ok", Text: "y"}, {Type: "tool_result", Call: "call-2", Status: "ok", Text: "z"}}})
	want := `{"parts":[{"text":"a"},{"text":"b","thoughtSignature":"S-_1"},{"functionCall":{"args":{"n":9007199254740993},"id":"call-1","name":"tsh"},"thoughtSignature":"S2"},{"functionCall":{"args":{},"id":"call-2","name":"tsh"}},{"text":"","thoughtSignature":"S3"}],"role":"model"}`
	if body := sent(t, "gemini-3-pro", g); !strings.Contains(body, want) {
		t.Errorf("%s\nhas no\n%s", body, want)
	}
	// A model that wants signatures gets Google's word for calls without one.
	g.Messages[1].Opaque.Model = "p/other"
	if body := sent(t, "gemini-3-pro", g); strings.Contains(body, "S2") || strings.Count(body, `"thoughtSignature":"skip_thought_signature_validator"`) != 1 {
		t.Errorf("to another model: %s", body)
	}
	if body := sent(t, "gemini-2.5-pro", g); strings.Contains(body, "thoughtSignature") {
		t.Errorf("to an older model: %s", body)
	}
}

func TestThinking(t *testing.T) {
	for what, c := range map[string]struct {
		id   string
		g    modelwire.Generate
		want string
	}{
		"auto":         {"gemini-3-pro", modelwire.Generate{Effort: "auto"}, ``},
		"a word":       {"gemini-3-pro", modelwire.Generate{Effort: "low"}, `"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}`},
		"the most":     {"models/gemini-3.1-flash", modelwire.Generate{Effort: "xhigh"}, `"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}`},
		"tokens":       {"gemini-2.5-flash", modelwire.Generate{Effort: "xhigh"}, `"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":24576}}`},
		"hardly room":  {"gemini-2.5-flash", modelwire.Generate{Effort: "high", MaxOutput: 4000}, `"generationConfig":{"maxOutputTokens":4000,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":2000}}`},
		"no room":      {"gemini-2.5-flash", modelwire.Generate{Effort: "high", MaxOutput: 100}, `"generationConfig":{"maxOutputTokens":100}`},
		"not thinking": {"gemini-2.0-flash", modelwire.Generate{Effort: "high"}, ``},
		"unknown":      {"gemma-3-27b", modelwire.Generate{Effort: "high"}, ``},
		"its own":      {"gemini-3-pro", modelwire.Generate{Effort: "high", Options: map[string]string{"thinkingConfig": `{"thinkingLevel":"MINIMAL"}`}}, `"generationConfig":{"thinkingConfig":{"thinkingLevel":"MINIMAL"}}`},
	} {
		c.g.Model, c.g.Messages = "p/m", []modelwire.Message{says("x")}
		want := `{"contents":[{"parts":[{"text":"x"}],"role":"user"}]`
		if c.want != "" {
			want += "," + c.want
		}
		if got := strings.TrimSpace(sent(t, c.id, &c.g)); got != want+"}" {
			t.Errorf("%s:\n%s, not\n%s}", what, got, want)
		}
	}
}

func TestRequestRefused(t *testing.T) {
	for what, c := range map[string]struct {
		id     string
		change func(*modelwire.Generate)
		kind   errdefs.Kind
	}{
		"unknown model":       {"m", func(g *modelwire.Generate) { g.Model = "p/small" }, errdefs.NotFound},
		"nothing to say":      {"m", func(g *modelwire.Generate) { g.Messages = []modelwire.Message{says(" ")} }, errdefs.Invalid},
		"option contents":     {"m", func(g *modelwire.Generate) { g.Options = map[string]string{"contents": "[]"} }, errdefs.Invalid},
		"option tools":        {"m", func(g *modelwire.Generate) { g.Options = map[string]string{"tools": "null"} }, errdefs.Invalid},
		"option of no tokens": {"m", func(g *modelwire.Generate) { g.Options = map[string]string{"maxOutputTokens": "0"} }, errdefs.Invalid},
		"a way out":           {"../m", func(*modelwire.Generate) {}, errdefs.Invalid},
		"a query":             {"m?key=x", func(*modelwire.Generate) {}, errdefs.Invalid},
		"a space":             {"m x", func(*modelwire.Generate) {}, errdefs.Invalid},
	} {
		g := &modelwire.Generate{Model: "p/m", Messages: []modelwire.Message{says("x")}}
		c.change(g)
		if _, err := request(someProvider(c.id), g, toolnames.New(nil)); errdefs.KindOf(err) != c.kind {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestVersioned(t *testing.T) {
	for base, want := range map[string]string{
		"https://x/v1beta": "v1beta", "https://x/y/v1": "v1", "https://x/v1alpha": "v1alpha", "https://x/v1beta1": "v1beta1", "https://x": "", "https://x/vendor": "", "https://v1": "",
	} {
		got := ""
		if m := versioned.FindStringSubmatch(base); m != nil {
			got = m[2]
		}
		if got != want {
			t.Errorf("%s: %q", base, got)
		}
	}
}
