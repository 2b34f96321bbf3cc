package anthropic

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// request is the body for a canonical request; the same one makes the same
// bytes. Errors are of a kind that says what is wrong with it.
func request(p *provider.Provider, g *modelwire.Generate, names *toolnames.Table) ([]byte, error) {
	c, err := params(p, g, names)
	if err != nil {
		return nil, err
	}
	body, err := c.MarshalJSON()
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "the request can not be written: %w", err)
	}
	// The SDK writes members that it does not know in any order.
	extra, err := options(g.Options)
	if err != nil {
		return nil, err
	}
	body = body[:len(body)-1]
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if body, err = jsontext.AppendQuote(append(body, ','), name); err != nil {
			return nil, errdefs.New(errdefs.Invalid, "option %s: is not UTF-8", name)
		}
		body = append(append(body, ':'), extra[name]...)
	}
	return append(body, `,"stream":true}`...), nil
}

// params maps everything but the options.
func params(p *provider.Provider, g *modelwire.Generate, names *toolnames.Table) (anthropic.MessageNewParams, error) {
	var c anthropic.MessageNewParams
	m, ok := p.Model(modelwire.NameOf(g.Model))
	if !ok {
		return c, errdefs.New(errdefs.NotFound, "provider %s has no model %s", p.Name, modelwire.NameOf(g.Model))
	}
	c.Model = m.ID
	for _, t := range g.Tools {
		tool, err := function(t, names.Of(t.Name))
		if err != nil {
			return c, err
		}
		c.Tools = append(c.Tools, anthropic.ToolUnionParam{OfTool: &tool})
	}
	if g.ToolChoice == "none" && len(c.Tools) > 0 {
		c.ToolChoice.OfNone = &anthropic.ToolChoiceNoneParam{}
	}
	if first := g.Messages[0]; first.Role == "system" {
		if text := textOf(first.Content); strings.TrimSpace(text) != "" {
			c.System = []anthropic.TextBlockParam{{Text: text}}
		}
	}
	c.Messages = messages(g, names)
	if len(c.Messages) == 0 {
		return c, errdefs.New(errdefs.Invalid, "the request has no message with a text")
	}
	if err := limits(&c, g, m); err != nil {
		return c, err
	}
	if _, own := g.Options["cache_control"]; g.CacheKey != "" && !own {
		hint(&c)
	}
	return c, nil
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

// function maps a declared tool. Its schema goes out byte by byte as it is; one
// that does not say so gets the type Anthropic wants.
func function(t modelwire.Tool, name string) (anthropic.ToolParam, error) {
	f := anthropic.ToolParam{Name: name}
	if t.Description != "" {
		f.Description = anthropic.String(t.Description)
	}
	var schema map[string]jsontext.Value
	if err := json.Unmarshal(t.Parameters, &schema); err != nil {
		return f, errdefs.New(errdefs.Invalid, "tool %s: its parameters are not an object", t.Name)
	}
	raw := t.Parameters
	if schema["type"] == nil {
		raw = jsontext.Value(`{"type":"object"`)
		if len(schema) > 0 {
			raw = append(raw, ',')
		}
		_, rest, _ := strings.Cut(string(t.Parameters), "{")
		raw = append(raw, rest...)
	}
	f.InputSchema = param.Override[anthropic.ToolInputSchemaParam](raw)
	return f, nil
}

// reserved are members of the request that no option can set.
var reserved = []string{
	"container", "fallbacks", "max_tokens", "mcp_servers", "messages", "model", "stream", "system", "tool_choice", "tools",
}

// betaOption names features that are asked for by a header.
const betaOption = "anthropic_beta"

// options are the model's options as members of a request: the value is JSON if
// it reads as such, else a text; null is no member.
func options(set map[string]string) (map[string]jsontext.Value, error) {
	to := map[string]jsontext.Value{}
	for k, v := range set {
		value := jsontext.Value(v)
		switch {
		case k == betaOption, k == "max_tokens": // a header; limits has it
		case slices.Contains(reserved, k):
			return nil, errdefs.New(errdefs.Invalid, "option %s: belongs to the request itself", k)
		case value.IsValid() && value.Kind() == 'n':
		case value.IsValid():
			to[k] = value
		default:
			text, err := jsontext.AppendQuote(nil, v)
			if err != nil {
				return nil, errdefs.New(errdefs.Invalid, "option %s: is not UTF-8", k)
			}
			to[k] = text
		}
	}
	return to, nil
}

// limits sets how long the answer may be, and how much of that is for thinking.
func limits(c *anthropic.MessageNewParams, g *modelwire.Generate, m provider.Model) error {
	budget := budgets[g.Effort]
	tokens := g.MaxOutput
	if tokens == 0 {
		tokens = int64(m.MaxOutput)
	}
	if tokens == 0 {
		tokens = min(defaultOutput+budget, defaultTotal)
	}
	if text, ok := g.Options["max_tokens"]; ok {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > libctx.MaxModelTokens {
			return errdefs.New(errdefs.Invalid, "option max_tokens: is no number of tokens")
		}
		tokens = min(tokens, n)
	}
	c.MaxTokens = tokens
	if budget > 0 {
		think(c, g, m.ID, min(budget, tokens-min(defaultOutput, tokens/2)))
	}
	return nil
}

// The tokens of an answer whose limit nobody told (docs/reference/model-anthropic.md):
// those for what it says, and those together with its thinking.
const (
	defaultOutput = 8192
	defaultTotal  = 32000
	minBudget     = 1024 // Anthropic takes no less
)

// budgets are the tokens for thinking by effort.
var budgets = map[string]int64{"low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768}
