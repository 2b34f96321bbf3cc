package openai

import (
	"strings"

	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"github.com/openai/openai-go/v3"
)

// call is a tool call that is being written.
type call struct {
	place     int   // among the calls of the answer
	index     int64 // as the provider counts
	id        string
	name      string
	arguments strings.Builder
	shape     shape
	shown     bool // call_start is out
}

// call takes a piece of a call.
func (a *answer) call(t openai.ChatCompletionChunkChoiceDeltaToolCall) error {
	c := a.find(t)
	if c == nil {
		if len(a.calls) >= libctx.MaxModelParts-2 { // text and reasoning are parts too
			return compose.TooBig("the answer has more than %d calls", libctx.MaxModelParts-2)
		}
		c = &call{place: len(a.calls), index: t.Index, id: t.ID}
		a.calls = append(a.calls, c)
	}
	if c.id == "" {
		c.id = t.ID
	}
	name, piece := t.Function.Name, argumentsOf(t.Function)
	if err := a.Speak(len(name) + len(piece)); err != nil {
		return err
	}
	if name != c.name && c.arguments.Len() == 0 {
		c.name += name // the name itself may come in pieces
	}
	if c.arguments.Len()+len(piece) > libctx.MaxModelArguments {
		return compose.TooBig("the arguments of a call are longer than %d bytes", libctx.MaxModelArguments)
	}
	c.arguments.WriteString(piece)
	c.shape.add(piece)
	return a.show(c, piece)
}

// find is the call that a piece belongs to, nil for the first piece of one.
// Providers differ in what they tell calls apart by: the index, the id, or both;
// some repeat id and name in every piece, some give several calls one index.
func (a *answer) find(t openai.ChatCompletionChunkChoiceDeltaToolCall) *call {
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := a.calls[i]
		if c.index != t.Index || t.ID != "" && c.id != "" && c.id != t.ID {
			continue
		}
		// A whole call and then a name again, with more to say: another call.
		if t.Function.Name != "" && c.shape.whole() && (t.Function.Name != c.name || strings.TrimSpace(t.Function.Arguments) != "") {
			return nil
		}
		// A name beside an id that comes late belongs to another call too.
		if t.ID != "" && c.id == "" && t.Function.Name != "" && c.name != "" {
			return nil
		}
		return c
	}
	return nil
}

// show passes on a piece. Until the name is known nothing is said of a call.
func (a *answer) show(c *call, piece string) error {
	if !c.shown {
		if c.name == "" {
			return nil
		}
		piece = c.arguments.String()
		c.shown = true
		if err := a.out.Send(&modelwire.CallStart{Index: c.place, ID: compose.Word(c.id), Name: compose.Word(a.names.Back(c.name))}); err != nil {
			return err
		}
	}
	if piece == "" {
		return nil
	}
	return a.out.Send(&modelwire.CallDelta{Index: c.place, Text: piece})
}

// endCalls says of each call that it is over.
func (a *answer) endCalls() error {
	for i, c := range a.calls {
		if !c.shown {
			if err := a.out.Send(&modelwire.CallStart{Index: i, ID: compose.Word(c.id)}); err != nil {
				return err
			}
		}
		if err := a.out.Send(&modelwire.CallEnd{Index: i}); err != nil {
			return err
		}
	}
	return nil
}

// shape follows the brackets of a JSON object that comes in pieces.
type shape struct {
	depth           int
	begun           bool
	quoted, escaped bool
}

func (s *shape) add(piece string) {
	for i := range len(piece) {
		c := piece[i]
		switch {
		case s.escaped:
			s.escaped = false
		case s.quoted:
			s.escaped = c == '\\'
			s.quoted = c != '"'
		case c == '"':
			s.quoted = true
		case c == '{' || c == '[':
			s.depth++
			s.begun = true
		case c == '}' || c == ']':
			s.depth--
		}
	}
}

// whole reports whether all brackets that were opened are closed.
func (s *shape) whole() bool { return s.begun && s.depth == 0 && !s.quoted }
