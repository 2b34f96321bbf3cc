package engine

import (
	"cmp"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/prompt"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// rows is the conversation as a model is told of it. Each call has its result
// behind it, in the order of the calls, whatever the order in which they came to
// an end; blank parts, and messages without any part, are left out. Start is the
// index of the first row of the run.
func rows(entries []session.Entry, run libctx.Run) (list []prompt.Row, start int) {
	start = -1
	for i := range entries {
		e := &entries[i]
		if e.Role == session.RoleTool && len(list) > 0 && list[len(list)-1].Role == session.RoleTool {
			last := &list[len(list)-1]
			last.Content = slices.Concat(last.Content, parts(e))
			continue
		}
		row := prompt.Row{Message: modelwire.Message{Role: e.Role, Content: parts(e)}}
		if complete(e.Stop) { // unfinished reasoning goes nowhere
			row.Opaque, row.Model = e.Opaque, e.Model
		}
		if len(row.Content) == 0 {
			continue
		}
		if e.Run == run && start < 0 {
			start = len(list)
		}
		list = append(list, row)
	}
	for i := 1; i < len(list); i++ {
		if list[i].Role == session.RoleTool {
			inOrder(list[i-1].Content, list[i].Content)
		}
	}
	if start < 0 {
		start = len(list)
	}
	return list, start
}

// begins reports whether an entry is the message that a run began with.
func begins(e *session.Entry) bool { return e.Role == session.RoleUser && e.Origin == "" }

// textBytes is about how long the rows are.
func textBytes(list []prompt.Row) (n int64) {
	for _, r := range list {
		for _, p := range r.Content {
			n += int64(len(p.Text) + len(p.Arguments))
		}
	}
	return n
}

// parts are those of an entry that say something to a model. Reasoning alone says
// nothing.
func parts(e *session.Entry) []wire.Part {
	list := make([]wire.Part, 0, len(e.Content))
	thoughts := 0
	for _, p := range e.Content {
		switch {
		case (p.Type == "text" || p.Type == "reasoning") && strings.TrimSpace(p.Text) != "":
			list = append(list, wire.Part{Type: p.Type, Text: p.Text})
			if p.Type == "reasoning" {
				thoughts++
			}
		case p.Type == "tool_call":
			list = append(list, wire.Part{Type: p.Type, Call: p.Call, Name: p.Name, Arguments: arguments(p), Invalid: p.Invalid})
		case p.Type == "tool_result":
			list = append(list, wire.Part{Type: p.Type, Call: p.Call, Name: p.Name, Status: p.Status, Text: p.Text})
		}
	}
	if len(list) == thoughts {
		return nil
	}
	return list
}

// arguments are an object in any case.
func arguments(p wire.Part) []byte {
	if len(p.Arguments) == 0 {
		return []byte("{}")
	}
	return p.Arguments
}

// inOrder sorts results by their calls.
func inOrder(calls, results []wire.Part) {
	at := make(map[libctx.Call]int, len(calls))
	for i, p := range calls {
		if p.Type == "tool_call" {
			at[p.Call] = i
		}
	}
	slices.SortStableFunc(results, func(a, b wire.Part) int { return cmp.Compare(at[a.Call], at[b.Call]) })
}
