package openai

import (
	"bytes"
	"strings"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/ctxd/internal/model/failure"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3"
)

// isDone reports the terminal event.
func isDone(ev transport.Event) bool { return string(bytes.TrimSpace(ev.Data)) == "[DONE]" }

// answer collects the chunks of one answer, and passes on what comes as it comes.
// Calls are put together here, since their pieces come mixed.
type answer struct {
	*compose.Answer
	out   model.Sink
	names *toolnames.Table
	key   provider.Secret

	text, reasoning *compose.Part // nil until there is any
	calls           []*call
	refusal         bool   // the text is one
	stop            string // the provider's first finish_reason
}

func newAnswer(out model.Sink, names *toolnames.Table, status int, key provider.Secret) *answer {
	return &answer{Answer: compose.New(out, names, status), out: out, names: names, key: key}
}

// event takes one event. What it says wrongly, or of a failure, is a
// *modelwire.Failure.
func (a *answer) event(ev transport.Event) error {
	data := jsontext.Value(bytes.TrimSpace(ev.Data))
	if len(data) == 0 || isDone(ev) {
		return nil
	}
	if ev.Type == "error" {
		return failure.Said(failure.Parse(data), a.Status(), a.key)
	}
	var chunk openai.ChatCompletionChunk
	if data.Kind() != '{' || !data.IsValid(jsontext.AllowDuplicateNames(true)) || chunk.UnmarshalJSON(data) != nil {
		return modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassInterrupted, "an event of the answer is no chunk of a completion")
	}
	if e := chunk.JSON.ExtraFields["error"].Raw(); e != "" && e != "null" || chunk.JSON.Object.Raw() == `"error"` {
		return failure.Said(failure.Parse(data), a.Status(), a.key)
	}
	if chunk.JSON.Usage.Valid() {
		a.SetUsage(usageOf(chunk.Usage)) // cumulative where there are several
	}
	for _, c := range chunk.Choices {
		if c.Index != 0 {
			continue // we asked for one
		}
		if err := a.delta(c.Delta); err != nil {
			return err
		}
		if a.stop == "" {
			a.stop = c.FinishReason
		}
	}
	return nil
}

func (a *answer) delta(d openai.ChatCompletionChunkChoiceDelta) error {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if text := unquote(d.JSON.ExtraFields[name].Raw()); text != "" {
			if err := a.think(text); err != nil {
				return err
			}
			break // servers that send both send the same
		}
	}
	if err := a.content(d); err != nil {
		return err
	}
	if d.Refusal != "" {
		a.refusal = true
		if err := a.say(d.Refusal); err != nil {
			return err
		}
	}
	for _, t := range d.ToolCalls {
		if err := a.call(t); err != nil {
			return err
		}
	}
	return nil
}

// content takes a text, or the list of parts that some servers send in its
// place; parts that are neither text nor thinking are left out.
func (a *answer) content(d openai.ChatCompletionChunkChoiceDelta) error {
	raw := d.JSON.Content.Raw()
	if !strings.HasPrefix(raw, "[") {
		return a.say(unquote(raw))
	}
	for _, p := range partsOf(raw) {
		add := a.say
		if p.thinking {
			add = a.think
		}
		if err := add(p.text); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) say(text string) error { return add(&a.text, a.Text, text) }

func (a *answer) think(text string) error { return add(&a.reasoning, a.Reasoning, text) }

// add adds to a part that begins with its first piece.
func add(to **compose.Part, begin func() (*compose.Part, error), text string) error {
	if text == "" {
		return nil
	}
	if *to == nil {
		part, err := begin()
		if err != nil {
			return err
		}
		*to = part
	}
	return (*to).Add(text)
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
		return a.Fail(modelwire.Fail(errdefs.Provider, modelwire.PhaseBody, modelwire.ClassInterrupted, "the answer ends without a finish_reason"))
	}
	if err := a.endCalls(); err != nil {
		return err
	}
	m := &modelwire.MessageFrame{Content: []wire.Part{}, Stop: a.stopped()}
	if a.reasoning != nil {
		m.Content = append(m.Content, wire.Part{Type: "reasoning", Text: a.reasoning.String()})
	}
	if a.text != nil {
		m.Content = append(m.Content, wire.Text(a.text.String()))
	}
	for i, c := range a.calls {
		m.Content = append(m.Content, modelwire.Call(i+1, a.names.Back(c.name), c.arguments.String()))
	}
	return a.Deliver(m)
}

// stopped is the canonical word for how the answer ended.
func (a *answer) stopped() string {
	switch a.stop {
	case "length":
		return modelwire.StopLength
	case "content_filter":
		return modelwire.StopFiltered
	case "stop", "tool_calls":
		switch {
		case len(a.calls) > 0: // some servers say "stop" all the same
			return modelwire.StopToolCalls
		case a.refusal:
			return modelwire.StopRefusal
		case a.stop == "stop":
			return modelwire.StopEnd
		}
	}
	return modelwire.StopOther
}
