package admit

import (
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
)

// The words of Authorization: the standing controls allow a call, or a person who
// was asked about this one.
const (
	ByPolicy   = "policy"
	ByApproval = "approval"
)

// Decision is the outcome for one call. Name is the tool it is about, Via is
// "tsh" when the call reached it through the shell. Code and Reason are set
// when it was refused; the reason is for people and the log, a model is told
// Code.Sentence alone. Effect is empty when the arguments were refused: what does
// not fit a tool is not classified.
//
// A call about which Ask says that a person has to allow it is refused, with the
// code ApprovalMissing, unless one does: nothing else is against it.
type Decision struct {
	Allowed       bool
	Ask           bool // Reason says why
	Name          libctx.Tool
	Via           libctx.Tool
	Code          Code
	Reason        string
	Effect        control.Effect
	Authorization string // ByPolicy when allowed
}

// Verdict is what one stage says of a call. Want is the line, bit or file that
// would satisfy a stage that refused; Reason says why it refused, or why it had
// nothing to judge. A stage that leaves the call to a person is not OK and says
// Ask; its code is that of a call about which nobody can be asked.
type Verdict struct {
	Stage  string
	OK     bool
	Ask    bool
	Code   Code // "" if OK
	Reason string
	Want   string
}

// Decide judges one call as it came: c names tsh or a tool, and t is what the
// lookup found for the tool that would run (Route names it). The decision is
// the first refusal of Explain; without one, the first question for a person;
// without that, permission.
func Decide(a Agent, t Tool, c Call) Decision {
	q := ask(a, t, c)
	d := Decision{Name: q.call.Name, Via: q.via}
	for _, s := range stages {
		v := s.judge(q).verdict(s)
		if v.OK || v.Ask && d.Ask {
			continue
		}
		d.Code, d.Reason, d.Ask = v.Code, v.Reason, v.Ask
		if !v.Ask {
			break
		}
	}
	if d.Code == "" {
		d.Allowed, d.Authorization = true, ByPolicy
	}
	if d.Code != InvalidArguments {
		d.Effect = q.class()
	}
	return d
}

// Explain is Decide with every stage heard, in their order.
func Explain(a Agent, t Tool, c Call) []Verdict {
	q := ask(a, t, c)
	var all []Verdict
	for _, s := range stages {
		if f := s.judge(q); !f.none {
			all = append(all, f.verdict(s))
		}
	}
	return all
}

// Shown reports whether the tool belongs into the agent's view: whether some
// call of it could be admitted, be it by a person.
func Shown(a Agent, t Tool) bool { return Standing(a, t).OK }

// Standing is the verdict on the tool whatever the call: the first refusal, or
// one that is OK. The stages that look at a call alone, the arguments and who
// named the tool, are left out, and a question for a person is no refusal.
func Standing(a Agent, t Tool) Verdict {
	q := &question{agent: a, tool: t, call: Call{Name: t.Name}, standing: true}
	for _, s := range stages {
		if s.ofCall {
			continue
		}
		if f := s.judge(q); f.refused() {
			return f.verdict(s)
		}
	}
	return Verdict{OK: true}
}

// Questioned reports whether a person has to allow each call of the tool that is
// not refused, whatever its arguments.
func Questioned(a Agent, t Tool) bool {
	q := &question{agent: a, tool: t, call: Call{Name: t.Name}, standing: true}
	return slices.ContainsFunc(stages, func(s stage) bool { return !s.ofCall && s.judge(q).ask })
}

// ask puts the question to the stages: what is called, by which way.
func ask(a Agent, t Tool, c Call) *question {
	q := &question{agent: a, tool: t, call: c, outer: c}
	q.call, q.via, q.routeErr = Route(c)
	if q.routeErr != nil {
		// Nothing is known of the tool; the first stage refuses.
		q.tool = Tool{}
		return q
	}
	if q.builtin = c.Name == Shell && q.via == ""; q.builtin {
		q.tool = Tool{Name: Shell}
		return q
	}
	if t.Name != q.call.Name {
		// Facts of another tool are no facts about this one.
		q.tool = Tool{Name: q.call.Name}
	}
	return q
}
