package wire

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json/jsontext"
)

// Frame is one line the daemon writes. The concrete types below are the frame
// kinds; each embeds Head.
type Frame interface{ Header() *Head }

// Head is what frames have in common: the kind, for durable frames the event
// id, for frames of a run the run.
type Head struct {
	Type string       `json:"type"`
	ID   libctx.Event `json:"id,omitzero"`
	Run  libctx.Run   `json:"run,omitzero"`
}

// Header gives access to the common members.
func (h *Head) Header() *Head { return h }

// Part is one piece of message content in frames and in the ledger. Type is
// "text", "reasoning", "tool_call" or "tool_result"; the other members belong to
// it. A tool call that a model wrote wrongly carries in Invalid what is wrong
// with it; it is never executed, and its arguments are an empty object.
type Part struct {
	Type       string         `json:"type"`
	Call       libctx.Call    `json:"call,omitzero"`
	Name       libctx.Tool    `json:"name,omitzero"`
	Arguments  jsontext.Value `json:"arguments,omitzero"`
	Invalid    string         `json:"invalid,omitzero"` // tool_call
	Status     string         `json:"status,omitzero"`  // tool_result: "ok" or "error"
	Text       string         `json:"text,omitzero"`
	Truncated  bool           `json:"truncated,omitzero"`
	ExitCode   *int           `json:"exit_code,omitzero"`
	DurationMS int64          `json:"duration_ms,omitzero"`
}

// Text makes a text part.
func Text(s string) Part { return Part{Type: "text", Text: s} }

// Pong answers ping.
type Pong struct {
	Head
	Protocol int          `json:"protocol"`
	Agent    libctx.Agent `json:"agent"`
	Version  string       `json:"version"`
}

// Start is the first frame of a run. Op is "send" or "tsh".
type Start struct {
	Head
	Session   libctx.Session  `json:"session,omitzero"`
	Agent     libctx.Agent    `json:"agent,omitzero"`
	ClientID  libctx.ClientID `json:"client_id,omitzero"`
	Op        string          `json:"op,omitzero"`
	Scope     string          `json:"scope,omitzero"`
	Cwd       string          `json:"cwd,omitzero"`
	Workspace string          `json:"workspace,omitzero"`
}

// Delta is a provisional piece of assistant text; never stored.
type Delta struct {
	Head
	Text string `json:"text"`
}

// Message is a committed message; Role is "assistant". Of type "message" it holds
// text, of type "reasoning_message" what the model thought before.
type Message struct {
	Head
	Role      string `json:"role"`
	Content   []Part `json:"content"`
	Truncated bool   `json:"truncated,omitzero"`
	Bytes     int    `json:"bytes,omitzero"` // of the whole text, if Truncated
}

// ToolCall announces a committed call before it is admitted. Arguments over
// MaxInlineText go out as {"clipped":HEAD…TAIL} with Truncated set.
type ToolCall struct {
	Head
	Call      libctx.Call    `json:"call"`
	Name      libctx.Tool    `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
	Truncated bool           `json:"truncated,omitzero"`
	Bytes     int            `json:"bytes,omitzero"` // of the whole arguments, if Truncated
}

// ToolPolicy is the admission decision about one call. Via and Name are set
// when the call was routed through tsh and name the inner tool. Code and Reason
// are set when it was refused (docs/reference/admission.md); the reason is for
// people.
type ToolPolicy struct {
	Head
	Call          libctx.Call `json:"call"`
	Allowed       bool        `json:"allowed"`
	Via           libctx.Tool `json:"via,omitzero"`
	Name          libctx.Tool `json:"name,omitzero"`
	Effect        string      `json:"effect,omitzero"`
	Authorization string      `json:"authorization,omitzero"`
	Code          string      `json:"code,omitzero"`
	Reason        string      `json:"reason,omitzero"`
	// Policy is what was in force; nil if the call did not get as far as to be judged.
	Policy *EffectivePolicy `json:"policy,omitzero"`
}

// ToolResult is the committed result of one call; Status is "ok" or "error".
type ToolResult struct {
	Head
	Call       libctx.Call `json:"call"`
	Name       libctx.Tool `json:"name,omitzero"`
	Status     string      `json:"status"`
	Content    string      `json:"content"`
	Truncated  bool        `json:"truncated"`
	Bytes      int         `json:"bytes,omitzero"` // of the stored content, if the wire carries less
	ExitCode   *int        `json:"exit_code,omitzero"`
	DurationMS int64       `json:"duration_ms"`
}

// HookFailed says that a hook after a call failed, which changes nothing about the
// call. Hook is its file in the tree, or the directory in which hooks could not be
// looked for; the reason is for people.
type HookFailed struct {
	Head
	Call   libctx.Call `json:"call"`
	Hook   string      `json:"hook"`
	Reason string      `json:"reason"`
}

// PromptChanged says that a program of the run replaced a text of the agent's
// prompt. What the text is now was in the control file then, and in the call, if it
// was one.
type PromptChanged struct {
	Head
	Control   string `json:"control"`
	Size      int    `json:"bytes"`
	Digest    string `json:"digest"` // "sha256:" and the hexadecimal digest of the text
	RequestID string `json:"request_id"`
}

// Usage counts the tokens of one model request.
type Usage struct {
	Head
	InputTokens      int64 `json:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	CachedTokens     int64 `json:"cached_tokens,omitzero"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitzero"`
}

// UsageUncertain says that a provider may have begun an answer and that nobody
// knows how many tokens it took, which is not the same as none.
type UsageUncertain struct {
	Head
	Kind   string       `json:"kind"`
	Model  libctx.Model `json:"model"`
	Reason string       `json:"reason,omitzero"`
}

// Lifecycle says what a model provider is doing before it answers: "queued",
// "loading" or "ready". It is provisional and never stored.
type Lifecycle struct {
	Head
	State string `json:"state"`
}

// CandidateError says why a model was passed over and the next one asked.
type CandidateError struct {
	Head
	Model   libctx.Model `json:"model"`
	Code    errdefs.Kind `json:"code"`
	Message string       `json:"message"`
}

// Context says how much of the session's history the model is not shown any
// more, for want of room.
type Context struct {
	Head
	Dropped int  `json:"dropped_messages"`
	Older   bool `json:"older,omitzero"`            // and all that came before those
	Clipped int  `json:"clipped_messages,omitzero"` // whose middle was left out
	Bytes   int  `json:"bytes"`                     // of the messages that are shown, as JSON
}

// Error is about a request or a run; clients act on Code alone. Recoverable
// errors come from an executable agent and do not end its run. ClientID is set
// where the run has no start frame.
type Error struct {
	Head
	ClientID    libctx.ClientID `json:"client_id,omitzero"`
	Code        errdefs.Kind    `json:"code"`
	Message     string          `json:"message"`
	Recoverable bool            `json:"recoverable,omitzero"`
}

// Done is the last frame of a run, exactly one each, status "ok", "error" or
// "cancelled". ClientID is set where the run has no start frame. For the stop
// operation Op and Agent are set instead of Run, Session if one was named, and
// Terminals says what became of each that there was a receipt of; its status is
// "error" if one of them may still run.
type Done struct {
	Head
	ClientID  libctx.ClientID `json:"client_id,omitzero"`
	Op        string          `json:"op,omitzero"`
	Agent     libctx.Agent    `json:"agent,omitzero"`
	Session   libctx.Session  `json:"session,omitzero"`
	Status    string          `json:"status"`
	Terminals []Stopped       `json:"terminals,omitzero"`
}

// Stopped is what the stop operation did about the terminal of one session.
// Outcome is "stopped"; "gone": it was over already; "stale": its receipt is
// about another generation, nothing was touched; "failed". Message says why.
type Stopped struct {
	Session libctx.Session `json:"session"`
	Outcome string         `json:"outcome"`
	Message string         `json:"message,omitzero"`
}

// AgentStart says that a terminal was started for the session: its receipt in
// brief. It is durable and belongs to no run.
type AgentStart struct {
	Head
	Terminal   string `json:"terminal"`   // its id
	Supervisor string `json:"supervisor"` // "systemd" or "direct"
	Unit       string `json:"unit"`
	Invocation string `json:"invocation"`
	PID        int    `json:"pid"`
	Started    uint64 `json:"start"` // of the process, clock ticks since boot
	Boot       string `json:"boot"`
}

// AgentStop says that the session's terminal was stopped because somebody asked
// for it. It is durable and belongs to no run.
type AgentStop struct {
	Head
	Terminal   string `json:"terminal"`
	Supervisor string `json:"supervisor"`
	Unit       string `json:"unit"`
	Invocation string `json:"invocation"`
	PID        int    `json:"pid"`
}

// Queued says that the request with this id has become a run, named in Head,
// which waits: at least Position runs of its session have to end before.
type Queued struct {
	Head
	ClientID libctx.ClientID `json:"client_id"`
	Position int             `json:"position"`
}

// Accepted acknowledges an operation whose outcome comes elsewhere. That of
// steer, follow_up and finish carries the client's id, and the run in Head; what
// it acknowledges is durable. As a durable frame of the run it also carries the
// Input; one over libctx.MaxInlineText is clipped, Bytes is then its whole length.
type Accepted struct {
	Head
	Op        string          `json:"op"`
	Agent     libctx.Agent    `json:"agent,omitzero"`
	ClientID  libctx.ClientID `json:"client_id,omitzero"`
	Input     string          `json:"input,omitzero"`
	Truncated bool            `json:"truncated,omitzero"`
	Bytes     int             `json:"bytes,omitzero"`
}

// Delivered says that what a client said into a run has become a message of the
// conversation. It is of type "steering_delivered" or "follow_up_delivered"; Op
// is "steer", "finish" or "follow_up". A Text over libctx.MaxInlineText is
// clipped, Bytes is then its whole length.
type Delivered struct {
	Head
	ClientID  libctx.ClientID `json:"client_id"`
	Op        string          `json:"op"`
	Text      string          `json:"text,omitzero"`
	Truncated bool            `json:"truncated,omitzero"`
	Bytes     int             `json:"bytes,omitzero"`
}

// Status answers the status operation. State is a session state word; Run (in
// Head) is the active run; Terminals are the ids of the session's live terminals.
type Status struct {
	Head
	Agent     libctx.Agent   `json:"agent"`
	Session   libctx.Session `json:"session"`
	State     string         `json:"state"`
	Queued    int            `json:"queued"`
	Terminals []string       `json:"terminals,omitzero"`
	PID       int            `json:"pid"`
	Protocol  int            `json:"protocol"`
}

// Lagged tells a client that frames of a run were left out because it read too
// slowly; resume after After brings the durable ones.
type Lagged struct {
	Head
	After libctx.Event `json:"after,omitzero"`
}

// End closes a resume when no run is active.
type End struct {
	Head
	Session libctx.Session `json:"session"`
}

// Other is a frame of a kind this version does not know.
type Other struct {
	Head
	Raw jsontext.Value `json:"-"`
}

// kinds maps the type member to the Go type of a frame.
var kinds = map[string]func() Frame{
	"pong":                func() Frame { return new(Pong) },
	"start":               func() Frame { return new(Start) },
	"delta":               func() Frame { return new(Delta) },
	"reasoning_delta":     func() Frame { return new(Delta) },
	"message":             func() Frame { return new(Message) },
	"reasoning_message":   func() Frame { return new(Message) },
	"tool_call":           func() Frame { return new(ToolCall) },
	"tool_policy":         func() Frame { return new(ToolPolicy) },
	"approval_request":    func() Frame { return new(ApprovalRequest) },
	"approval_result":     func() Frame { return new(ApprovalResult) },
	"tool_result":         func() Frame { return new(ToolResult) },
	"hook_failed":         func() Frame { return new(HookFailed) },
	"prompt_changed":      func() Frame { return new(PromptChanged) },
	"usage":               func() Frame { return new(Usage) },
	"usage_uncertain":     func() Frame { return new(UsageUncertain) },
	"lifecycle":           func() Frame { return new(Lifecycle) },
	"candidate_error":     func() Frame { return new(CandidateError) },
	"changes":             func() Frame { return new(Changes) },
	"context":             func() Frame { return new(Context) },
	"steering_delivered":  func() Frame { return new(Delivered) },
	"follow_up_delivered": func() Frame { return new(Delivered) },
	"agent.start":         func() Frame { return new(AgentStart) },
	"agent.stop":          func() Frame { return new(AgentStop) },
	"error":               func() Frame { return new(Error) },
	"done":                func() Frame { return new(Done) },
	"queued":              func() Frame { return new(Queued) },
	"accepted":            func() Frame { return new(Accepted) },
	"status":              func() Frame { return new(Status) },
	"lagged":              func() Frame { return new(Lagged) },
	"end":                 func() Frame { return new(End) },
}

// DecodeFrame decodes one line of the daemon. Kinds it does not know come back
// as *Other; unknown members are ignored.
func DecodeFrame(line []byte) (Frame, error) {
	var head Head
	if err := Object(line, &head); err != nil {
		return nil, err
	}
	make, ok := kinds[head.Type]
	if !ok {
		return &Other{Head: head, Raw: jsontext.Value(line).Clone()}, nil
	}
	f := make()
	if err := Object(line, f); err != nil {
		return nil, err
	}
	return f, nil
}
