package admit

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
)

// ByPolicy is the Authorization of a call that the standing controls allow.
const ByPolicy = "policy"

// Decision is the outcome for one call. Name is the tool it is about, Via is
// "tsh" when the call reached it through the shell. Code and Reason are set
// when it was refused; the reason is for people and the log, a model is told
// Code.Sentence alone. Effect is empty when the arguments were refused: what does
// not fit a tool is not classified.
type Decision struct {
	Allowed       bool
	Name          libctx.Tool
	Via           libctx.Tool
	Code          Code
	Reason        string
	Effect        control.Effect
	Authorization string // ByPolicy when allowed
}

// Verdict is what one stage says of a call. Want is the line, bit or file that
// would satisfy a stage that refused; Reason says why it refused, or why it had
// nothing to judge.
type Verdict struct {
	Stage  string
	OK     bool
	Code   Code // "" if OK
	Reason string
	Want   string
}

// Decide judges one call as it came: c names tsh or a tool, and t is what the
// lookup found for the tool that would run (Route names it). The decision is
// the first refusal of Explain, or permission if there is none.
func Decide(a Agent, t Tool, c Call) Decision {
	q := ask(a, t, c)
	d := Decision{Name: q.call.Name, Via: q.via}
	for _, s := range stages {
		if v := s.judge(q).verdict(s); !v.OK {
			d.Code, d.Reason = v.Code, v.Reason
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
// call of it could be admitted.
func Shown(a Agent, t Tool) bool { return Standing(a, t).OK }

// Standing is the verdict on the tool whatever the call: the first refusal, or
// one that is OK. The stages that look at a call alone, the arguments and who
// named the tool, are left out.
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
