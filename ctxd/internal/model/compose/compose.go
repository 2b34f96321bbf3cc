// Package compose puts an answer together, part by part in the provider's order,
// while it passes on what comes as it comes. It holds the answer to the limits
// of docs/reference/model.md and is the same for every wire format whose answers
// are lists of parts. It does no I/O but from the stream and to its Sink.
package compose

import (
	"strings"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
)

// Answer is one answer that is being written. It is for one goroutine.
type Answer struct {
	out    model.Sink
	names  *toolnames.Table
	status int
	parts  []*Part
	calls  int
	size   int // bytes of everything that came
	seen   bool
	usage  *modelwire.Usage
}

// New begins an answer that came with this HTTP status; start has been sent.
func New(out model.Sink, names *toolnames.Table, status int) *Answer {
	return &Answer{out: out, names: names, status: status}
}

// SetUsage keeps what is known of the usage now; nil is nothing.
func (a *Answer) SetUsage(u *modelwire.Usage) { a.usage = u }

// Calls is how many calls there are so far.
func (a *Answer) Calls() int { return a.calls }

// Status is the HTTP status the answer came with.
func (a *Answer) Status() int { return a.status }

// Grow counts bytes that belong to the answer and are in no part of it.
func (a *Answer) Grow(n int) error {
	if a.size += n; a.size > libctx.MaxModelMessage {
		return TooBig("the answer is longer than %d bytes", libctx.MaxModelMessage)
	}
	return nil
}

// Speak counts bytes that the model said and that are in no part.
func (a *Answer) Speak(n int) error {
	a.seen = true
	return a.Grow(n)
}

// Text begins a part of text.
func (a *Answer) Text() (*Part, error) { return a.begin(&Part{kind: "text"}) }

// Reasoning begins a part of reasoning.
func (a *Answer) Reasoning() (*Part, error) { return a.begin(&Part{kind: "reasoning"}) }

// Call begins a call of a function by its name on the wire.
func (a *Answer) Call(id, function string) (*Part, error) {
	p, err := a.begin(&Part{kind: "tool_call", place: a.calls, name: a.names.Back(function)})
	if err != nil {
		return nil, err
	}
	if err := a.Speak(len(function)); err != nil {
		return nil, err
	}
	a.calls++
	return p, a.out.Send(&modelwire.CallStart{Index: p.place, ID: Word(id), Name: Word(p.name)})
}

func (a *Answer) begin(p *Part) (*Part, error) {
	if len(a.parts) >= libctx.MaxModelParts {
		return nil, TooBig("the answer has more than %d parts", libctx.MaxModelParts)
	}
	p.of = a
	a.parts = append(a.parts, p)
	return p, nil
}

// Fail completes a failure by what came before it, and says what is known of
// the usage.
func (a *Answer) Fail(f *modelwire.Failure) error {
	f.Status, f.Accepted = a.status, true
	f.GenerationSeen = a.seen
	if err := a.sendUsage(); err != nil {
		return err
	}
	return f
}

// Finish ends the answer: calls that are still open, the message, the usage.
// Parts without a text are left out. An answer that is too long is a failure.
func (a *Answer) Finish(stop string, opaque *modelwire.Opaque) error {
	m := &modelwire.MessageFrame{Content: []wire.Part{}, Stop: stop, Opaque: opaque}
	for _, p := range a.parts {
		if err := p.End(); err != nil {
			return err
		}
		switch {
		case p.kind == "tool_call":
			m.Content = append(m.Content, modelwire.Call(p.place+1, p.name, p.text.String()))
		case p.text.Len() > 0:
			m.Content = append(m.Content, wire.Part{Type: p.kind, Text: p.text.String()})
		}
	}
	return a.Deliver(m)
}

// Deliver ends the answer with a message that was put together elsewhere, and the
// usage. One that is too long is a failure.
func (a *Answer) Deliver(m *modelwire.MessageFrame) error {
	if _, err := modelwire.MarshalFrame(m); errdefs.Is(err, errdefs.TooBig) {
		return a.Fail(TooBig("%s", err))
	}
	if err := a.out.Send(m); err != nil {
		return err
	}
	return a.sendUsage()
}

func (a *Answer) sendUsage() error {
	if a.usage == nil {
		return nil
	}
	return a.out.Send(a.usage)
}

// Part is a part of an answer.
type Part struct {
	of    *Answer
	kind  string
	place int    // of a call, among the calls
	name  string // of a call
	text  strings.Builder
	ended bool
}

// Add adds a piece: of the text, or of a call's arguments as the model writes
// them.
func (p *Part) Add(piece string) error {
	if piece == "" {
		return nil
	}
	if p.kind != "tool_call" {
		piece = wire.Clean([]byte(piece))
	}
	if err := p.of.Speak(len(piece)); err != nil {
		return err
	}
	if p.kind == "tool_call" && p.text.Len()+len(piece) > libctx.MaxModelArguments {
		return TooBig("the arguments of a call are longer than %d bytes", libctx.MaxModelArguments)
	}
	p.text.WriteString(piece)
	switch p.kind {
	case "text":
		return p.of.out.Send(&modelwire.Delta{Text: piece})
	case "reasoning":
		return p.of.out.Send(&modelwire.ReasoningDelta{Text: piece})
	}
	return p.of.out.Send(&modelwire.CallDelta{Index: p.place, Text: piece})
}

// Len is the bytes of the part so far.
func (p *Part) Len() int { return p.text.Len() }

// Says reports whether the part goes back to the provider with the message:
// calls and texts that are not blank do.
func (p *Part) Says() bool {
	return p.kind == "tool_call" || p.kind == "text" && !blank(p.text.String())
}

// End ends the part; a second time is nothing.
func (p *Part) End() error {
	if p.ended || p.kind != "tool_call" {
		return nil
	}
	p.ended = true
	return p.of.out.Send(&modelwire.CallEnd{Index: p.place})
}

// Word makes a short foreign word harmless.
func Word(s string) string {
	s = inert.Line(wire.Clean([]byte(s[:min(len(s), libctx.MaxProviderCode)])))
	return strings.ToValidUTF8(s[:min(len(s), libctx.MaxProviderCode)], "")
}

// TooBig is the failure of an answer over a limit.
func TooBig(format string, args ...any) *modelwire.Failure {
	return modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassLimit, format, args...)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
