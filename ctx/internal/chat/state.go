// Package chat is `ctx agent chat`: a conversation with an agent at a terminal,
// or line by line from a pipe (docs/reference/chat.md). What follows from what
// is one pure function, State.Next; around it stand the input, the connection of
// the run that is followed, and what is shown of it.
package chat

import "cortexfs.org/libctx"

// Phase is where a chat stands.
type Phase int

const (
	// Idle: no run of this chat is under way.
	Idle Phase = iota
	// Asked: a message was sent, and its run has not begun.
	Asked
	// Running: the run has begun.
	Running
	// Cancelling: the run was asked to end and has not.
	Cancelling
	// Left: the chat is over.
	Left
)

// State is a chat as far as it decides what comes next.
type State struct {
	Phase   Phase
	Held    []string // messages for when nothing runs, at most libctx.MaxQueuedSends
	Script  bool     // nobody is there to ask again: Ctrl+C ends the chat
	leaving bool     // as soon as the run has ended
}

// Active reports whether a run is followed.
func (s State) Active() bool { return s.Phase == Asked || s.Phase == Running || s.Phase == Cancelling }

// The ways in which a message can be meant while a run is under way.
const (
	FollowUp = "follow_up" // for where the run would end
	Steer    = "steer"     // before the model is asked the next time
	Finish   = "finish"    // the same, and no more tools
)

// Event is something that happened to a chat.
type Event interface{ event() }

// Entered is a message of the person. Op says how it is meant in a run: FollowUp,
// Steer or Finish.
type Entered struct{ Text, Op string }

// Interrupt is Ctrl+C.
type Interrupt struct{}

// Stop is the wish that the run ends, and nothing else.
type Stop struct{}

// Hangup is the end of the input, or the wish to leave.
type Hangup struct{}

// Began says that the run has begun.
type Began struct{}

// Ended says that the run is over, however it ended, or never began.
type Ended struct{}

// Lost says that nobody knows how the run goes on: its connection ended.
type Lost struct{}

// Unheard brings back what a run did not take: it had ended, or takes nothing.
type Unheard struct{ Text string }

func (Entered) event()   {}
func (Interrupt) event() {}
func (Stop) event()      {}
func (Hangup) event()    {}
func (Began) event()     {}
func (Ended) event()     {}
func (Lost) event()      {}
func (Unheard) event()   {}

// Action is something a chat does.
type Action interface{ action() }

// Send begins a run with a message.
type Send struct{ Text string }

// Say says something into the run.
type Say struct{ Text, Op string }

// Cancel asks for the end of the run.
type Cancel struct{}

// Detach stops following the run and leaves it alone.
type Detach struct{}

// Drop says how many held messages are not sent.
type Drop struct{ N int }

// Tell says something to the person.
type Tell struct{ Text string }

// Leave ends the chat. Cancelled says that Ctrl+C ended it.
type Leave struct{ Cancelled bool }

func (Send) action()   {}
func (Say) action()    {}
func (Cancel) action() {}
func (Detach) action() {}
func (Drop) action()   {}
func (Tell) action()   {}
func (Leave) action()  {}

// Next is the state after an event, and what is to be done. It changes nothing.
func (s State) Next(e Event) (State, []Action) {
	if s.Phase == Left {
		return s, nil
	}
	switch e := e.(type) {
	case Entered:
		return s.entered(e)
	case Unheard:
		return s.hold(e.Text)
	case Interrupt:
		return s.interrupt()
	case Stop:
		if !s.Active() {
			return s, []Action{Tell{"no run is active"}}
		}
		if s.Phase == Cancelling {
			return s, nil
		}
		return s.cancel()
	case Hangup:
		if s.Active() && !s.Script {
			s.Phase = Left
			return s, []Action{Tell{"the run goes on without you"}, Leave{}}
		}
		if s.Active() {
			s.leaving = true
			return s, nil
		}
		s.Phase = Left
		return s, []Action{Leave{}}
	case Began:
		if s.Phase == Asked {
			s.Phase = Running
		}
		return s, nil
	case Ended:
		return s.ended()
	case Lost:
		// What was meant for after a run whose end nobody knows is the person's
		// to decide again.
		dropped := s.drop()
		s.Held = nil
		s, actions := s.ended()
		return s, append(dropped, actions...)
	}
	return s, nil
}

func (s State) entered(e Entered) (State, []Action) {
	switch {
	case s.Phase == Idle && e.Op == Finish:
		return s, []Action{Tell{"no run is active"}}
	case s.Phase == Idle:
		s.Phase = Asked
		return s, []Action{Send{e.Text}}
	case s.Phase == Running && e.Op != FollowUp, s.Phase == Running && len(s.Held) == 0:
		return s, []Action{Say{e.Text, e.Op}}
	case e.Op == Finish:
		return s, []Action{Tell{"the run has not begun"}}
	}
	return s.hold(e.Text)
}

// hold keeps a message until nothing runs.
func (s State) hold(text string) (State, []Action) {
	if s.Phase == Idle {
		s.Phase = Asked
		return s, []Action{Send{text}}
	}
	if len(s.Held) >= libctx.MaxQueuedSends {
		return s, []Action{Tell{"too many messages wait; this one is not kept"}}
	}
	s.Held = append(s.Held[:len(s.Held):len(s.Held)], text)
	return s, []Action{Tell{"kept until the run is over"}}
}

func (s State) interrupt() (State, []Action) {
	switch s.Phase {
	case Idle:
		s.Phase = Left
		return s, []Action{Leave{Cancelled: s.Script}}
	case Cancelling: // it does not end: leave it alone
		if s.Script {
			s.Phase = Left
			return s, []Action{Detach{}, Leave{Cancelled: true}}
		}
		s.Phase = Idle
		return s, []Action{Detach{}, Tell{"left the run alone; it has not ended yet"}}
	}
	s.leaving = s.Script
	return s.cancel()
}

func (s State) cancel() (State, []Action) {
	s.Phase = Cancelling
	actions := append([]Action{Cancel{}}, s.drop()...)
	s.Held = nil
	return s, actions
}

func (s State) drop() []Action {
	if len(s.Held) == 0 {
		return nil
	}
	return []Action{Drop{len(s.Held)}}
}

func (s State) ended() (State, []Action) {
	if !s.Active() {
		return s, nil
	}
	cancelled := s.Phase == Cancelling
	if s.leaving {
		s.Phase = Left
		return s, []Action{Leave{Cancelled: cancelled}}
	}
	s.Phase = Idle
	if len(s.Held) == 0 {
		return s, nil
	}
	text := s.Held[0]
	s.Held = s.Held[1:]
	s.Phase = Asked
	return s, []Action{Send{text}}
}
