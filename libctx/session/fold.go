package session

import (
	"bytes"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// Event is one durable frame: a line of events.jsonl. One of no run has no Run. Line ends in LF,
// is clipped to the limits of the wire and can go to a client as it is.
type Event struct {
	ID   libctx.Event
	Run  libctx.Run
	Line []byte
}

// Fold derives the durable frames from a ledger, record by record in ledger
// order. It is a pure function of the records: the same lines give the same
// frames, byte for byte. The zero Fold stands before the first record. Between
// records it remembers only the runs that are open.
type Fold struct {
	runs    []openRun
	carried []carriedCall // in the order in which they were made
}

// openRun is a run with a first record and no checkpoint.
type openRun struct {
	run    libctx.Run
	tsh    bool
	events int        // durable frames so far
	calls  []openCall // calls without a result, in order
	inputs []pendingInput
	spent

	workspace, cwd string // of its start
}

// openCall is a call without a result. Entry is the number of its message, 0 for
// a call that is a fact.
type openCall struct {
	Call  libctx.Call
	Name  libctx.Tool
	entry uint32
	begun bool // it was allowed

	asked, answered bool // a person was asked whether it may run; there is a decision
}

// spent is what a run or a session used, as far as it is known.
type spent struct {
	tokens    Tokens
	cost      int64 // picodollars
	uncertain bool  // the use of an attempt is not known
	unpriced  bool  // nor is the price of a use
}

// add counts a usage or usage_uncertain record.
func (s *spent) add(b *brief) {
	switch {
	case b.Type == "usage_uncertain":
		s.uncertain = true
	case b.Type != "usage":
	case b.Cost == nil:
		s.unpriced = true
		s.tokens.add(b.Tokens)
	default:
		s.tokens.add(b.Tokens)
		s.cost += *b.Cost
	}
}

// find returns the open run, nil if there is none.
func (f *Fold) find(run libctx.Run) *openRun {
	for i := range f.runs {
		if f.runs[i].run == run {
			return &f.runs[i]
		}
	}
	return nil
}

// Clone copies the fold, so that a refused batch leaves no trace.
func (f *Fold) Clone() Fold {
	c := Fold{runs: append([]openRun(nil), f.runs...), carried: append([]carriedCall(nil), f.carried...)}
	for i := range c.runs {
		c.runs[i].calls = append([]openCall(nil), c.runs[i].calls...)
		c.runs[i].inputs = append([]pendingInput(nil), c.runs[i].inputs...)
	}
	return c
}

// Next takes the next line of a ledger and returns its frames. Errors are
// errdefs.Invalid, as DecodeRecord has them.
func (f *Fold) Next(line []byte) ([]Event, error) {
	b, err := decodeBrief(line)
	if err != nil {
		return nil, err
	}
	return f.next(line, b)
}

func (f *Fold) next(line []byte, b *brief) ([]Event, error) {
	events, err := f.frames(line, b)
	if err == nil {
		f.advance(b)
	}
	return events, err
}

// frames makes the events of the next line without moving the fold.
func (f *Fold) frames(line []byte, b *brief) ([]Event, error) {
	if b.lone() {
		return loneFrame(line, b.Event)
	}
	if b.Run == "" || b.frames() == 0 {
		return nil, nil
	}
	var open openRun
	if r := f.find(b.Run); r != nil {
		open = *r
	}
	for _, c := range f.carried { // the run may answer them too
		open.calls = append(slices.Clip(open.calls), c.call)
	}
	frames, err := framesOf(line, b, &open)
	if err != nil {
		return nil, err
	}
	events := make([]Event, len(frames))
	for i, fr := range frames {
		id := libctx.MakeEvent(b.Run, open.events+1+i)
		line, err := fr.line(id, b.Run)
		if err != nil {
			return nil, err
		}
		events[i] = Event{ID: id, Run: b.Run, Line: line}
	}
	return events, nil
}

// lone reports whether the record is a fact of the session itself. It begins no
// run and takes part in none.
func (b *brief) lone() bool { return b.Type == "fact" && b.Run == "" && b.Event != "" }

// loneFrame makes the event of a fact that belongs to no run.
func loneFrame(line []byte, id libctx.Event) ([]Event, error) {
	var f factJSON
	if err := wire.Object(line, &f); err != nil {
		return nil, err
	}
	text, err := spliceFrame(f.Frame, id, "")
	if err != nil {
		return nil, err
	}
	return []Event{{ID: id, Line: text}}, nil
}

// frames is the number of durable frames a record of a run gives. It needs no content,
// so that a scan can count events without making them.
func (b *brief) frames() int {
	switch b.Type {
	case "fact", "usage", "usage_uncertain":
		return 1
	case "checkpoint":
		if b.failed() {
			return 2
		}
		return 1
	case "entry":
		if b.Kind != KindMessage {
			return 0
		}
		n, text, thought := 0, 0, 0
		for _, p := range b.Content {
			switch {
			case b.Role == RoleAssistant && p.Type == "tool_call", b.Role == RoleTool && p.Type == "tool_result":
				n++
			case b.Role == RoleAssistant && p.Type == "text":
				text = 1
			case b.Role == RoleAssistant && p.Type == "reasoning":
				thought = 1
			}
		}
		return n + text + thought
	}
	return 0
}

// failed reports whether a checkpoint's run ends with an error frame.
func (b *brief) failed() bool {
	return b.Outcome == Failed || b.Outcome == MaxTurns || b.Outcome == Interrupted
}

// advance moves the open runs over a record.
func (f *Fold) advance(b *brief) {
	if b.Run == "" || b.Type == "head" || b.Type == "session" {
		return
	}
	if b.Type == "entry" && (b.Kind != KindMessage || b.Role == RoleUser) && f.find(b.Run) == nil {
		return // the message in front of its start frame
	}
	r := f.find(b.Run)
	if r == nil {
		f.runs = append(f.runs, openRun{run: b.Run})
		r = &f.runs[len(f.runs)-1]
	}
	r.events += b.frames()
	r.hear(b)
	switch b.Type {
	case "checkpoint":
		f.carry(r, b.Carried)
		for i := range f.runs {
			if f.runs[i].run == b.Run {
				f.runs = append(f.runs[:i], f.runs[i+1:]...)
				return
			}
		}
	case "usage", "usage_uncertain":
		r.add(b)
	case "entry":
		for _, p := range b.Content {
			switch {
			case b.Role == RoleAssistant && p.Type == "tool_call":
				r.calls = append(r.calls, openCall{Call: p.Call, Name: p.Name, entry: b.id})
			case b.Role == RoleTool && p.Type == "tool_result":
				f.settle(r, p.Call)
			}
		}
	case "fact":
		switch b.Frame.Type {
		case "start":
			r.tsh, r.workspace, r.cwd = b.Frame.Op == "tsh", b.Frame.Workspace, b.Frame.Cwd
		case "tool_call":
			r.calls = append(r.calls, openCall{Call: b.Frame.Call, Name: b.Frame.Name})
		case "tool_policy":
			if b.Frame.Allowed {
				f.allow(r, b.Frame.Call)
			}
		case "approval_request", "approval_result":
			f.ask(r, b.Frame.Call, b.Frame.Type == "approval_result")
		case "tool_result":
			f.settle(r, b.Frame.Call)
		}
	}
}

// tool is the tool of an unanswered call.
func (r *openRun) tool(call libctx.Call) libctx.Tool {
	for _, c := range r.calls {
		if c.Call == call {
			return c.Name
		}
	}
	return ""
}

func (t *Tokens) add(u Tokens) {
	t.Input += u.Input
	t.CacheRead += u.CacheRead
	t.CacheWrite += u.CacheWrite
	t.Output += u.Output
}

// frame is a frame before it has its id: typed, or raw where a fact's own
// members must survive.
type frame struct {
	typed wire.Frame
	raw   jsontext.Value
}

// framesOf makes the frames of one record of a run, which is at state open.
func framesOf(line []byte, b *brief, open *openRun) ([]frame, error) {
	if b.Type == "fact" {
		var f factJSON
		if err := wire.Object(line, &f); err != nil {
			return nil, err
		}
		return []frame{{raw: f.Frame}}, nil
	}
	r := recordTypes[b.Type]()
	if err := wire.Object(line, r); err != nil {
		return nil, err
	}
	switch r := r.(type) {
	case *Entry:
		if r.Role == RoleTool {
			return resultFrames(r, open), nil
		}
		return messageFrames(r), nil
	case *Usage:
		return []frame{{typed: &wire.Usage{Head: wire.Head{Type: "usage"},
			InputTokens: r.Input, OutputTokens: r.Output, CachedTokens: r.CacheRead, CacheWriteTokens: r.CacheWrite}}}, nil
	case *UsageUncertain:
		raw, err := encode(struct {
			Type   string       `json:"type"`
			Kind   string       `json:"kind"`
			Model  libctx.Model `json:"model"`
			Reason string       `json:"reason,omitzero"`
		}{"usage_uncertain", r.Kind, r.Model, r.Reason})
		return []frame{{raw: raw}}, err
	case *Checkpoint:
		return endFrames(r, b.failed()), nil
	}
	return nil, errdefs.New(errdefs.Internal, "record type %q has no frames", b.Type)
}

func messageFrames(e *Entry) []frame {
	frames := append(saidFrame(e, "reasoning_message", "reasoning"), saidFrame(e, "message", "text")...)
	for _, p := range e.Content {
		if p.Type != "tool_call" {
			continue
		}
		c := &wire.ToolCall{Head: wire.Head{Type: "tool_call"}, Call: p.Call, Name: p.Name, Arguments: p.Arguments}
		if len(c.Arguments) == 0 {
			c.Arguments = jsontext.Value("{}")
		}
		if n := len(c.Arguments); n > libctx.MaxInlineText {
			c.Arguments, c.Truncated, c.Bytes = clipped(c.Arguments), true, n
		}
		frames = append(frames, frame{typed: c})
	}
	return frames
}

// saidFrame is the frame of what a message says in parts of one type, if it has
// any.
func saidFrame(e *Entry, kind, of string) []frame {
	var parts []wire.Part
	var whole strings.Builder
	for _, p := range e.Content {
		if p.Type == of {
			parts = append(parts, wire.Part{Type: of, Text: p.Text})
			whole.WriteString(p.Text)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	m := &wire.Message{Head: wire.Head{Type: kind}, Role: e.Role, Content: parts}
	if whole.Len() > libctx.MaxInlineText || len(parts) > maxTextParts {
		text, cut := wire.Clip(whole.String(), libctx.MaxInlineText)
		m.Content = []wire.Part{{Type: of, Text: text}}
		if cut {
			m.Truncated, m.Bytes = true, whole.Len()
		}
	}
	return []frame{{typed: m}}
}

func resultFrames(e *Entry, open *openRun) []frame {
	var frames []frame
	for _, p := range e.Content {
		if p.Type != "tool_result" {
			continue
		}
		name := p.Name
		if name == "" {
			name = open.tool(p.Call)
		}
		f := &wire.ToolResult{Head: wire.Head{Type: "tool_result"}, Call: p.Call, Name: name, Status: p.Status,
			Content: p.Text, Truncated: p.Truncated, ExitCode: p.ExitCode, DurationMS: p.DurationMS}
		if s, cut := wire.Clip(p.Text, libctx.MaxInlineText); cut {
			f.Content, f.Truncated, f.Bytes = s, true, len(p.Text)
		}
		frames = append(frames, frame{typed: f})
	}
	return frames
}

// endFrames ends a run: an error frame where it did not end well, then done.
func endFrames(c *Checkpoint, failed bool) []frame {
	status := "ok"
	switch {
	case failed:
		status = "error"
	case c.Outcome == Cancelled:
		status = "cancelled"
	}
	done := frame{typed: &wire.Done{Head: wire.Head{Type: "done"}, Status: status}}
	if !failed {
		return []frame{done}
	}
	e := &wire.Error{Head: wire.Head{Type: "error"}, Code: c.Code, Message: c.Message}
	if e.Code == "" {
		e.Code = map[string]errdefs.Kind{MaxTurns: errdefs.TooMuch, Interrupted: errdefs.Interrupted, Failed: errdefs.Internal}[c.Outcome]
	}
	if c.Outcome == Interrupted {
		e.Code = errdefs.Interrupted
	}
	if e.Message == "" {
		e.Message = "the run ended: " + c.Outcome
	}
	e.Message, _ = wire.Clip(e.Message, libctx.MaxInlineText)
	return []frame{{typed: e}, done}
}

// line finishes a frame: id and run in front of the other members, long
// members clipped, never over the frame limit.
func (f frame) line(id libctx.Event, run libctx.Run) ([]byte, error) {
	if f.typed != nil {
		h := f.typed.Header()
		h.ID, h.Run = id, run
		line, err := encode(f.typed)
		if err == nil && len(line) > libctx.MaxFrame {
			return shortLine(h.Type, id, run, len(line))
		}
		return line, err
	}
	return spliceFrame(f.raw, id, run)
}

// maxTextParts bounds the parts of a message frame; more are joined into one,
// because the braces of very many empty parts alone could pass the frame limit.
const maxTextParts = 256

// clipped stands in for arguments that are too long for the wire.
func clipped(raw jsontext.Value) jsontext.Value {
	s, _ := wire.Clip(string(bytes.TrimSpace(raw)), libctx.MaxInlineText)
	v, err := encode(struct {
		Clipped string `json:"clipped"`
	}{s})
	if err != nil { // raw was valid JSON, so this can not be
		return jsontext.Value("{}")
	}
	return bytes.TrimSpace(v)
}
