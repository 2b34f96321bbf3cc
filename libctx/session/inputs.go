package session

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// The operations by which a client says something into a run that goes on.
const (
	OpSteer    = "steer"
	OpFollowUp = "follow_up"
	OpFinish   = "finish"
)

// Input is what a client said into a run that goes on.
type Input struct {
	Client libctx.ClientID
	Op     string // OpSteer, OpFollowUp or OpFinish
	Text   string
}

// Accept is the record that makes an input of a run durable. Payload is compared
// when the client id comes again. From then on the ledger keeps room for the
// input, and the run can not end before it is delivered.
func (in Input) Accept(run libctx.Run, payload string) *Fact {
	return &Fact{Run: run, Payload: payload, Frame: &wire.Accepted{
		Head: wire.Head{Type: "accepted"}, Op: in.Op, ClientID: in.Client, Input: in.Text,
	}}
}

// Deliver is the records by which an accepted input becomes a message of the
// conversation, at its tip: one batch, its entry first.
func (in Input) Deliver(run libctx.Run) []Record {
	return []Record{&Entry{
		Run: run, Kind: KindMessage, Role: RoleUser, Content: []wire.Part{wire.Text(in.Text)},
		ClientID: in.Client, Origin: in.Op,
	}, in.delivered(run)}
}

// delivered is the fact that an input has become a message.
func (in Input) delivered(run libctx.Run) *Fact {
	f := &wire.Delivered{Head: wire.Head{Type: "steering_delivered"}, ClientID: in.Client, Op: in.Op}
	if in.Op == OpFollowUp {
		f.Type = "follow_up_delivered"
	}
	if f.Text, f.Truncated = wire.Clip(in.Text, libctx.MaxInlineText); f.Truncated {
		f.Bytes = len(in.Text)
	}
	return &Fact{Run: run, Frame: f}
}

// pendingInput is an accepted input of an open run that is not delivered. One
// that is entered has its entry, and only the fact is missing: the end of the
// batch was lost with the power.
type pendingInput struct {
	client  libctx.ClientID
	size    int64 // of the record that accepted it
	entered bool
}

// owed bounds what the delivery of an input adds to the ledger: its entry and
// its fact hold at most what the accepting record does, and their own members.
func (p pendingInput) owed() int64 {
	const members = 1024
	return 2*p.size + members
}

// owed is the bytes and the records that the ledger keeps room for.
func (f *Fold) owed() (bytes, records int64) {
	for i := range f.runs {
		for _, p := range f.runs[i].inputs {
			bytes, records = bytes+p.owed(), records+2
		}
	}
	return bytes, records
}

// input is the pending input of that id, nil if there is none.
func (r *openRun) input(id libctx.ClientID) *pendingInput {
	for i := range r.inputs {
		if r.inputs[i].client == id {
			return &r.inputs[i]
		}
	}
	return nil
}

// hear moves the pending inputs over a record of the run.
func (r *openRun) hear(b *brief) {
	switch {
	case b.accepts():
		r.inputs = append(r.inputs, pendingInput{client: b.Frame.ClientID, size: b.size})
	case b.enters():
		if p := r.input(b.ClientID); p != nil {
			p.entered = true
		}
	case b.delivers():
		for i := range r.inputs {
			if r.inputs[i].client == b.Frame.ClientID {
				r.inputs = append(r.inputs[:i], r.inputs[i+1:]...)
				return
			}
		}
	}
}

// accepts reports whether the record makes an input durable.
func (b *brief) accepts() bool {
	return b.Type == "fact" && b.Frame.Type == "accepted" && b.Frame.ClientID != ""
}

// enters reports whether the record is a client's message. In a run that has
// started it is an input.
func (b *brief) enters() bool {
	return b.Type == "entry" && b.Kind == KindMessage && b.Role == RoleUser && b.ClientID != ""
}

// delivers reports whether the record says that an input has become a message.
func (b *brief) delivers() bool {
	return b.Type == "fact" && (b.Frame.Type == "steering_delivered" || b.Frame.Type == "follow_up_delivered")
}

// admitInput checks a record of an open run against the order of an input:
// accepted, entered, delivered.
func (s *Session) admitInput(b *brief, run *openRun, a *admission) error {
	bad := func(format string, args ...any) error { return errdefs.New(errdefs.Invalid, format, args...) }
	switch {
	case b.accepts():
		if run.tsh {
			return bad("run %s takes no input", b.Run)
		}
		return s.unused(b.Frame.ClientID, a)
	case b.enters():
		if p := run.input(b.ClientID); p == nil || p.entered {
			return bad("input %s of run %s does not wait", b.ClientID, b.Run)
		}
	case b.delivers():
		if p := run.input(b.Frame.ClientID); p == nil || !p.entered {
			return bad("input %s of run %s has no entry, or waits no more", b.Frame.ClientID, b.Run)
		}
	case b.Type == "checkpoint" && len(run.inputs) > 0:
		return bad("input %s of run %s is not delivered", run.inputs[0].client, b.Run)
	}
	return nil
}

// deliver is the records that are missing of the inputs which a dead host left.
func (s *Session) deliver(run *openRun) ([]Record, error) {
	var records []Record
	for _, p := range run.inputs {
		in, err := s.accepted(p.client)
		if err != nil {
			return nil, err
		}
		if p.entered {
			records = append(records, in.delivered(run.run))
			continue
		}
		records = append(records, in.Deliver(run.run)...)
	}
	return records, nil
}

// accepted reads an input from the record that accepted it.
func (s *Session) accepted(id libctx.ClientID) (Input, error) {
	for _, off := range s.st.clients.find(id) {
		text, err := lineAt(s.ledger, off, s.st.size, libctx.MaxRecord)
		if err != nil {
			return Input{}, errdefs.New(errdefs.IO, "%s at offset %d: %w", ledgerFile, off, err)
		}
		r, err := DecodeRecord(text)
		if err != nil {
			return Input{}, errdefs.New(errdefs.IO, "%s at offset %d: %w", ledgerFile, off, err)
		}
		if fact, ok := r.(*Fact); ok {
			if f, ok := fact.Frame.(*wire.Accepted); ok && f.ClientID == id {
				return Input{Client: id, Op: f.Op, Text: f.Input}, nil
			}
		}
	}
	return Input{}, errdefs.New(errdefs.IO, "%s: the record that accepted input %s is gone", ledgerFile, id)
}
