package responses

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/responses"
)

// usageOf maps the token counts. OpenAI counts what it read from the cache, and
// wrote there, as part of the input; we count them apart. What is not said, or
// can not be, is unknown; a request that cost nothing at all is a server that
// does not count.
func usageOf(u responses.ResponseUsage) *modelwire.Usage {
	input := count(u.JSON.InputTokens, u.InputTokens)
	output := count(u.JSON.OutputTokens, u.OutputTokens)
	if (input == nil || *input == 0) && (output == nil || *output == 0) {
		return nil
	}
	out := &modelwire.Usage{Input: input, Output: output}
	details := u.InputTokensDetails
	if input != nil {
		rest := *input
		for _, part := range []struct {
			from *int64
			to   **int64
		}{
			{count(details.JSON.CachedTokens, details.CachedTokens), &out.CacheRead},
			{count(details.JSON.CacheWriteTokens, details.CacheWriteTokens), &out.CacheWrite},
		} {
			if part.from != nil && *part.from <= rest {
				rest -= *part.from
				*part.to = part.from
			}
		}
		out.Input = &rest
	}
	reasoning := count(u.OutputTokensDetails.JSON.ReasoningTokens, u.OutputTokensDetails.ReasoningTokens)
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
