package google

import (
	"maps"
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
	"google.golang.org/genai"
)

// question is a request as the SDK wants it.
type question struct {
	model    string
	contents []*genai.Content
	config   *genai.GenerateContentConfig
}

// pathWord is an id that can stand in the path of a URL.
var pathWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@~+-]*$`)

// request maps a canonical request. Errors are of a kind that says what is wrong
// with it.
func request(p *provider.Provider, g *modelwire.Generate, names *toolnames.Table) (*question, error) {
	m, ok := p.Model(modelwire.NameOf(g.Model))
	if !ok {
		return nil, errdefs.New(errdefs.NotFound, "provider %s has no model %s", p.Name, modelwire.NameOf(g.Model))
	}
	if !pathWord.MatchString(m.ID) || strings.Contains(m.ID, "..") {
		return nil, errdefs.New(errdefs.Invalid, "model %.80q: its id can not stand in an address", m.ID)
	}
	off := false
	q := &question{model: m.ID, config: &genai.GenerateContentConfig{AutomaticContinuation: &off}}
	t := talk{request: g, names: names, signed: strings.Contains(m.ID, "gemini-") && versionOf(m.ID) >= 3}
	t.write()
	if q.contents = t.contents; len(q.contents) == 0 {
		return nil, errdefs.New(errdefs.Invalid, "the request has no message with a text")
	}
	if first := g.Messages[0]; first.Role == "system" {
		if text := textOf(first.Content); strings.TrimSpace(text) != "" {
			q.config.SystemInstruction = genai.NewContentFromText(text, genai.RoleUser)
		}
	}
	schemas, err := declare(q.config, g, names)
	if err != nil {
		return nil, err
	}
	if err := limits(q.config, g, m.ID); err != nil {
		return nil, err
	}
	extra, err := options(g.Options)
	if err != nil {
		return nil, err
	}
	q.config.HTTPOptions = &genai.HTTPOptions{ExtrasRequestProvider: func(body map[string]any) map[string]any {
		t.restore(body)
		restoreSchemas(body, schemas)
		extra.add(body)
		return body
	}}
	return q, nil
}

// declare adds the tools, and returns their schemas as they came.
func declare(c *genai.GenerateContentConfig, g *modelwire.Generate, names *toolnames.Table) ([]jsontext.Value, error) {
	if len(g.Tools) == 0 {
		return nil, nil
	}
	var schemas []jsontext.Value
	tool := &genai.Tool{}
	for _, t := range g.Tools {
		var schema map[string]any
		if err := json.Unmarshal(t.Parameters, &schema); err != nil {
			return nil, errdefs.New(errdefs.Invalid, "tool %s: its parameters are not an object", t.Name)
		}
		tool.FunctionDeclarations = append(tool.FunctionDeclarations, &genai.FunctionDeclaration{Name: names.Of(t.Name), Description: t.Description, ParametersJsonSchema: schema})
		schemas = append(schemas, t.Parameters)
	}
	c.Tools = []*genai.Tool{tool}
	if g.ToolChoice == "none" {
		c.ToolConfig = &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeNone}}
	}
	return schemas, nil
}

// limits sets how long the answer may be, and how much the model thinks.
func limits(c *genai.GenerateContentConfig, g *modelwire.Generate, id string) error {
	tokens := g.MaxOutput
	if text, ok := g.Options["maxOutputTokens"]; ok {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > libctx.MaxModelTokens {
			return errdefs.New(errdefs.Invalid, "option maxOutputTokens: is no number of tokens")
		}
		if tokens == 0 || n < tokens {
			tokens = n
		}
	}
	c.MaxOutputTokens = int32(min(tokens, 1<<31-1)) // 0 is the model's own
	level, ok := levels[g.Effort]
	if _, own := g.Options["thinkingConfig"]; own || !ok {
		return nil
	}
	budget := level.budget
	if tokens > 0 {
		budget = min(budget, int32(min(tokens-min(room, tokens/2), 1<<31-1)))
	}
	switch version := versionOf(id); {
	case version >= 3:
		c.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: true, ThinkingLevel: level.word}
	case version >= 2.5 && budget >= minBudget:
		c.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: true, ThinkingBudget: &budget}
	}
	return nil
}

const (
	room      = 8192 // tokens of a limited answer that are not for thinking, or half of them
	minBudget = 512  // what models that think take at least
)

// levels are what effort means: words for models from Gemini 3 on, tokens for
// those of 2.5.
var levels = map[string]struct {
	word   genai.ThinkingLevel
	budget int32
}{
	"low": {genai.ThinkingLevelLow, 2048}, "medium": {genai.ThinkingLevelMedium, 8192},
	"high": {genai.ThinkingLevelHigh, 16384}, "xhigh": {genai.ThinkingLevelHigh, 24576},
}

var gemini = regexp.MustCompile(`(?:^|/)gemini-([0-9]+(?:\.[0-9]+)?)(?:-|$)`)

// versionOf is the version in a model's id, 0 if there is none.
func versionOf(id string) float64 {
	m := gemini.FindStringSubmatch(id)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0
	}
	return n
}

// reserved are members of the request that no option can set, and above those
// that do not belong into generationConfig.
var (
	reserved = []string{"candidateCount", "contents", "generationConfig", "model", "responseModalities", "systemInstruction", "toolConfig", "tools"}
	above    = []string{"cachedContent", "labels", "safetySettings", "serviceTier", "store"}
)

// members are options as members of a request.
type members map[string]jsontext.Value

// options reads the model's options: the value is JSON if it reads as such, else
// a text; null is no member.
func options(set map[string]string) (members, error) {
	to := members{}
	for k, v := range set {
		value := jsontext.Value(v)
		switch {
		case k == "maxOutputTokens": // limits has it
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

// add adds the options to a request; the SDK writes it sorted.
func (m members) add(body map[string]any) {
	config, _ := body["generationConfig"].(map[string]any)
	if config == nil {
		config = map[string]any{}
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if slices.Contains(above, k) {
			body[k] = m[k]
		} else {
			config[k] = m[k]
		}
	}
	if len(config) > 0 {
		body["generationConfig"] = config
	} else {
		delete(body, "generationConfig")
	}
}
