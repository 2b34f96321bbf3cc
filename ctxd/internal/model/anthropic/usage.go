package anthropic

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/respjson"
)

// usage are the token counts of an answer. Anthropic counts what it read from
// the cache and wrote there apart from the input, as we do; each count it gives
// is of the whole answer until then. nil is not known.
type usage struct{ input, read, written, output, thinking *int64 }

// begin takes what the beginning of an answer says. Its output is a guess.
func (u *usage) begin(said anthropic.Usage) {
	set(&u.input, said.JSON.InputTokens, said.InputTokens)
	set(&u.read, said.JSON.CacheReadInputTokens, said.CacheReadInputTokens)
	set(&u.written, said.JSON.CacheCreationInputTokens, said.CacheCreationInputTokens)
}

// add takes what a later event says.
func (u *usage) add(said anthropic.MessageDeltaUsage) {
	set(&u.input, said.JSON.InputTokens, said.InputTokens)
	set(&u.read, said.JSON.CacheReadInputTokens, said.CacheReadInputTokens)
	set(&u.written, said.JSON.CacheCreationInputTokens, said.CacheCreationInputTokens)
	set(&u.output, said.JSON.OutputTokens, said.OutputTokens)
	set(&u.thinking, said.OutputTokensDetails.JSON.ThinkingTokens, said.OutputTokensDetails.ThinkingTokens)
}

// frame is the usage as it is known now, nil if nothing is. A server that counts
// nothing anywhere does not count.
func (u *usage) frame() *modelwire.Usage {
	counted := false
	for _, n := range []*int64{u.input, u.read, u.written, u.output} {
		counted = counted || n != nil && *n > 0
	}
	if !counted {
		return nil
	}
	f := &modelwire.Usage{Input: u.input, CacheRead: u.read, CacheWrite: u.written, Output: u.output}
	if u.thinking != nil && u.output != nil && *u.thinking <= *u.output {
		f.Reasoning = u.thinking
	}
	return f
}

// set keeps a count that was really said.
func set(to **int64, said respjson.Field, n int64) {
	if said.Valid() && n >= 0 && n <= libctx.MaxModelTokens {
		*to = &n
	}
}
