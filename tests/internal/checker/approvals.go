package checker

// asked is the question about a call, and what came of it.
type asked struct {
	open     bool
	decision string // "" until it is answered
}

// ask takes a question: a call is asked about once, before the decision about it.
func (s *one) ask(n int64, frame object, r *run) {
	c := s.answerable(frame.str("call"), r)
	switch {
	case c == nil:
		s.bad(n, Approvals, "asks about call %s of run %s, which there is not", frame.str("call"), r.id)
	case c.asked != asked{}:
		s.bad(n, Approvals, "asks about call %s of run %s again", c.id, r.id)
	case c.decided || c.result != nil:
		s.bad(n, Approvals, "asks about call %s of run %s, which is decided", c.id, r.id)
	default:
		c.asked.open = true
	}
}

// answer takes an answer: it is one to an open question.
func (s *one) answer(n int64, frame object, r *run) {
	c := s.answerable(frame.str("call"), r)
	if c == nil || !c.asked.open {
		s.bad(n, Approvals, "answers what nobody asked about call %s of run %s", frame.str("call"), r.id)
		return
	}
	c.asked = asked{decision: frame.str("decision")}
}

// approve looks at a decision: nothing runs that a person was asked about and did not
// allow, or that a person is said to have allowed and did not.
func (s *one) approve(n int64, frame object, c *call) {
	switch {
	case c.asked.open:
		s.bad(n, Approvals, "decides about call %s while its question is open", c.id)
	case c.allowed && c.asked.decision != "allow_once" && (c.asked != asked{} || frame.str("authorization") == "approval"):
		s.bad(n, Approvals, "allows call %s, to which the answer is %q", c.id, c.asked.decision)
	}
}
