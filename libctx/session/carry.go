package session

import (
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// OpenCall is a call of a model agent that has no result because the host died.
type OpenCall struct {
	Run       libctx.Run // that it belongs to
	Call      libctx.Call
	Name      libctx.Tool
	Arguments jsontext.Value
	Workspace string // host directory of that run
	Cwd       string // inside path
	Begun     bool   // it was allowed, so that it may have been executed
}

// Results of calls that a host left: of one that it may have begun and did not see
// the end of, and of one that it had not allowed, so that it never began.
const (
	OutcomeUnknown = "outcome unknown: the host stopped while this call ran"
	NeverBegun     = "not executed: the host stopped before this call began"
)

// Lost is the text of the result of the call where it is not executed any more.
func (c OpenCall) Lost() string { return lost(c.Begun) }

func lost(begun bool) string {
	if begun {
		return OutcomeUnknown
	}
	return NeverBegun
}

// Unknown is the record that settles the call in a run, its own or the one it
// was carried into, where nothing more will come of it.
func (c OpenCall) Unknown(run libctx.Run) *Entry { return unknown(run, c.Call, c.Name, c.Begun) }

func unknown(run libctx.Run, call libctx.Call, name libctx.Tool, begun bool) *Entry {
	return &Entry{Run: run, Kind: KindMessage, Role: RoleTool, Content: []wire.Part{
		{Type: "tool_result", Call: call, Name: name, Status: "error", Text: lost(begun)}}}
}

// carriedCall is a call whose run has ended without its result: the next driven
// run begins with it.
type carriedCall struct {
	run            libctx.Run
	call           openCall
	workspace, cwd string
}

// carry moves the calls that a run's checkpoint names from the run.
func (f *Fold) carry(r *openRun, calls []libctx.Call) {
	for _, c := range r.calls {
		if slices.Contains(calls, c.Call) {
			f.carried = append(f.carried, carriedCall{r.run, c, r.workspace, r.cwd})
		}
	}
}

// carries reports whether a call waits for the next driven run.
func (f *Fold) carries(call libctx.Call) bool {
	return slices.ContainsFunc(f.carried, func(c carriedCall) bool { return c.call.Call == call })
}

// settle forgets the oldest unanswered call of that id, of the run or carried
// into it.
func (f *Fold) settle(r *openRun, call libctx.Call) {
	if i := slices.IndexFunc(r.calls, func(c openCall) bool { return c.Call == call }); i >= 0 {
		r.calls = slices.Delete(r.calls, i, i+1)
		return
	}
	i := slices.IndexFunc(f.carried, func(c carriedCall) bool { return c.call.Call == call })
	if i >= 0 && !r.tsh {
		f.carried = slices.Delete(f.carried, i, i+1)
	}
}

// open is the oldest unanswered call of that id, of the run or carried into it,
// nil if there is none.
func (f *Fold) open(r *openRun, call libctx.Call) *openCall {
	if i := slices.IndexFunc(r.calls, func(c openCall) bool { return c.Call == call }); i >= 0 {
		return &r.calls[i]
	}
	i := slices.IndexFunc(f.carried, func(c carriedCall) bool { return c.call.Call == call })
	if i >= 0 && !r.tsh {
		return &f.carried[i].call
	}
	return nil
}

// allow takes note that a call may be executed from now on.
func (f *Fold) allow(r *openRun, call libctx.Call) {
	if c := f.open(r, call); c != nil {
		c.begun = true
	}
}

// ask takes note that a person was asked about a call, or that this is decided.
func (f *Fold) ask(r *openRun, call libctx.Call, decided bool) {
	if c := f.open(r, call); c != nil {
		c.asked, c.answered = true, decided
	}
}

// admitEnd checks a checkpoint: the run's calls have results, or are carried on
// because its host died; those that were carried into it have results.
func (s *Session) admitEnd(b *brief, run *openRun) error {
	bad := func(format string, args ...any) error { return errdefs.New(errdefs.Invalid, format, args...) }
	for _, c := range run.calls {
		if !slices.Contains(b.Carried, c.Call) {
			return bad("call %s of run %s has no result", c.Call, b.Run)
		}
	}
	switch {
	case len(b.Carried) != len(run.calls):
		return bad("a call that run %s carries is not open", b.Run)
	case len(b.Carried) > 0 && (run.tsh || b.Outcome != Interrupted):
		return bad("run %s can not carry calls", b.Run)
	case len(s.st.fold.carried) > 0 && !run.tsh:
		return bad("call %s, carried into run %s, has no result", s.st.fold.carried[0].call.Call, b.Run)
	}
	return nil
}

// Carried lists the calls that the next driven run, or the one that is open, has
// to give results, in order. Damage found on the way is errdefs.IO.
func (s *Session) Carried() ([]OpenCall, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	var calls []OpenCall
	for _, c := range s.st.fold.carried {
		call, _, err := s.call(c)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// call reads a call from its message, and says whether a model wrote it.
func (s *Session) call(c carriedCall) (OpenCall, bool, error) {
	e, err := s.entry(c.call.entry)
	if err != nil {
		return OpenCall{}, false, err
	}
	for _, p := range e.Content {
		if p.Type == "tool_call" && p.Call == c.call.Call {
			return OpenCall{
				Run: c.run, Call: p.Call, Name: p.Name, Arguments: p.Arguments,
				Workspace: c.workspace, Cwd: c.cwd, Begun: c.call.begun,
			}, e.Model != "" && p.Invalid == "", nil
		}
	}
	return OpenCall{}, false, errdefs.New(errdefs.IO, "%s: entry %s has no call %s", ledgerFile, e.ID, c.call.Call)
}

// replayable reports whether a call of a run that a dead host left may be
// executed in the next one. One that a person was asked about may not: the answer was
// for that run.
func (s *Session) replayable(run *openRun, c openCall) (bool, error) {
	if s.how.Replayable == nil || run.tsh || c.asked || s.ending(run.run).Outcome != Interrupted {
		return false, nil
	}
	call, model, err := s.call(carriedCall{run.run, c, run.workspace, run.cwd})
	if err != nil || !model {
		return false, err
	}
	return s.how.Replayable(call), nil
}
