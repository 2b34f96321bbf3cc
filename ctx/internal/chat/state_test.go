package chat

import (
	"reflect"
	"testing"

	"cortexfs.org/libctx"
	"pgregory.net/rapid"
)

func TestNext(t *testing.T) {
	idle, asked := State{}, State{Phase: Asked}
	running, cancelling := State{Phase: Running}, State{Phase: Cancelling}
	held := State{Phase: Running, Held: []string{"a", "b"}}
	script := State{Phase: Running, Script: true}
	left := State{Phase: Left}
	for _, c := range []struct {
		name string
		from State
		do   Event
		to   State
		what []Action
	}{
		{"a message", idle, Entered{"x", FollowUp}, asked, []Action{Send{"x"}}},
		{"Alt+Enter where nothing runs", idle, Entered{"x", Steer}, asked, []Action{Send{"x"}}},
		{"/finish where nothing runs", idle, Entered{"x", Finish}, idle, []Action{Tell{"no run is active"}}},
		{"before the run begins", asked, Entered{"x", FollowUp}, State{Phase: Asked, Held: []string{"x"}}, []Action{Tell{"kept until the run is over"}}},
		{"/finish before the run begins", asked, Entered{"x", Finish}, asked, []Action{Tell{"the run has not begun"}}},
		{"it begins", asked, Began{}, running, nil},
		{"it begins after Ctrl+C", cancelling, Began{}, cancelling, nil},
		{"Enter in a run", running, Entered{"x", FollowUp}, running, []Action{Say{"x", FollowUp}}},
		{"Alt+Enter in a run", running, Entered{"x", Steer}, running, []Action{Say{"x", Steer}}},
		{"/finish", running, Entered{"x", Finish}, running, []Action{Say{"x", Finish}}},
		{"behind what is held", held, Entered{"x", FollowUp}, State{Phase: Running, Held: []string{"a", "b", "x"}}, []Action{Tell{"kept until the run is over"}}},
		{"past what is held", held, Entered{"x", Steer}, held, []Action{Say{"x", Steer}}},
		{"not taken, the run goes on", running, Unheard{"x"}, State{Phase: Running, Held: []string{"x"}}, []Action{Tell{"kept until the run is over"}}},
		{"not taken, the run is over", idle, Unheard{"x"}, asked, []Action{Send{"x"}}},
		{"the end", running, Ended{}, idle, nil},
		{"the end, with more to say", held, Ended{}, State{Phase: Asked, Held: []string{"b"}}, []Action{Send{"a"}}},
		{"an end nobody waits for", idle, Ended{}, idle, nil},
		{"Ctrl+C", running, Interrupt{}, cancelling, []Action{Cancel{}}},
		{"Ctrl+C before it begins", asked, Interrupt{}, cancelling, []Action{Cancel{}}},
		{"Ctrl+C with more to say", held, Interrupt{}, cancelling, []Action{Cancel{}, Drop{2}}},
		{"Ctrl+C again", cancelling, Interrupt{}, idle, []Action{Detach{}, Tell{"left the run alone; it has not ended yet"}}},
		{"Ctrl+C where nothing runs", idle, Interrupt{}, left, []Action{Leave{}}},
		{"/cancel", running, Stop{}, cancelling, []Action{Cancel{}}},
		{"/cancel again", cancelling, Stop{}, cancelling, nil},
		{"/cancel where nothing runs", idle, Stop{}, idle, []Action{Tell{"no run is active"}}},
		{"while it is cancelled", cancelling, Entered{"x", FollowUp}, State{Phase: Cancelling, Held: []string{"x"}}, []Action{Tell{"kept until the run is over"}}},
		{"cancelled", cancelling, Ended{}, idle, nil},
		{"the connection is lost", running, Lost{}, idle, nil},
		{"it is lost with more to say", held, Lost{}, idle, []Action{Drop{2}}},
		{"Ctrl+D", idle, Hangup{}, left, []Action{Leave{}}},
		{"Ctrl+D in a run", running, Hangup{}, left, []Action{Tell{"the run goes on without you"}, Leave{}}},
		{"a script ends in a run", script, Hangup{}, State{Phase: Running, Script: true, leaving: true}, nil},
		{"and then the run", State{Phase: Running, Script: true, leaving: true}, Ended{}, State{Phase: Left, Script: true, leaving: true}, []Action{Leave{}}},
		{"Ctrl+C in a script", script, Interrupt{}, State{Phase: Cancelling, Script: true, leaving: true}, []Action{Cancel{}}},
		{"and then the run", State{Phase: Cancelling, Script: true, leaving: true}, Ended{}, State{Phase: Left, Script: true, leaving: true}, []Action{Leave{Cancelled: true}}},
		{"Ctrl+C twice in a script", State{Phase: Cancelling, Script: true, leaving: true}, Interrupt{}, State{Phase: Left, Script: true, leaving: true}, []Action{Detach{}, Leave{Cancelled: true}}},
		{"Ctrl+C between runs of a script", State{Script: true}, Interrupt{}, State{Phase: Left, Script: true}, []Action{Leave{Cancelled: true}}},
		{"after the end", left, Entered{"x", FollowUp}, left, nil},
	} {
		to, what := c.from.Next(c.do)
		if len(to.Held) == 0 {
			to.Held = nil
		}
		if !reflect.DeepEqual(to, c.to) || !reflect.DeepEqual(what, c.what) {
			t.Errorf("%s: %+v %+v\nwant %+v %+v", c.name, to, what, c.to, c.what)
		}
	}
}

// TestNextAlways: whatever happens, a run is followed exactly where one was begun,
// what is held is bounded, and nothing happens to a chat that is over.
func TestNextAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := State{Script: rapid.Bool().Draw(t, "script")}
		runs, over := 0, false
		for range rapid.IntRange(1, 300).Draw(t, "events") {
			e := rapid.SampledFrom([]Event{
				Entered{"a", FollowUp}, Entered{"b", Steer}, Entered{"c", Finish}, Interrupt{}, Stop{}, Hangup{}, Began{}, Ended{}, Lost{}, Unheard{"d"},
			}).Draw(t, "event")
			if _, ended := e.(Ended); (ended || e == Event(Lost{})) && runs > 0 {
				runs--
			} else if ended || e == Event(Lost{}) {
				continue // a run that is not followed says nothing
			}
			var actions []Action
			s, actions = s.Next(e)
			if over && len(actions) > 0 {
				t.Fatalf("%T after the end: %v", e, actions)
			}
			for _, a := range actions {
				switch a.(type) {
				case Send:
					runs++
				case Detach:
					runs--
				case Leave:
					over = true
				}
			}
			if s.Phase != Left && s.Active() != (runs == 1) || runs < 0 || runs > 1 {
				t.Fatalf("%T: %+v with %d runs", e, s, runs)
			}
			if len(s.Held) > libctx.MaxQueuedSends || over != (s.Phase == Left) {
				t.Fatalf("%+v", s)
			}
		}
	})
}

func TestParse(t *testing.T) {
	for in, want := range map[string]struct {
		command string
		text    string
		fails   bool
	}{
		"hello":             {text: "hello"},
		" /help":            {text: " /help"},
		"/help":             {command: "help "},
		"/show 3":           {command: "show 3"},
		"/steer  two\nmore": {command: "steer two\nmore"},
		"//help":            {text: "/help"},
		"/usr/bin/x fails":  {text: "/usr/bin/x fails"},
		"/":                 {text: "/"},
		"/nope":             {fails: true},
		"/quit now":         {fails: true},
	} {
		c, text, err := Parse(in)
		got := ""
		if c != nil {
			got = c.Name + " " + c.Argument
		}
		if got != want.command || text != want.text || (err != nil) != want.fails {
			t.Errorf("%q: %q %q %v", in, got, text, err)
		}
	}
}
