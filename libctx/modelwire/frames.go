package modelwire

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/wire"
)

// Frame is one line of an answer. Kind is its member type.
type Frame interface{ Kind() string }

// Start says that the provider has answered; RequestID is its own id of the
// request, for its support.
type Start struct {
	Model     libctx.Model `json:"model"`
	RequestID string       `json:"request_id,omitzero"`
}

// Lifecycle says what the provider is doing before it answers. State is
// "queued", "loading" or "ready".
type Lifecycle struct {
	State string `json:"state"`
}

// Delta is a provisional piece of the answer's text.
type Delta struct {
	Text string `json:"text"`
}

// ReasoningDelta is a provisional piece of the answer's reasoning.
type ReasoningDelta struct {
	Text string `json:"text"`
}

// CallStart says that the model began a tool call. Index tells the calls of an
// answer apart, from 0; ID and Name are the provider's, inert, and may be empty.
type CallStart struct {
	Index int    `json:"index"`
	ID    string `json:"id"`
	Name  string `json:"name"`
}

// CallDelta is a provisional piece of a call's arguments.
type CallDelta struct {
	Index int    `json:"index"`
	Text  string `json:"text"`
}

// CallEnd says that no more of a call comes.
type CallEnd struct {
	Index int `json:"index"`
}

// The ways a message ends.
const (
	StopEnd       = "end"
	StopToolCalls = "tool_calls"
	StopLength    = "length"
	StopRefusal   = "refusal"
	StopFiltered  = "filtered"
	StopOther     = "other"
)

// MessageFrame is the whole answer, once. Its parts are text, reasoning and
// tool_call; calls are named "call-1", "call-2", … in the order of the parts.
// Content may be empty. The answer counts only with the done frame of status
// "ok" after it.
type MessageFrame struct {
	Content []wire.Part `json:"content"`
	Stop    string      `json:"stop"`
	Opaque  *Opaque     `json:"opaque,omitzero"`
}

// Usage counts tokens. Input, CacheRead and CacheWrite are disjoint; Reasoning is
// a part of Output. What the provider did not say is nil, not zero.
type Usage struct {
	Input      *int64 `json:"input,omitzero"`
	CacheRead  *int64 `json:"cache_read,omitzero"`
	CacheWrite *int64 `json:"cache_write,omitzero"`
	Output     *int64 `json:"output,omitzero"`
	Reasoning  *int64 `json:"reasoning,omitzero"`
}

// Error says that the request failed, and how.
type Error struct {
	Failure Failure `json:",embed"`
}

// Found is one server that detect found. The members are those of a provider
// file.
type Found struct {
	Name    string   `json:"name"` // of the kind of server, a provider name
	Format  string   `json:"format"`
	BaseURL string   `json:"base_url"`
	Models  []string `json:"models"` // the server's own names, inert
}

// Verdict is what probe found out. Failure is set if OK is false.
type Verdict struct {
	OK         bool         `json:"ok"`
	Model      libctx.Model `json:"model,omitzero"` // that was asked
	DurationMS int64        `json:"duration_ms"`
	Failure    *Failure     `json:"failure,omitzero"`
}

// Done is the last frame of every answer. Status is "ok" or "error".
type Done struct {
	Status string `json:"status"`
}

// Other is a frame of a kind this version does not know.
type Other struct {
	Type string `json:"-"`
}

func (*Start) Kind() string          { return "start" }
func (*Lifecycle) Kind() string      { return "lifecycle" }
func (*Delta) Kind() string          { return "delta" }
func (*ReasoningDelta) Kind() string { return "reasoning_delta" }
func (*CallStart) Kind() string      { return "call_start" }
func (*CallDelta) Kind() string      { return "call_delta" }
func (*CallEnd) Kind() string        { return "call_end" }
func (*MessageFrame) Kind() string   { return "message" }
func (*Usage) Kind() string          { return "usage" }
func (*Error) Kind() string          { return "error" }
func (*Found) Kind() string          { return "found" }
func (*Verdict) Kind() string        { return "verdict" }
func (*Done) Kind() string           { return "done" }
func (o *Other) Kind() string        { return o.Type }
