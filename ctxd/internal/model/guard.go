package model

import (
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/ctxd/internal/model/hide"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// guard is a Sink that takes the key out of an answer on its way to another one.
// Frames are passed on as they come, but for the end of a text that may be the
// beginning of the key: that waits for the next piece, or the message.
type guard struct {
	to     Sink
	filter *hide.Filter

	text, thought hide.Stream
	calls         map[int]*hide.Stream // arguments of open calls, by index
}

func newGuard(to Sink, filter *hide.Filter) *guard {
	return &guard{
		to: to, filter: filter, calls: map[int]*hide.Stream{},
		text: hide.Stream{Filter: filter}, thought: hide.Stream{Filter: filter},
	}
}

// Send passes a frame on without the key.
func (g *guard) Send(f modelwire.Frame) error {
	switch f := f.(type) {
	case *modelwire.Start:
		return g.to.Send(&modelwire.Start{Model: f.Model, RequestID: g.word(f.RequestID)})
	case *modelwire.Delta:
		return g.piece(g.text.Next(f.Text), func(s string) modelwire.Frame { return &modelwire.Delta{Text: s} })
	case *modelwire.ReasoningDelta:
		return g.piece(g.thought.Next(f.Text), func(s string) modelwire.Frame { return &modelwire.ReasoningDelta{Text: s} })
	case *modelwire.CallStart:
		g.calls[f.Index] = &hide.Stream{Filter: g.filter}
		return g.to.Send(&modelwire.CallStart{Index: f.Index, ID: g.word(f.ID), Name: g.word(f.Name)})
	case *modelwire.CallDelta:
		if s := g.calls[f.Index]; s != nil {
			return g.arguments(f.Index, s.Next(f.Text))
		}
	case *modelwire.CallEnd:
		if err := g.endCall(f.Index); err != nil {
			return err
		}
	case *modelwire.MessageFrame:
		if err := g.flush(); err != nil {
			return err
		}
		return g.to.Send(g.message(f))
	case *modelwire.Usage:
		return g.to.Send(&modelwire.Usage{
			Input: g.count(f.Input), CacheRead: g.count(f.CacheRead), CacheWrite: g.count(f.CacheWrite),
			Output: g.count(f.Output), Reasoning: g.count(f.Reasoning),
		})
	}
	return g.to.Send(f)
}

// flush passes on what waits: no more comes.
func (g *guard) flush() error {
	if err := g.piece(g.text.Rest(), func(s string) modelwire.Frame { return &modelwire.Delta{Text: s} }); err != nil {
		return err
	}
	if err := g.piece(g.thought.Rest(), func(s string) modelwire.Frame { return &modelwire.ReasoningDelta{Text: s} }); err != nil {
		return err
	}
	for i := range g.calls {
		if err := g.endCall(i); err != nil {
			return err
		}
	}
	return nil
}

// piece sends a text, unless there is nothing of it.
func (g *guard) piece(text string, frame func(string) modelwire.Frame) error {
	if text == "" {
		return nil
	}
	return g.to.Send(frame(text))
}

func (g *guard) arguments(index int, text string) error {
	return g.piece(text, func(s string) modelwire.Frame { return &modelwire.CallDelta{Index: index, Text: s} })
}

func (g *guard) endCall(index int) error {
	s := g.calls[index]
	if s == nil {
		return nil
	}
	delete(g.calls, index)
	return g.arguments(index, s.Rest())
}

// message is a message without the key, also where one part has its beginning
// and the next its end.
func (g *guard) message(f *modelwire.MessageFrame) *modelwire.MessageFrame {
	clean := *f
	clean.Content = slices.Clone(f.Content)
	for _, kind := range []string{"text", "reasoning"} {
		var texts []string
		for _, p := range clean.Content {
			if p.Type == kind {
				texts = append(texts, p.Text)
			}
		}
		texts = g.filter.Texts(texts)
		for i := range clean.Content {
			if clean.Content[i].Type == kind {
				clean.Content[i].Text, texts = texts[0], texts[1:]
			}
		}
	}
	for i, p := range clean.Content {
		if p.Type == "tool_call" {
			clean.Content[i] = g.call(p)
		}
	}
	if f.Opaque != nil {
		o := *f.Opaque
		o.Data = g.filter.Value(o.Data)
		clean.Opaque = &o
	}
	return &clean
}

// call is a call without the key.
func (g *guard) call(p wire.Part) wire.Part {
	p.Arguments = g.filter.Value(p.Arguments)
	if p.Invalid = g.cut(p.Invalid, libctx.MaxInvalid); p.Arguments.Kind() != '{' {
		p.Arguments = jsontext.Value("{}")
		p.Invalid = "the arguments hold the provider's key"
	}
	if name := g.filter.Text(string(p.Name)); name != string(p.Name) {
		p.Name, p.Arguments, p.Invalid = "", jsontext.Value("{}"), "not the name of a tool: "+hide.Mask
	}
	return p
}

// word is a short foreign word, or the mask if the key is in it.
func (g *guard) word(s string) string {
	if g.cut(s, libctx.MaxProviderCode) != s {
		return hide.Mask
	}
	return s
}

// cut is a text that was cut off if it is about this long: what may be the
// beginning of the key goes too.
func (g *guard) cut(s string, most int) string {
	const more, few = "…", 4
	text := strings.TrimSuffix(s, more)
	clean := g.filter.Text(text)
	if begun := g.filter.Begun(text); len(begun) >= few && len(s) > most-len(more) {
		clean = strings.TrimSuffix(clean, begun) + hide.Mask
	}
	switch {
	case clean == text:
		return s
	case len(clean) > most:
		return hide.Mask
	}
	return clean
}

// count is a count of tokens, not known if it spells a key.
func (g *guard) count(n *int64) *int64 {
	if n != nil && len(g.filter.Find(strconv.FormatInt(*n, 10))) > 0 {
		return nil
	}
	return n
}
