package openai

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

// request maps a canonical request. Errors are of a kind that says what is wrong
// with it.
func request(p *provider.Provider, g *modelwire.Generate, names *toolnames.Table) (openai.ChatCompletionNewParams, error) {
	var c openai.ChatCompletionNewParams
	m, ok := p.Model(modelwire.NameOf(g.Model))
	if !ok {
		return c, errdefs.New(errdefs.NotFound, "provider %s has no model %s", p.Name, modelwire.NameOf(g.Model))
	}
	c.Model = m.ID
	c.Messages = messages(g.Messages, names)
	if len(c.Messages) == 0 {
		return c, errdefs.New(errdefs.Invalid, "the request has no message with a text")
	}
	for _, t := range g.Tools {
		f, err := function(t, names.Of(t.Name))
		if err != nil {
			return c, err
		}
		c.Tools = append(c.Tools, openai.ChatCompletionFunctionTool(f))
	}
	if g.ToolChoice == "none" && len(c.Tools) > 0 {
		c.ToolChoice.OfAuto = openai.String("none")
	}
	c.StreamOptions.IncludeUsage = openai.Bool(true)
	extra := map[string]any{"stream": true}
	if err := options(g.Options, extra); err != nil {
		return c, err
	}
	if g.Effort != "" && g.Effort != "auto" {
		extra["reasoning_effort"] = g.Effort
	}
	host := hostOf(p.BaseURL)
	if err := limitOutput(g.MaxOutput, host, g.Options, extra); err != nil {
		return c, err
	}
	if g.CacheKey != "" && host == official {
		extra["prompt_cache_key"] = g.CacheKey
	}
	c.SetExtraFields(extra)
	return c, nil
}

const official = "api.openai.com"

func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// messages maps the conversation. Reasoning stays here; a message that has
// nothing left to say is left out.
func messages(list []modelwire.Message, names *toolnames.Table) []openai.ChatCompletionMessageParamUnion {
	var out []openai.ChatCompletionMessageParamUnion
	for _, m := range list {
		text := textOf(m.Content)
		blank := strings.TrimSpace(text) == ""
		switch m.Role {
		case "system":
			if !blank {
				out = append(out, openai.SystemMessage(text))
			}
		case "user":
			if !blank {
				out = append(out, openai.UserMessage(text))
			}
		case "assistant":
			var a openai.ChatCompletionAssistantMessageParam
			if !blank {
				a.Content.OfString = param.NewOpt(text)
			}
			a.ToolCalls = calls(m.Content, names)
			if !blank || len(a.ToolCalls) > 0 {
				out = append(out, openai.ChatCompletionMessageParamUnion{OfAssistant: &a})
			}
		case "tool":
			for _, p := range m.Content {
				out = append(out, openai.ToolMessage(p.Text, string(p.Call)))
			}
		}
	}
	return out
}

// textOf is the text parts of a message, a line apart.
func textOf(parts []wire.Part) string {
	var texts []string
	for _, p := range parts {
		if p.Type == "text" && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// calls maps the calls of an assistant message. One that was wrong goes back
// with an empty object, since servers refuse what is no JSON; its result says
// what was wrong.
func calls(parts []wire.Part, names *toolnames.Table) []openai.ChatCompletionMessageToolCallUnionParam {
	var out []openai.ChatCompletionMessageToolCallUnionParam
	for _, p := range parts {
		if p.Type != "tool_call" {
			continue
		}
		f := openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: names.Of(p.Name), Arguments: "{}"}
		if p.Invalid == "" && len(p.Arguments) > 0 {
			f.Arguments = string(p.Arguments)
		}
		out = append(out, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: string(p.Call), Function: f},
		})
	}
	return out
}

// function maps a declared tool. Its schema goes out byte by byte as it is, below
// the first level.
func function(t modelwire.Tool, name string) (shared.FunctionDefinitionParam, error) {
	f := shared.FunctionDefinitionParam{Name: name, Parameters: shared.FunctionParameters{}}
	if t.Description != "" {
		f.Description = openai.String(t.Description)
	}
	var schema map[string]jsontext.Value
	if err := json.Unmarshal(t.Parameters, &schema); err != nil {
		return f, errdefs.New(errdefs.Invalid, "tool %s: its parameters are not an object", t.Name)
	}
	for k, v := range schema {
		f.Parameters[k] = v
	}
	return f, nil
}

// reserved are members of the request that no option can set.
var reserved = []string{
	"audio", "function_call", "functions", "messages", "modalities", "model", "n", "prompt_cache_key", "stream", "tool_choice", "tools",
}

// options adds the model's options to a request: the value is JSON if it reads
// as such, else a text. The value null takes stream_options out, for servers
// that refuse it.
func options(set map[string]string, to map[string]any) error {
	for k, v := range set {
		value := jsontext.Value(v)
		null := value.IsValid() && value.Kind() == 'n'
		switch {
		case slices.Contains(reserved, k), k == "stream_options" && !null:
			return errdefs.New(errdefs.Invalid, "option %s: belongs to the request itself", k)
		case null:
			to[k] = param.Omit
		case value.IsValid():
			to[k] = value
		default:
			to[k] = v
		}
	}
	return nil
}

// limitOutput bounds the answer. OpenAI has renamed the member, others know the
// old name only; an option of either name chooses that one, and is an upper
// bound itself.
func limitOutput(tokens int64, host string, set map[string]string, to map[string]any) error {
	const oldName, newName = "max_tokens", "max_completion_tokens"
	name := oldName
	if host == official || strings.HasSuffix(host, ".openai.azure.com") {
		name = newName
	}
	for _, option := range []string{oldName, newName} {
		text, ok := set[option]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > libctx.MaxModelTokens {
			return errdefs.New(errdefs.Invalid, "option %s: is no number of tokens", option)
		}
		delete(to, option)
		if name = option; tokens == 0 || n < tokens {
			tokens = n
		}
	}
	if tokens > 0 {
		to[name] = tokens
	}
	return nil
}
