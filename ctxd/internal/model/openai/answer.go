package openai

import (
	"bytes"
	"strings"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/ctxd/internal/model/failure"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3"
)

// isDone reports the terminal event.
func isDone(ev transport.Event) bool { return string(bytes.TrimSpace(ev.Data)) == "[DONE]" }

// answer collects the chunks of one answer, and passes on what comes as it comes.
type answer struct {
	out    model.Sink
	names  *toolnames.Table
	status int
	key    provider.Secret

	text, reasoning strings.Builder
	calls           []*call
	refusal         bool   // the text is one
	stop            string // the provider's first finish_reason
	usage           *modelwire.Usage
	size            int  // bytes of text, reasoning, names and arguments
	seen            bool // any of them came
}

// event takes one event that is not the terminal one. What it says wrongly, or
// of a failure, is a *modelwire.Failure.
func (a *answer) event(ev transport.Event) error {
	data := jsontext.Value(bytes.TrimSpace(ev.Data))
	if len(data) == 0 {
		return nil
	}
	if ev.Type == "error" {
		return failure.Said(failure.Parse(data), a.status, a.key)
	}
	var chunk openai.ChatCompletionChunk
	if data.Kind() != '{' || !data.IsValid(jsontext.AllowDuplicateNames(true)) || chunk.UnmarshalJSON(data) != nil {
		return modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassInterrupted, "an event of the answer is no chunk of a completion")
	}
	if e := chunk.JSON.ExtraFields["error"].Raw(); e != "" && e != "null" || chunk.JSON.Object.Raw() == `"error"` {
		return failure.Said(failure.Parse(data), a.status, a.key)
	}
	if chunk.JSON.Usage.Valid() {
		a.usage = usageOf(chunk.Usage) // cumulative where there are several
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
			if err := a.say(&a.reasoning, text); err != nil {
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
		if err := a.say(&a.text, d.Refusal); err != nil {
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
		return a.say(&a.text, unquote(raw))
	}
	for _, p := range partsOf(raw) {
		to := &a.text
		if p.thinking {
			to = &a.reasoning
		}
		if err := a.say(to, p.text); err != nil {
			return err
		}
	}
	return nil
}

// say adds to the text or the reasoning.
func (a *answer) say(to *strings.Builder, text string) error {
	if text == "" {
		return nil
	}
	text = wire.Clean([]byte(text))
	if err := a.grow(len(text)); err != nil {
		return err
	}
	to.WriteString(text)
	if to == &a.reasoning {
		return a.out.Send(&modelwire.ReasoningDelta{Text: text})
	}
	return a.out.Send(&modelwire.Delta{Text: text})
}

// grow counts what has come.
func (a *answer) grow(n int) error {
	a.seen = true
	if a.size += n; a.size > libctx.MaxModelMessage {
		return tooBig("the answer is longer than %d bytes", libctx.MaxModelMessage)
	}
	return nil
}

func tooBig(format string, args ...any) error {
	return modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassLimit, format, args...)
}

// fail completes a failure by what has come before it.
func (a *answer) fail(f *modelwire.Failure) error {
	f.Status, f.Accepted = a.status, true
	f.GenerationSeen = a.seen
	if err := a.sendUsage(); err != nil {
		return err
	}
	return f
}

// finish ends an answer whose terminal event has come.
func (a *answer) finish() error {
	if a.stop == "" {
		return a.fail(modelwire.Fail(errdefs.Provider, modelwire.PhaseBody, modelwire.ClassInterrupted, "the answer ends without a finish_reason"))
	}
	if err := a.endCalls(); err != nil {
		return err
	}
	m := &modelwire.MessageFrame{Content: []wire.Part{}, Stop: a.stopped()}
	if a.reasoning.Len() > 0 {
		m.Content = append(m.Content, wire.Part{Type: "reasoning", Text: a.reasoning.String()})
	}
	if a.text.Len() > 0 {
		m.Content = append(m.Content, wire.Text(a.text.String()))
	}
	for i, c := range a.calls {
		m.Content = append(m.Content, modelwire.Call(i+1, a.names.Back(c.name), c.arguments.String()))
	}
	if _, err := modelwire.MarshalFrame(m); errdefs.Is(err, errdefs.TooBig) {
		return a.fail(modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassLimit, "%s", err))
	}
	if err := a.out.Send(m); err != nil {
		return err
	}
	return a.sendUsage()
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

func (a *answer) sendUsage() error {
	if a.usage == nil {
		return nil
	}
	return a.out.Send(a.usage)
}

// word makes a short foreign word harmless.
func word(s string) string {
	s = inert.Line(wire.Clean([]byte(s[:min(len(s), libctx.MaxProviderCode)])))
	return s[:min(len(s), libctx.MaxProviderCode)]
}
