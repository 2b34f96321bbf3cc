package debug

import (
	"slices"
	"strings"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/toolshell/command"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
)

// turn is what one answer of debug/tools says and calls.
type turn struct {
	say   []string
	calls []call
}

// tools makes the lines of the last input into calls, a turn an answer, and then
// reports the results.
func tools(g *modelwire.Generate, out model.Sink) error {
	at := lastUser(g.Messages)
	if at < 0 {
		return say(g, out, "", nil)
	}
	turns, err := parse(text(g.Messages[at].Content))
	if err != nil {
		return invalid("%v", err)
	}
	done := 0
	for _, m := range g.Messages[at:] {
		if m.Role == "assistant" {
			done++
		}
	}
	may := len(g.Tools) > 0 && g.ToolChoice != "none"
	if may && done < len(turns) {
		t := turns[done]
		return say(g, out, strings.Join(t.say, "\n"), t.calls)
	}
	return say(g, out, report(g.Messages[at:]), nil)
}

// parse reads the lines of an input; those that are none of ours say nothing.
func parse(input string) ([]turn, error) {
	var turns []turn
	fresh := true // the next call or text begins a turn
	current := func() *turn {
		if fresh {
			turns = append(turns, turn{})
			fresh = false
		}
		return &turns[len(turns)-1]
	}
	for line := range strings.Lines(input) {
		word, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		rest = strings.TrimSpace(rest)
		if !ok {
			continue
		}
		switch word {
		case "run":
			list, err := command.Split(rest)
			if err != nil {
				return nil, err
			}
			t := current()
			t.calls = append(t.calls, call{"tsh", words(list)})
		case "call":
			name, arguments, _ := strings.Cut(rest, " ")
			t := current()
			t.calls = append(t.calls, call{name, strings.TrimSpace(arguments)})
		case "say":
			t := current()
			t.say = append(t.say, rest)
		case "then":
			fresh = true
		}
	}
	// A turn that calls nothing would end the run before the next one.
	last := slices.IndexFunc(turns, func(t turn) bool { return len(t.calls) == 0 })
	if last >= 0 {
		turns = turns[:last+1]
	}
	return turns, nil
}

// How much of a result the report shows.
const (
	shownLines = 5
	shownBytes = 400
)

// report says how the calls since the input went.
func report(list []modelwire.Message) string {
	var b strings.Builder
	names := map[libctx.Call]string{}
	for _, m := range list {
		for _, p := range m.Content {
			switch p.Type {
			case "tool_call":
				names[p.Call] = called(p)
			case "tool_result":
				if b.Len() > 0 {
					b.WriteByte('\n')
				}
				b.WriteString(names[p.Call])
				if p.Status == "error" {
					b.WriteString(" failed")
				}
				b.WriteString(": " + head(p.Text))
			}
		}
	}
	if b.Len() == 0 {
		return "There was nothing to run."
	}
	return b.String()
}

// called is the name of the tool that a call means: of tsh the tool inside.
func called(p wire.Part) string {
	var inside struct {
		Args []string `json:"args"`
	}
	switch {
	case p.Name == "":
		return "a call"
	case p.Name == "tsh" && json.Unmarshal(p.Arguments, &inside) == nil && len(inside.Args) > 0:
		return inside.Args[0]
	}
	return string(p.Name)
}

func head(text string) string {
	lines := strings.SplitN(text, "\n", shownLines+1)
	more := len(lines) > shownLines && lines[shownLines] != ""
	short := strings.TrimRight(strings.Join(lines[:min(len(lines), shownLines)], "\n"), "\n")
	if n := cut(short, shownBytes); n < len(short) {
		short, more = short[:n], true
	}
	if more {
		short += " …"
	}
	return short
}
