package envelope

import (
	"bytes"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxStep is the number of the last step a run may have; steps count from 0.
const MaxStep = libctx.MaxAgentStarts - 1

// Invocation is what one step of an executable agent is started with.
type Invocation struct {
	Run             libctx.Run
	Step            int    // 0 for the first start of the run, at most MaxStep
	Input           string // what the person wrote, the same in every step
	HistoryMessages string // JSON text of earlier messages, at most MaxContextText bytes
	ToolContext     string // text about loaded tools, at most MaxContextText bytes
	Observation     *Observation
}

// Observation is the host's result of the tool call that the step before this
// one yielded. It is nil in step 0 and never nil later.
type Observation struct {
	ToolCallID libctx.Call
	Name       libctx.Tool
	Status     string // "ok" or "error"
	Content    string // at most MaxObservation bytes
	Truncated  bool   // Content is less than the tool said
}

// sent and sentObservation give the encoded form: every member, in this order.
type sent struct {
	Schema          string           `json:"schema"`
	Run             libctx.Run       `json:"run"`
	Step            int              `json:"step"`
	Input           string           `json:"input"`
	HistoryMessages string           `json:"history_messages"`
	ToolContext     string           `json:"tool_context"`
	Observation     *sentObservation `json:"observation"`
}

type sentObservation struct {
	ToolCallID libctx.Call `json:"tool_call_id"`
	Name       libctx.Tool `json:"name"`
	Status     string      `json:"status"`
	Content    string      `json:"content"`
	Truncated  bool        `json:"truncated"`
}

// got and gotObservation can tell a missing member from an empty one.
type got struct {
	Schema          *string        `json:"schema"`
	Run             *string        `json:"run"`
	Step            *int           `json:"step"`
	Input           *string        `json:"input"`
	HistoryMessages *string        `json:"history_messages"`
	ToolContext     *string        `json:"tool_context"`
	Observation     jsontext.Value `json:"observation"`
}

type gotObservation struct {
	ToolCallID *string `json:"tool_call_id"`
	Name       *string `json:"name"`
	Status     *string `json:"status"`
	Content    *string `json:"content"`
	Truncated  *bool   `json:"truncated"`
}

// Encode is the standard input of the step: one object and a LF. A member that
// breaks its rule is errdefs.Invalid; a body over MaxEnvelope bytes, which only
// a long input can cause, is errdefs.TooBig.
func (i *Invocation) Encode() ([]byte, error) {
	if err := i.check(); err != nil {
		return nil, err
	}
	out := sent{
		Schema: libctx.EnvelopeSchema, Run: i.Run, Step: i.Step, Input: i.Input,
		HistoryMessages: i.HistoryMessages, ToolContext: i.ToolContext,
	}
	if o := i.Observation; o != nil {
		out.Observation = &sentObservation{o.ToolCallID, o.Name, o.Status, o.Content, o.Truncated}
	}
	body, err := wire.Marshal(out)
	if err != nil {
		return nil, err
	}
	if len(body) > libctx.MaxEnvelope {
		return nil, errdefs.New(errdefs.TooBig, "invocation of %d bytes is over the limit of %d", len(body), libctx.MaxEnvelope)
	}
	return body, nil
}

// Decode reads the whole standard input of a step. Every error is
// errdefs.Invalid: anything but one object and a LF, an unknown or missing
// member, a value outside its rule, more than MaxEnvelope bytes.
func Decode(body []byte) (*Invocation, error) {
	if len(body) > libctx.MaxEnvelope {
		return nil, errdefs.New(errdefs.Invalid, "invocation is longer than %d bytes", libctx.MaxEnvelope)
	}
	if !bytes.HasPrefix(body, []byte("{")) || !bytes.HasSuffix(body, []byte("}\n")) {
		return nil, errdefs.New(errdefs.Invalid, "invocation is not exactly one JSON object and a newline")
	}
	var g got
	if err := wire.Object(body, &g, json.RejectUnknownMembers(true)); err != nil {
		return nil, errdefs.New(errdefs.Invalid, "invocation: %w", err)
	}
	switch {
	case g.Schema == nil:
		return nil, missing("schema")
	case *g.Schema != libctx.EnvelopeSchema:
		return nil, errdefs.New(errdefs.Invalid, "member schema is %.80q, not %q", *g.Schema, libctx.EnvelopeSchema)
	case g.Run == nil:
		return nil, missing("run")
	case g.Step == nil:
		return nil, missing("step")
	case g.Input == nil:
		return nil, missing("input")
	case g.HistoryMessages == nil:
		return nil, missing("history_messages")
	case g.ToolContext == nil:
		return nil, missing("tool_context")
	case g.Observation == nil:
		return nil, missing("observation")
	}
	i := &Invocation{
		Run: libctx.Run(*g.Run), Step: *g.Step, Input: *g.Input,
		HistoryMessages: *g.HistoryMessages, ToolContext: *g.ToolContext,
	}
	if g.Observation.Kind() != 'n' {
		o, err := decodeObservation(g.Observation)
		if err != nil {
			return nil, err
		}
		i.Observation = o
	}
	if err := i.check(); err != nil {
		return nil, err
	}
	return i, nil
}

func decodeObservation(raw []byte) (*Observation, error) {
	var g gotObservation
	if err := wire.Object(raw, &g, json.RejectUnknownMembers(true)); err != nil {
		return nil, errdefs.New(errdefs.Invalid, "observation: %w", err)
	}
	switch {
	case g.ToolCallID == nil:
		return nil, missing("observation/tool_call_id")
	case g.Name == nil:
		return nil, missing("observation/name")
	case g.Status == nil:
		return nil, missing("observation/status")
	case g.Content == nil:
		return nil, missing("observation/content")
	case g.Truncated == nil:
		return nil, missing("observation/truncated")
	}
	return &Observation{
		libctx.Call(*g.ToolCallID), libctx.Tool(*g.Name), *g.Status, *g.Content, *g.Truncated,
	}, nil
}

// check holds the rules that both directions share.
func (i *Invocation) check() error {
	// The run is compared, never taken apart: any object name will do, so that
	// an agent can be tried by hand with a run of one's own naming.
	if _, err := libctx.ParseClientID(string(i.Run)); err != nil {
		return errdefs.New(errdefs.Invalid, "member run: %w", err)
	}
	if i.Step < 0 || i.Step > MaxStep {
		return errdefs.New(errdefs.Invalid, "member step is %d, not 0 to %d", i.Step, MaxStep)
	}
	switch {
	case i.Step == 0 && i.Observation != nil:
		return errdefs.New(errdefs.Invalid, "step 0 has an observation")
	case i.Step > 0 && i.Observation == nil:
		return errdefs.New(errdefs.Invalid, "step %d has no observation", i.Step)
	}
	texts := []bounded{
		{"input", i.Input, libctx.MaxEnvelope},
		{"history_messages", i.HistoryMessages, libctx.MaxContextText},
		{"tool_context", i.ToolContext, libctx.MaxContextText},
	}
	if o := i.Observation; o != nil {
		if _, err := libctx.ParseCall(string(o.ToolCallID)); err != nil {
			return errdefs.New(errdefs.Invalid, "observation: %w", err)
		}
		if _, err := libctx.ParseTool(string(o.Name)); err != nil {
			return errdefs.New(errdefs.Invalid, "observation: %w", err)
		}
		if o.Status != "ok" && o.Status != "error" {
			return errdefs.New(errdefs.Invalid, `observation: status is %.80q, not "ok" or "error"`, o.Status)
		}
		texts = append(texts, bounded{"observation/content", o.Content, libctx.MaxObservation})
	}
	for _, t := range texts {
		if err := t.check(); err != nil {
			return err
		}
	}
	return nil
}

// bounded is a text member with the most bytes it may have.
type bounded struct {
	name, text string
	max        int
}

func (b bounded) check() error {
	if len(b.text) > b.max {
		return errdefs.New(errdefs.Invalid, "member %s of %d bytes is over the limit of %d", b.name, len(b.text), b.max)
	}
	if !utf8.ValidString(b.text) {
		return errdefs.New(errdefs.Invalid, "member %s is not UTF-8", b.name)
	}
	return nil
}

func missing(name string) error {
	return errdefs.New(errdefs.Invalid, "member %s is missing or null", name)
}
