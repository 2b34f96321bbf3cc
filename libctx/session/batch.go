package session

import (
	"hash/crc32"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// batch is what prepare makes of records: the bytes to append and the frames
// they imply. started, ended and lone say that a run begins or ends in it, or that
// it has a fact of no run.
type batch struct {
	bytes          []byte
	events         []Event
	started, ended bool
	lone           bool
	due            int // bytes of it that room was kept for
}

// maxClosing bounds a batch that may use the reserve of a full ledger.
const maxClosing = 8 << 10

// prepare fills in, encodes and checks records and moves the state over them.
// What it checks it checks on the encoded lines, so that nothing is written
// that could not be read back. The caller rolls the state back on an error.
func (s *Session) prepare(records []Record) (*batch, error) {
	b := new(batch)
	ts := s.now().UTC().Format(timeLayout)
	closing := true
	a := admission{end: s.st.size}
	for _, r := range records {
		s.fill(r, ts)
		text, err := encode(r)
		if err != nil {
			return nil, err
		}
		if int64(len(text)) > s.limits.record {
			return nil, errdefs.New(errdefs.NoSpace, "a record of %d bytes is over the limit of %d", len(text), s.limits.record)
		}
		br, err := decodeBrief(text)
		if err != nil {
			return nil, errdefs.New(errdefs.Invalid, "%s record: %w", typeOf(r), err)
		}
		if err := s.admit(br, &a); err != nil {
			return nil, errdefs.New(errdefs.KindOf(err), "%s record: %w", br.Type, err)
		}
		due := br.delivers() || br.enters() && s.st.fold.find(br.Run) != nil
		events, err := s.st.fold.frames(text, br)
		if err != nil {
			return nil, errdefs.New(errdefs.Invalid, "%s record: %w", br.Type, err)
		}
		if err := s.st.take(text, br); err != nil {
			return nil, errdefs.New(errdefs.Invalid, "%s record: %w", br.Type, err)
		}
		b.bytes = append(b.bytes, text...)
		b.events = append(b.events, events...)
		b.started = b.started || br.starts() && br.Frame.Op != "tsh"
		b.ended = b.ended || br.Type == "checkpoint"
		b.lone = b.lone || br.lone()
		switch {
		case due:
			b.due += len(text)
		case !br.closes():
			closing = false
		}
	}
	if a.waiting != "" {
		return nil, errdefs.New(errdefs.Invalid, "the message of run %s has no start frame with it", a.waiting)
	}
	return b, s.fit(b, closing)
}

// fit checks the ledger's limits with the batch taken. Only a small batch that
// ends something may go into the reserve; what room was kept for does not count.
func (s *Session) fit(b *batch, closing bool) error {
	bytes, records := s.st.fold.owed()
	if closing && len(b.bytes)-b.due <= maxClosing && s.st.size+bytes <= s.limits.ledger && s.st.seq+records <= s.limits.records {
		return nil
	}
	return s.room()
}

// fill sets what Commit sets.
func (s *Session) fill(r Record, ts string) {
	h := r.Header()
	h.Seq, h.TS, h.Type = s.st.seq+1, ts, typeOf(r)
	switch r := r.(type) {
	case *Entry:
		if r.ID == "" {
			r.ID, r.Parent = entryID(uint32(len(s.st.offs))+1), entryID(s.st.tip)
		}
	case *Checkpoint:
		run := s.st.fold.find(r.Run)
		if run == nil {
			return
		}
		r.Usage, r.Cost = run.tokens, run.cost
		r.TokensAtLeast, r.CostAtLeast = run.uncertain, run.uncertain || run.unpriced
		if !run.tsh && r.Head == "" {
			r.Head = entryID(s.st.tip)
		}
	}
}

// admission is what the rules of a batch need to know of its earlier records.
type admission struct {
	end     int64             // of the ledger on disk
	waiting libctx.Run        // of a user message whose start frame has to follow
	clients []libctx.ClientID // that are used in the batch
}

// admit checks a record against the rules that a writer keeps and a reader does
// not insist on.
func (s *Session) admit(b *brief, a *admission) error {
	bad := func(format string, args ...any) error { return errdefs.New(errdefs.Invalid, format, args...) }
	if b.Type == "fact" && b.Run == "" && !(b.lone() && agentFacts[b.Frame.Type]) {
		return bad("a fact of type %.80q without a run", b.Frame.Type)
	}
	if b.Run == "" || b.Type == "head" || b.Type == "session" {
		return nil
	}
	run := s.st.fold.find(b.Run)
	if b.starts() {
		switch {
		case run != nil:
			return bad("run %s has started already", b.Run)
		case b.Frame.Op != "tsh" && s.st.active() != "":
			return bad("run %s is active", s.st.active())
		}
		if a.waiting == b.Run {
			a.waiting = ""
		}
		if b.Frame.ClientID == "" {
			return nil
		}
		return s.unused(b.Frame.ClientID, a)
	}
	if run == nil && b.Type == "entry" && b.Kind == KindMessage && b.Role == RoleUser && a.waiting == "" {
		a.waiting = b.Run
		return nil
	}
	if run == nil {
		return bad("run %s is not open", b.Run)
	}
	if b.Type == "checkpoint" {
		if err := s.admitEnd(b, run); err != nil {
			return err
		}
	}
	for _, call := range b.results() {
		if !run.pending(call) && (run.tsh || !s.st.fold.carries(call)) {
			return bad("call %s of run %s is not open", call, b.Run)
		}
	}
	return s.admitInput(b, run, a)
}

// agentFacts are the frames of facts that belong to no run.
var agentFacts = map[string]bool{"agent.start": true, "agent.stop": true}

// unused refuses a client id that the session has seen.
func (s *Session) unused(id libctx.ClientID, a *admission) error {
	other, _, found, err := s.client(id, a.end)
	if err != nil {
		return err
	}
	if found || slices.Contains(a.clients, id) {
		return errdefs.New(errdefs.Exists, "id %s was used in run %s", id, other)
	}
	a.clients = append(a.clients, id)
	return nil
}

// starts reports whether the record is a run's start frame.
func (b *brief) starts() bool { return b.Type == "fact" && b.Frame.Type == "start" }

// results lists the calls a record answers.
func (b *brief) results() []libctx.Call {
	var calls []libctx.Call
	if b.Type == "fact" && b.Frame.Type == "tool_result" {
		calls = append(calls, b.Frame.Call)
	}
	if b.Type == "entry" && b.Role == RoleTool {
		for _, p := range b.Content {
			if p.Type == "tool_result" {
				calls = append(calls, p.Call)
			}
		}
	}
	return calls
}

// closes reports whether the record belongs to the end of what a run began, so
// that it may use the reserve.
func (b *brief) closes() bool {
	switch b.Type {
	case "checkpoint", "usage", "usage_uncertain", "head":
		return true
	case "fact":
		if b.lone() && b.Frame.Type == "agent.stop" || b.Frame.Type == "approval_result" {
			return true
		}
	}
	return len(b.results()) > 0
}

func (r *openRun) pending(call libctx.Call) bool {
	for _, c := range r.calls {
		if c.Call == call {
			return true
		}
	}
	return false
}

func update(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// Ended says how a run ended whose end could not be recorded, because storage
// had failed: for the opening that comes after.
type Ended struct {
	Run     libctx.Run
	Code    errdefs.Kind
	Message string
}

// ending is the checkpoint of a run that was left open.
func (s *Session) ending(run libctx.Run) *Checkpoint {
	for _, e := range s.how.Ended {
		if e.Run == run {
			return &Checkpoint{Run: run, Outcome: Failed, Code: e.Code, Message: e.Message}
		}
	}
	return &Checkpoint{Run: run, Outcome: Interrupted, Code: errdefs.Interrupted,
		Message: "the host stopped while this run was going on"}
}

// settle ends what a dead host left open, in one batch.
func (s *Session) settle() error {
	var records []Record
	if n := s.st.unstarted; n != 0 {
		// The message was never acknowledged; the next prompt must not have it.
		records = append(records, &Head{ID: entryID(s.st.parent(n))})
	}
	var settled []SettledCall
	for i := range s.st.fold.runs {
		more, err := s.settleRun(&s.st.fold.runs[i], &settled)
		if err != nil {
			return err
		}
		records = append(records, more...)
	}
	if _, err := s.commit(records); err != nil {
		return err
	}
	s.settled = settled
	return nil
}

// settleRun ends one run. A call that was carried into it is not carried on: what
// it was begun for once more is not known either.
func (s *Session) settleRun(run *openRun, settled *[]SettledCall) (records []Record, err error) {
	end := s.ending(run.run)
	if !run.tsh {
		for _, c := range s.st.fold.carried {
			*settled = append(*settled, SettledCall{Run: c.run, Call: c.call.Call, Name: c.call.Name})
			records = append(records, c.call.unanswered(run.run)...)
			records = append(records, unknown(run.run, c.call.Call, c.call.Name, c.call.begun))
		}
	}
	for _, c := range run.calls {
		carry, err := s.replayable(run, c)
		switch {
		case err != nil:
			return nil, err
		case carry:
			end.Carried = append(end.Carried, c.Call)
			continue
		}
		*settled = append(*settled, SettledCall{Run: run.run, Call: c.Call, Name: c.Name})
		records = append(records, c.unanswered(run.run)...)
		if run.tsh {
			records = append(records, &Fact{Run: run.run, Frame: &wire.ToolResult{
				Head: wire.Head{Type: "tool_result"}, Call: c.Call, Name: c.Name, Status: "error", Content: lost(c.begun)}})
			continue
		}
		records = append(records, unknown(run.run, c.Call, c.Name, c.begun))
	}
	inputs, err := s.deliver(run)
	if err != nil {
		return nil, err
	}
	return append(append(records, inputs...), end), nil
}

// unanswered ends the question about a call that a dead host left open.
func (c openCall) unanswered(run libctx.Run) []Record {
	if !c.asked || c.answered {
		return nil
	}
	return []Record{&Fact{Run: run, Frame: &wire.ApprovalResult{
		Head: wire.Head{Type: "approval_result"}, Call: c.Call, Decision: Interrupted}}}
}
