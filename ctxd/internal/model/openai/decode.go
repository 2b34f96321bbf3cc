package openai

import (
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
)

// unquote is the text of a JSON string, "" of anything else.
func unquote(raw string) string {
	if !strings.HasPrefix(raw, `"`) {
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return ""
	}
	return string(text)
}

// argumentsOf is a piece of a call's arguments. They should be a text; servers
// that send the object itself mean the same.
func argumentsOf(f openai.ChatCompletionChunkChoiceDeltaToolCallFunction) string {
	if raw := f.JSON.Arguments.Raw(); strings.HasPrefix(raw, "{") {
		return raw
	}
	return unquote(f.JSON.Arguments.Raw())
}

type contentPart struct {
	text     string
	thinking bool
}

// partsOf are the texts of a list of content parts, thinking included.
func partsOf(raw string) []contentPart {
	type part struct {
		Type     string         `json:"type"`
		Text     string         `json:"text"`
		Thinking jsontext.Value `json:"thinking"`
	}
	var list []part
	if json.Unmarshal([]byte(raw), &list, jsontext.AllowDuplicateNames(true)) != nil {
		return nil
	}
	var out []contentPart
	for _, p := range list {
		switch p.Type {
		case "text":
			out = append(out, contentPart{p.Text, false})
		case "thinking":
			var inner []part
			if text := unquote(string(p.Thinking)); text != "" {
				out = append(out, contentPart{text, true})
			} else if json.Unmarshal(p.Thinking, &inner, jsontext.AllowDuplicateNames(true)) == nil {
				for _, q := range inner {
					out = append(out, contentPart{q.Text, true})
				}
			}
		}
	}
	return out
}

// usageOf maps the token counts. OpenAI counts cached tokens as part of the
// prompt, we count them apart. What is not said, or can not be, is unknown; a
// request that cost nothing at all is a server that does not count.
func usageOf(u openai.CompletionUsage) *modelwire.Usage {
	prompt := count(u.JSON.PromptTokens, u.PromptTokens)
	output := count(u.JSON.CompletionTokens, u.CompletionTokens)
	if (prompt == nil || *prompt == 0) && (output == nil || *output == 0) {
		return nil
	}
	read := count(u.PromptTokensDetails.JSON.CachedTokens, u.PromptTokensDetails.CachedTokens)
	written := count(u.PromptTokensDetails.JSON.CacheWriteTokens, u.PromptTokensDetails.CacheWriteTokens)
	reasoning := count(u.CompletionTokensDetails.JSON.ReasoningTokens, u.CompletionTokensDetails.ReasoningTokens)
	out := &modelwire.Usage{Input: prompt, Output: output}
	if prompt != nil {
		rest := *prompt
		for _, part := range []struct{ from, to **int64 }{{&read, &out.CacheRead}, {&written, &out.CacheWrite}} {
			if n := *part.from; n != nil && *n <= rest {
				rest -= *n
				*part.to = n
			}
		}
		out.Input = &rest
	}
	if reasoning != nil && output != nil && *reasoning <= *output {
		out.Reasoning = reasoning
	}
	return out
}

// count is a number that was really said.
func count(said respjson.Field, n int64) *int64 {
	if !said.Valid() || n < 0 || n > libctx.MaxModelTokens {
		return nil
	}
	return &n
}
