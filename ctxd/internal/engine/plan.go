package engine

import (
	"fmt"
	"strings"

	"cortexfs.org/ctxd/internal/calls"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
)

// What a model is told of a call that is not carried out because of the answer
// it stands in.
const (
	incomplete = "not executed: the answer was cut off before it was complete; send complete calls, fewer or shorter ones"
	tooMany    = "not executed: at most 32 calls of one answer are carried out; send the rest again"
)

// unnamed stands for the name of a call that named no possible tool.
const unnamed libctx.Tool = "unnamed"

// plan is what an answer comes to.
type plan struct {
	content []wire.Part    // of the assistant's entry, empty if there is nothing to keep
	calls   []toolrun.Call // to be carried out, in order
	refused []refused      // settled with the answer itself
}

// refused is a call that gets neither to admission nor to its tool.
type refused struct {
	call     toolrun.Call
	sentence string
	code     admit.Code // of the decision to record; "" if it is no decision about the call
}

// read decides what an answer comes to: entry is the id of the entry it becomes,
// of which its calls get ids that no other call of the session has, whatever the
// model called them. Blank text and calls' leftovers of other types are not kept.
func read(entry string, m *modelwire.MessageFrame, toolFree bool) plan {
	var p plan
	n := 0
	for _, part := range m.Content {
		switch part.Type {
		case "text", "reasoning":
			if strings.TrimSpace(part.Text) != "" {
				p.content = append(p.content, wire.Part{Type: part.Type, Text: part.Text})
			}
		case "tool_call":
			n++
			part.Call = callID(entry, n)
			if part.Name == "" {
				part.Name = unnamed
			}
			p.content = append(p.content, part)
			call := toolrun.Call{ID: part.Call, Name: part.Name, Arguments: part.Arguments}
			if r, no := refusal(part, n, m.Stop, toolFree); no {
				r.call = call
				p.refused = append(p.refused, r)
			} else {
				p.calls = append(p.calls, call)
			}
		}
	}
	if n == 0 && !speaks(p.content) {
		p.content = nil
	}
	return p
}

// callID is the id of the n-th call of an entry.
func callID(entry string, n int) libctx.Call {
	return libctx.Call(fmt.Sprintf("call-%s-%d", strings.TrimPrefix(entry, "e"), n))
}

// refusal says why the n-th call of an answer is not carried out, if it is not.
func refusal(part wire.Part, n int, stop string, toolFree bool) (r refused, no bool) {
	switch {
	case toolFree:
		return refused{sentence: calls.ToolFree}, true
	case !complete(stop):
		return refused{sentence: incomplete}, true
	case n > libctx.MaxTurnCalls:
		return refused{sentence: tooMany}, true
	case part.Name == unnamed && part.Invalid != "":
		return refused{sentence: admit.NotFound.Sentence(), code: admit.NotFound}, true
	case part.Invalid != "":
		return refused{sentence: admit.InvalidArguments.Sentence(), code: admit.InvalidArguments}, true
	}
	return refused{}, false
}

// complete reports whether an answer that stops like this says all it wanted to.
// A call of one that does not may lack its end, even if it reads well.
func complete(stop string) bool {
	switch stop {
	case modelwire.StopLength, modelwire.StopRefusal, modelwire.StopFiltered:
		return false
	}
	return true
}

// speaks reports whether there is text among the parts.
func speaks(parts []wire.Part) bool {
	for _, p := range parts {
		if p.Type == "text" {
			return true
		}
	}
	return false
}

// goesOn reports whether the model is to be asked again after the answer.
func (p *plan) goesOn() bool { return len(p.calls)+len(p.refused) > 0 }

// step is how a run goes on after an answer.
type step int

const (
	end    step = iota // unless something was said to the run meanwhile
	again              // the model is asked again
	giveUp             // the model does not hear that it may not call
)

// deaf is what there was of answers in a row that call, although their requests
// declared no tools. Asking on would cost a turn each and change nothing.
type deaf struct {
	turns int
	spoke bool // one of them had text too
}

// after says how a run goes on after the answer to a request without tools, if
// free, or with them.
func (d *deaf) after(p *plan, free bool) step {
	switch {
	case !p.goesOn():
		return end
	case !free:
		return again
	}
	d.turns++
	d.spoke = d.spoke || speaks(p.content)
	switch {
	case d.turns < libctx.MaxDeafTurns:
		return again
	case d.spoke:
		return end
	}
	return giveUp
}
