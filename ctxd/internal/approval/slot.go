package approval

import (
	"sync"

	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/wire"
)

// Event is what can happen to an open question.
type Event struct {
	Kind   Kind
	Answer *wire.Approve // of Answered
}

// Kind of an Event.
type Kind int

const (
	Answered  Kind = iota // the connection that was asked sent an answer, to this question or to another
	Malformed             // it sent what is no request
	Gone                  // it can say nothing more, or was not reached
	Expired               // the time for an answer is over
	Stopped               // the run was told to end
)

// decide is the whole life of a question: it is open with decision "", and the
// first event ends it.
func decide(q Question, decision string, e Event) string {
	if decision != "" {
		return decision
	}
	switch e.Kind {
	case Answered:
		switch {
		case !q.asks(e.Answer):
			return Invalid
		case e.Answer.Decision == AllowOnce:
			return AllowOnce
		case e.Answer.Decision == Deny:
			return Deny
		}
	case Gone:
		return Disconnected
	case Expired:
		return Timeout
	case Stopped:
		return Cancelled
	}
	return Invalid
}

// asks reports whether the answer is one to this question.
func (q Question) asks(a *wire.Approve) bool {
	return a != nil && (a.Run == q.Run && a.Call == q.Call || fault.Off("approval:call"))
}

// Slot holds the answer to one question, which is put into it once. It may be used
// from any goroutine.
type Slot struct {
	q    Question
	done chan struct{}

	mu       sync.Mutex
	decision string
}

// NewSlot opens a question.
func NewSlot(q Question) *Slot { return &Slot{q: q, done: make(chan struct{})} }

// Take ends the question with an event, if nothing has ended it before. It reports
// whether this event did.
func (s *Slot) Take(e Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.decision != "" {
		return false
	}
	s.decision = decide(s.q, s.decision, e)
	close(s.done)
	return true
}

// Asks reports whether the answer is one to this question, and the question is
// open.
func (s *Slot) Asks(a *wire.Approve) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decision == "" && s.q.asks(a)
}

// Done is closed when the question has ended.
func (s *Slot) Done() <-chan struct{} { return s.done }

// Answer is what the question ended with. It waits for that.
func (s *Slot) Answer() Answer {
	<-s.done
	return answer(s.decision)
}
