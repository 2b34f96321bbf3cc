package modelwire

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// Request is the line a client writes: *Generate, *Probe or *Detect.
type Request interface{ Op() string }

// Generate asks a model for one assistant message.
type Generate struct {
	Version    int               `json:"version"`
	Model      libctx.Model      `json:"model"`    // provider/model, never an alias
	Messages   []Message         `json:"messages"` // at least one
	Tools      []Tool            `json:"tools,omitzero"`
	ToolChoice string            `json:"tool_choice,omitzero"` // "auto" (the same as ""), "none"
	MaxOutput  int64             `json:"max_output,omitzero"`  // tokens; 0: the provider's own limit
	Effort     string            `json:"effort,omitzero"`      // "auto" (the same as ""), "low", "medium", "high", "xhigh"
	Options    map[string]string `json:"options,omitzero"`     // the model's default control
	CacheKey   string            `json:"cache_key,omitzero"`   // the same for all requests of a session
}

// Message is one message of the conversation. Role is "system" (the first
// message only), "user", "assistant" or "tool". Parts of an assistant are text,
// reasoning and tool_call, of a tool tool_result, of the others text.
type Message struct {
	Role    string      `json:"role"`
	Content []wire.Part `json:"content"`
	Opaque  *Opaque     `json:"opaque,omitzero"` // of an assistant
}

// Opaque is data of a provider about a message that nobody else understands. It
// is kept as it came and goes back only to that provider and model.
type Opaque struct {
	Provider string         `json:"provider"`
	Model    libctx.Model   `json:"model"`
	Data     jsontext.Value `json:"data"`
}

// For returns the data if it belongs to this model, else nil. It may be called
// on nil.
func (o *Opaque) For(m libctx.Model) jsontext.Value {
	if o == nil || o.Model != m || o.Provider != ProviderOf(m) {
		return nil
	}
	return o.Data
}

// Tool declares a function the model may call. Parameters is a JSON schema, an
// object.
type Tool struct {
	Name        libctx.Tool    `json:"name"`
	Description string         `json:"description,omitzero"`
	Parameters  jsontext.Value `json:"parameters"`
}

// Probe asks for a plain verdict about a provider: one tiny request to the
// model, or to the first one of the provider's file.
type Probe struct {
	Provider string       `json:"provider"`
	Model    libctx.Model `json:"model,omitzero"` // provider/model
}

// Detect looks for known servers of models on this machine.
type Detect struct{}

func (*Generate) Op() string { return "generate" }
func (*Probe) Op() string    { return "probe" }
func (*Detect) Op() string   { return "detect" }
