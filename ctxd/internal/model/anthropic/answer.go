package anthropic

import (
	"bytes"
	"strings"

	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/ctxd/internal/model/failure"
	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// answer collects the events of one answer.
type answer struct {
	*compose.Answer
	request *modelwire.Generate
	key     provider.Secret
	blocks  []*block
	usage   usage
	stop    anthropic.StopReason
}

// block is one content block of the answer.
type block struct {
	index     int64         // as the provider counts
	part      *compose.Part // nil of a block that is shown to nobody
	kind      string
	input     string          // of a call: what it had at its start
	thinking  strings.Builder // exactly as it came
	signature strings.Builder
	data      string // of redacted thinking
	over      bool
}

// event takes one event that is not the terminal one. What it says wrongly, or
// of a failure, is a *modelwire.Failure.
func (a *answer) event(ev transport.Event) error {
	data := jsontext.Value(bytes.TrimSpace(ev.Data))
	if len(data) == 0 || isLast(ev) {
		return nil
	}
	if ev.Type == "error" {
		return failure.Said(failure.Parse(data), a.Status(), a.key)
	}
	var e anthropic.MessageStreamEventUnion
	if data.Kind() != '{' || !data.IsValid(jsontext.AllowDuplicateNames(true)) || e.UnmarshalJSON(data) != nil {
		return wrong("an event of the answer is no event of a message")
	}
	switch e.Type {
	case "error":
		return failure.Said(failure.Parse(data), a.Status(), a.key)
	case "message_start":
		a.usage.begin(e.Message.Usage)
		a.SetUsage(a.usage.frame())
	case "message_delta":
		if e.Delta.StopReason != "" && a.stop == "" {
			a.stop = e.Delta.StopReason
		}
		a.usage.add(e.Usage)
		a.SetUsage(a.usage.frame())
	case "content_block_start":
		return a.begin(e.Index, e.ContentBlock)
	case "content_block_delta":
		b := a.find(e.Index)
		if b == nil || b.over {
			return wrong("a piece of the answer belongs to no open block")
		}
		return a.piece(b, e.Delta)
	case "content_block_stop":
		if b := a.find(e.Index); b != nil {
			return b.end()
		}
	}
	return nil // a ping, or something that came later than this program
}

// find is the block a piece belongs to: the latest of its index.
func (a *answer) find(index int64) *block {
	for i := len(a.blocks) - 1; i >= 0; i-- {
		if a.blocks[i].index == index {
			return a.blocks[i]
		}
	}
	return nil
}

// begin opens a block. Those of kinds that nobody asked for are passed over.
func (a *answer) begin(index int64, c anthropic.ContentBlockStartEventContentBlockUnion) error {
	b := &block{index: index, kind: c.Type}
	first, err := "", error(nil)
	switch c.Type {
	case "text":
		first = c.Text
		b.part, err = a.Text()
	case "thinking":
		first = c.Thinking
		b.signature.WriteString(c.Signature)
		b.part, err = a.Reasoning()
	case "redacted_thinking":
		b.data = c.Data
		err = a.Grow(len(c.Data))
	case "tool_use":
		if raw := c.JSON.Input.Raw(); strings.HasPrefix(raw, "{") {
			b.input = raw
		}
		b.part, err = a.Call(c.ID, c.Name)
	}
	if err != nil {
		return err
	}
	a.blocks = append(a.blocks, b)
	if b.kind == "thinking" {
		b.thinking.WriteString(first)
	}
	if first == "" {
		return nil
	}
	return b.part.Add(first)
}

// piece adds to a block. A piece that is not of the block's kind is passed over.
func (a *answer) piece(b *block, d anthropic.MessageStreamEventUnionDelta) error {
	switch {
	case d.Type == "text_delta" && b.kind == "text":
		return b.part.Add(d.Text)
	case d.Type == "thinking_delta" && b.kind == "thinking":
		b.thinking.WriteString(d.Thinking)
		return b.part.Add(d.Thinking)
	case d.Type == "signature_delta" && b.kind == "thinking":
		b.signature.WriteString(d.Signature)
		return a.Grow(len(d.Signature))
	case d.Type == "input_json_delta" && b.kind == "tool_use":
		return b.part.Add(d.PartialJSON)
	}
	return nil
}

// end closes a block. A call whose arguments never came in pieces has those of
// its start.
func (b *block) end() error {
	b.over = true
	if b.kind != "tool_use" {
		return nil
	}
	if b.part.Len() == 0 && b.input != "{}" {
		if err := b.part.Add(b.input); err != nil {
			return err
		}
	}
	return b.part.End()
}

// ended says what the end of the stream makes of the answer.
func (a *answer) ended(broken *transport.Error) error {
	if broken != nil {
		return a.Fail(failure.Broken(broken, a.key))
	}
	return a.finish()
}

// finish ends an answer whose terminal event has come.
func (a *answer) finish() error {
	if a.stop == "" {
		return a.Fail(modelwire.Fail(errdefs.Provider, modelwire.PhaseBody, modelwire.ClassInterrupted, "the answer ends without a stop_reason"))
	}
	for _, b := range a.blocks {
		if err := b.end(); err != nil {
			return err
		}
	}
	return a.Finish(a.stopped(), compose.Pack(a.request, a.marks()))
}

// marks are the blocks of thinking that the provider wants back, and their
// places. One without a signature was cut off, and would be refused.
func (a *answer) marks() []compose.Mark {
	var out []compose.Mark
	at := 0
	for _, b := range a.blocks {
		var v any
		switch {
		case b.kind == "thinking" && b.signature.Len() > 0:
			v = struct {
				Type      string `json:"type"`
				Thinking  string `json:"thinking"`
				Signature string `json:"signature"`
			}{b.kind, b.thinking.String(), b.signature.String()}
		case b.kind == "redacted_thinking" && b.data != "":
			v = struct {
				Type string `json:"type"`
				Data string `json:"data"`
			}{b.kind, b.data}
		case b.part != nil && b.part.Says():
			at++
			continue
		default:
			continue
		}
		// Text that is no UTF-8 can not have come, and can not go back.
		if data, err := json.Marshal(v); err == nil {
			out = append(out, compose.Mark{At: at, Data: data})
		}
	}
	return out
}

// stopped is the canonical word for how the answer ended.
func (a *answer) stopped() string {
	switch a.stop {
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		return modelwire.StopLength
	case anthropic.StopReasonRefusal:
		return modelwire.StopRefusal
	case anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence, anthropic.StopReasonToolUse:
		switch {
		case a.Calls() > 0:
			return modelwire.StopToolCalls
		case a.stop != anthropic.StopReasonToolUse:
			return modelwire.StopEnd
		}
	}
	return modelwire.StopOther
}

func wrong(why string) *modelwire.Failure {
	return modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassInterrupted, "%s", why)
}
