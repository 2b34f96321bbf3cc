package responses

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// request is the body for a canonical request; the same one makes the same
// bytes. Errors are of a kind that says what is wrong with it.
func request(p *provider.Provider, g *modelwire.Generate, names *toolnames.Table) ([]byte, error) {
	extra, err := options(g)
	if err != nil {
		return nil, err
	}
	c, err := params(p, g, names, extra)
	if err != nil {
		return nil, err
	}
	body, err := c.MarshalJSON()
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "the request can not be written: %w", err)
	}
	// The SDK writes members that it does not know in any order.
	body = body[:len(body)-1]
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if body, err = jsontext.AppendQuote(append(body, ','), name); err != nil {
			return nil, errdefs.New(errdefs.Invalid, "option %s: is not UTF-8", name)
		}
		body = append(append(body, ':'), extra[name]...)
	}
	return append(body, `,"stream":true}`...), nil
}

// params maps everything but the options; extra are those, which go before.
func params(p *provider.Provider, g *modelwire.Generate, names *toolnames.Table, extra map[string]jsontext.Value) (responses.ResponseNewParams, error) {
	var c responses.ResponseNewParams
	m, ok := p.Model(modelwire.NameOf(g.Model))
	if !ok {
		return c, errdefs.New(errdefs.NotFound, "provider %s has no model %s", p.Name, modelwire.NameOf(g.Model))
	}
	c.Model = m.ID
	c.Store = openai.Bool(false)
	if first := g.Messages[0]; first.Role == "system" {
		if text := textOf(first.Content); !blank(text) {
			c.Instructions = openai.String(text)
		}
	}
	items := input(g, names)
	if len(items) == 0 {
		return c, errdefs.New(errdefs.Invalid, "the request has no message with a text")
	}
	c.Input.OfInputItemList = items
	for _, t := range g.Tools {
		f, err := function(t, names.Of(t.Name))
		if err != nil {
			return c, err
		}
		c.Tools = append(c.Tools, responses.ToolUnionParam{OfFunction: &f})
	}
	if g.ToolChoice == "none" && len(c.Tools) > 0 {
		c.ToolChoice.OfToolChoiceMode = openai.Opt(responses.ToolChoiceOptionsNone)
	}
	if g.MaxOutput > 0 && extra[maxOutput] == nil {
		c.MaxOutputTokens = openai.Int(g.MaxOutput)
	}
	if g.Effort != "" && g.Effort != "auto" && extra["reasoning"] == nil {
		c.Reasoning.Effort = shared.ReasoningEffort(g.Effort)
	}
	host := hostOf(p.BaseURL)
	if _, own := g.Options["include"]; !own && !(host == official && unthinking.MatchString(m.ID)) {
		c.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	if g.CacheKey != "" && host == official {
		c.PromptCacheKey = openai.String(cacheKey(g.CacheKey))
	}
	return c, nil
}

const (
	official  = "api.openai.com"
	maxOutput = "max_output_tokens"
)

// unthinking are OpenAI's models that do not reason and refuse to be asked for
// it.
var unthinking = regexp.MustCompile(`^(ft:)?(gpt-3|gpt-4|chatgpt-)`)

func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// cacheKey makes a key of the length OpenAI takes: a longer one becomes its
// digest.
func cacheKey(key string) string {
	const most = 64
	if len(key) <= most {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// function maps a declared tool. Its schema goes out byte by byte as it is,
// below the first level; it is no strict one, since those can say less.
func function(t modelwire.Tool, name string) (responses.FunctionToolParam, error) {
	f := responses.FunctionToolParam{Name: name, Strict: openai.Bool(false), Parameters: map[string]any{}}
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
	"background", "context_management", "conversation", "input", "instructions", "max_tool_calls", "model", "previous_response_id",
	"prompt", "prompt_cache_key", "store", "stream", "tool_choice", "tools",
}

// options are the model's options as members of a request: the value is JSON if
// it reads as such, else a text; null is no member.
func options(g *modelwire.Generate) (map[string]jsontext.Value, error) {
	to := map[string]jsontext.Value{}
	for k, v := range g.Options {
		value := jsontext.Value(v)
		switch {
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
	if err := limitOutput(g.MaxOutput, to); err != nil {
		return nil, err
	}
	return to, addEffort(g.Effort, to)
}

// limitOutput makes the option an upper bound of what the request asks.
func limitOutput(tokens int64, to map[string]jsontext.Value) error {
	v, ok := to[maxOutput]
	if !ok {
		return nil
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 1 || n > libctx.MaxModelTokens {
		return errdefs.New(errdefs.Invalid, "option %s: is no number of tokens", maxOutput)
	}
	if tokens > 0 && tokens < n {
		delete(to, maxOutput)
	}
	return nil
}

// addEffort puts the effort into an option reasoning that does not name one.
func addEffort(effort string, to map[string]jsontext.Value) error {
	v, ok := to["reasoning"]
	if !ok {
		return nil
	}
	var members map[string]jsontext.Value
	if json.Unmarshal(v, &members) != nil {
		return errdefs.New(errdefs.Invalid, "option reasoning: is not an object")
	}
	if effort == "" || effort == "auto" || members["effort"] != nil {
		return nil
	}
	members["effort"] = jsontext.Value(`"` + effort + `"`)
	text, err := json.Marshal(members, json.Deterministic(true))
	to["reasoning"] = text
	return err
}
