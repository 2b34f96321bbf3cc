package engine

import (
	"crypto/sha256"
	"encoding/hex"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/preamble"
	"cortexfs.org/libctx/prompt"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/window"
)

// request makes a request of a message array that fits the candidate's window.
// Without tools the model is told that it may call none.
func request(a *view.Agent, c preamble.Candidate, fitted *prompt.Fitted, tools []modelwire.Tool, key string) *modelwire.Generate {
	g := &modelwire.Generate{
		Version: modelwire.Version, Model: c.Model.ID, Messages: fitted.Messages,
		Tools: tools, MaxOutput: maxOutput(c.Model.MaxOutput, c.Window, fitted.Bytes),
		Effort: effort(a.Effort, c.Model.Effort), Options: c.Model.Default, CacheKey: key,
	}
	if len(tools) == 0 {
		g.ToolChoice = "none"
	}
	return g
}

// effort: what the agent says goes before what the model says.
func effort(agent, model string) string {
	if agent != control.EffortAuto && agent != "" {
		return agent
	}
	return model
}

// maxOutput is the model's own bound of an answer, lowered to the space that the
// input leaves. A model without a bound gets none: the window is not one.
func maxOutput(bound int64, size window.Size, input int64) int64 {
	if bound == 0 || !size.Known() {
		return bound
	}
	used := (input + libctx.CharsPerToken - 1) / libctx.CharsPerToken
	return min(bound, max(1, int64(size)-used))
}

// cacheKey is the same for all requests of a session, and says nothing about it.
func cacheKey(l paths.Layout, agent libctx.Agent, session libctx.Session) string {
	sum := sha256.Sum256([]byte(l.Root + "\x00" + string(agent) + "\x00" + string(session)))
	return "ctx-" + hex.EncodeToString(sum[:16])
}
