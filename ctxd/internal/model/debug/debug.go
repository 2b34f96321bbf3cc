// Package debug is the built-in provider: models that need no key and no
// network and do the same thing every time (docs/reference/model.md). Echo says
// what it was told, tools calls the tools its input names, script plays a file.
package debug

import (
	"context"
	"strings"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// Driver is the driver of the built-in provider.
type Driver struct{}

// Generate answers as the model of that name does.
func (Driver) Generate(ctx context.Context, _ *provider.Provider, _ provider.Secret, g *modelwire.Generate, out model.Sink) error {
	switch modelwire.NameOf(g.Model) {
	case "echo":
		return say(g, out, lastText(g.Messages), nil)
	case "tools":
		return tools(g, out)
	case "script":
		return script(ctx, g, out)
	}
	return invalid("there is no model %s", g.Model)
}

// invalid is the failure of a request that can not be done.
func invalid(format string, args ...any) error {
	return modelwire.Fail(errdefs.Invalid, modelwire.PhasePreSend, modelwire.ClassInvalid, format, args...)
}

// lastText is the text of the last message of a user, "" if there is none.
func lastText(list []modelwire.Message) string {
	if i := lastUser(list); i >= 0 {
		return text(list[i].Content)
	}
	return ""
}

// lastUser is the index of the last message of a user, -1 if there is none.
func lastUser(list []modelwire.Message) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Role == "user" {
			return i
		}
	}
	return -1
}

func text(parts []wire.Part) string {
	var texts []string
	for _, p := range parts {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// call is a tool call as a model writes it.
type call struct{ name, arguments string }

// say sends a whole answer: the text in pieces, the calls, the message, and a
// usage of a token for every four bytes.
func say(g *modelwire.Generate, out model.Sink, text string, calls []call) error {
	if err := out.Send(&modelwire.Start{Model: g.Model}); err != nil {
		return err
	}
	parts, err := deltas(out, text, calls)
	if err != nil {
		return err
	}
	stop := modelwire.StopEnd
	if len(calls) > 0 {
		stop = modelwire.StopToolCalls
	}
	if err := out.Send(&modelwire.MessageFrame{Content: parts, Stop: stop}); err != nil {
		return err
	}
	return out.Send(usage(g.Messages, parts))
}

// piece is how many bytes of text a delta has: few enough to be seen, and an
// answer of the greatest length is within its events.
const piece = 512

// deltas sends the provisional form of an answer and returns its parts.
func deltas(out model.Sink, text string, calls []call) ([]wire.Part, error) {
	parts := []wire.Part{}
	if text != "" {
		parts = append(parts, wire.Text(text))
	}
	for text != "" {
		n := cut(text, piece)
		if err := out.Send(&modelwire.Delta{Text: text[:n]}); err != nil {
			return nil, err
		}
		text = text[n:]
	}
	for i, c := range calls {
		p := modelwire.Call(i+1, c.name, c.arguments)
		frames := []modelwire.Frame{
			&modelwire.CallStart{Index: i, ID: string(p.Call), Name: c.name},
			&modelwire.CallDelta{Index: i, Text: c.arguments},
			&modelwire.CallEnd{Index: i},
		}
		if i >= libctx.MaxModelParts-1 {
			return nil, modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassLimit, "more than %d parts", libctx.MaxModelParts)
		}
		for _, f := range frames {
			if err := out.Send(f); err != nil {
				return nil, err
			}
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// cut is where a text is cut so that its first part has at most max bytes and
// whole characters.
func cut(s string, max int) int {
	if len(s) <= max {
		return len(s)
	}
	for max > 0 && s[max]&0xC0 == 0x80 {
		max--
	}
	return max
}

func usage(in []modelwire.Message, out []wire.Part) *modelwire.Usage {
	var n, m int64
	for _, msg := range in {
		n += size(msg.Content)
	}
	m = size(out)
	n, m = (n+3)/4, (m+3)/4
	return &modelwire.Usage{Input: &n, Output: &m}
}

func size(parts []wire.Part) (n int64) {
	for _, p := range parts {
		n += int64(len(p.Text) + len(p.Arguments))
	}
	return n
}

// words is the JSON of the arguments of tsh.
func words(list []string) string {
	b := []byte(`{"args":[`)
	for i, w := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, w) // text of a request is valid
	}
	return string(append(b, `]}`...))
}
