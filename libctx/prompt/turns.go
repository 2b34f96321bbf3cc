package prompt

import (
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// Row is one message of a conversation as the ledger has it, in the form of the
// model protocol. Nothing here changes what it holds.
type Row struct {
	modelwire.Message
	Model libctx.Model // provider/model that wrote it, of an assistant: its reasoning goes back only there
}

// What stands in place of what a row does not have.
const (
	noResult  = "This call has no result: it was interrupted, and what it did is not known."
	noOutput  = "(no output)"
	noName    = libctx.Tool("invalid_name") // no provider takes a call without one
	leftOut   = "(Earlier messages of this session are left out here, because the context window has no room for them.)"
	textPart  = "text"
	reasoning = "reasoning"
	callPart  = "tool_call"
	result    = "tool_result"
)

// turn is what stays together: a message of the user, or one of the assistant
// with the results of its calls.
type turn struct {
	messages []modelwire.Message
	sizes    []int64 // of messages as JSON; nil until they were measured
	user     bool
	run      bool // of the run that the request belongs to
	rows     int  // of the ledger that it is made of
}

// turns makes turns of rows, those from the index run on being the run's. Each
// call has exactly one result, wherever the ledger has it: behind the next
// message of the user if it came late, a fixed error if it never came. Results
// without a call and messages without content disappear. Reasoning and opaque
// data stay if they are of the model the request goes to.
func turns(rows []Row, run int, to libctx.Model) []turn {
	type place struct{ turn, message int }
	var all []turn
	open := map[libctx.Call]place{}
	for i, r := range rows {
		m := modelwire.Message{Role: r.Role}
		switch r.Role {
		case "user":
			m.Content = texts(r.Content)
		case "assistant":
			m.Content = said(r, to)
			if r.Opaque.For(to) != nil {
				m.Opaque = r.Opaque
			}
		case "tool":
			for _, p := range r.Content {
				at, ok := open[p.Call]
				if p.Type != result || !ok {
					continue
				}
				delete(open, p.Call)
				answer(&all[at.turn].messages[at.message].Content[0], p)
				all[at.turn].rows++
			}
			continue
		}
		if len(m.Content) == 0 {
			continue
		}
		t := turn{messages: []modelwire.Message{m}, user: r.Role == "user", run: i >= run, rows: 1}
		for _, p := range m.Content {
			if p.Type == callPart {
				open[p.Call] = place{len(all), len(t.messages)}
				t.messages = append(t.messages, unanswered(p))
			}
		}
		all = append(all, t)
	}
	return all
}

// texts are the text parts that say something.
func texts(parts []wire.Part) []wire.Part {
	var kept []wire.Part
	for _, p := range parts {
		if p.Type == textPart && !blank(p.Text) {
			kept = append(kept, wire.Text(p.Text))
		}
	}
	return kept
}

// said is what goes back of an assistant's message. Reasoning alone is nothing.
func said(r Row, to libctx.Model) []wire.Part {
	var kept []wire.Part
	anything := false
	calls := map[libctx.Call]bool{}
	for _, p := range r.Content {
		switch {
		case p.Type == textPart && !blank(p.Text):
			anything = true
			kept = append(kept, wire.Text(p.Text))
		case p.Type == callPart && p.Call != "" && !calls[p.Call]:
			anything = true
			calls[p.Call] = true
			kept = append(kept, call(p))
		case p.Type == reasoning && !blank(p.Text) && to != "" && r.Model == to:
			kept = append(kept, wire.Part{Type: reasoning, Text: p.Text})
		}
	}
	if !anything {
		return nil
	}
	return kept
}

// call is a call as it can be sent.
func call(p wire.Part) wire.Part {
	c := wire.Part{Type: callPart, Call: p.Call, Name: p.Name, Arguments: p.Arguments, Invalid: p.Invalid}
	if c.Name == "" && c.Invalid == "" {
		c.Name = noName
	}
	if c.Arguments.Kind() != '{' {
		c.Arguments = jsontext.Value("{}")
	}
	return c
}

// unanswered is the message of a result that is not there yet.
func unanswered(call wire.Part) modelwire.Message {
	return modelwire.Message{Role: "tool", Content: []wire.Part{
		{Type: result, Call: call.Call, Name: call.Name, Status: "error", Text: noResult},
	}}
}

// answer gives a result what the ledger says.
func answer(to *wire.Part, p wire.Part) {
	if to.Text = p.Text; p.Status == "ok" {
		to.Status = "ok"
	}
	if blank(p.Text) {
		to.Text = noOutput
	}
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// join makes one array of turns. Messages of one side that came to stand beside
// each other become one, because some models want the sides to alternate.
func join(system modelwire.Message, kept []turn) []modelwire.Message {
	all := []modelwire.Message{system}
	for _, t := range kept {
		first := t.messages[0]
		last := &all[len(all)-1]
		if last.Role != first.Role {
			all = append(all, t.messages...)
			continue
		}
		// Opaque data and reasoning belong to a message as it was.
		last.Opaque = nil
		last.Content = slices.Concat(withoutReasoning(last.Content), withoutReasoning(first.Content))
		all = append(all, t.messages[1:]...)
	}
	return all
}

func withoutReasoning(parts []wire.Part) []wire.Part {
	return slices.DeleteFunc(slices.Clone(parts), func(p wire.Part) bool { return p.Type == reasoning })
}
