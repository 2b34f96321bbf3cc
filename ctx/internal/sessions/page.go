package sessions

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// page prints a conversation for people.
type page struct {
	*caller.Caller
	HistoryOptions
	notes []note
	runs  map[libctx.Run]bool // of which something was printed
}

// note is what people want to know of a run beside what was said.
type note struct {
	seq  int64
	run  libctx.Run
	text string
	lone bool // also of a run of which nothing else is shown, as a tool operation
}

// notes reads them from the whole ledger; that of damage is reported elsewhere.
func notes(r *session.Reader) (list []note, err error) {
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		n := note{}
		switch rec := line.Record.(type) {
		case *session.Fact:
			n.run = rec.Run
			switch f := rec.Frame.(type) {
			case *wire.CandidateError:
				n.text = render.Passed(f)
			case *wire.Context:
				n.text = render.Context(f)
			case *wire.HookFailed:
				n.text = render.HookFailed(f)
			case *wire.PromptChanged:
				n.text, n.lone = render.PromptChanged(f), true
			case *wire.Changes:
				n.text, n.lone = strings.Join(append([]string{render.Changes(f)}, render.Alarms(f)...), "\n"), f.Listed+f.Executable > 0
			case *wire.ApprovalRequest:
				n.text, n.lone = render.Asked(f), true
			case *wire.ApprovalResult:
				n.text, n.lone = render.Answered(f), true
			}
		case *session.Checkpoint:
			n.run, n.text = rec.Run, ended(rec)
		}
		if n.text != "" {
			n.seq = line.Record.Header().Seq
			list = append(list, n)
		}
	}
}

// ended says how a run ended that did not end well.
func ended(c *session.Checkpoint) string {
	var what string
	switch c.Outcome {
	case session.Completed:
		return ""
	case session.Cancelled:
		return "the run was cancelled"
	case session.Interrupted:
		return "the run was interrupted: its host died"
	case session.MaxTurns:
		what = "the run was ended"
	default:
		what = "the run failed"
	}
	if c.Message != "" {
		what += ": " + c.Message
	}
	if c.Code != "" {
		what += " (" + string(c.Code) + ")"
	}
	return what
}

// until prints the notes that come before a record.
func (p *page) until(seq int64) {
	for len(p.notes) > 0 && p.notes[0].seq < seq {
		if n := p.notes[0]; n.lone || p.runs[n.run] {
			p.aside("note", n.text)
		}
		p.notes = p.notes[1:]
	}
}

// entry prints one entry of the conversation.
func (p *page) entry(e *session.Entry) {
	if e.Kind != session.KindMessage {
		return
	}
	if p.JSON {
		_ = p.Object(e)
		return
	}
	p.until(e.Seq)
	p.runs[e.Run] = true
	for i := range e.Content {
		switch c := &e.Content[i]; c.Type {
		case "text":
			p.say(speaker(e), c.Text)
		case "reasoning":
			if p.Reasoning {
				p.aside("reasoning", c.Text)
			}
		case "tool_call":
			p.done("call", called(c))
		case "tool_result":
			who := "result"
			if c.Name != "" {
				who += " " + inert.Line(string(c.Name))
			}
			p.done(who, p.result(c))
		}
	}
}

// speaker is who said an entry. What was said into a run that went on says how.
func speaker(e *session.Entry) string {
	if e.Origin == "" {
		return e.Role
	}
	return e.Role + " (" + inert.Line(strings.ReplaceAll(e.Origin, "_", "-")) + ")"
}

// called is a call on one line.
func called(c *wire.Part) string {
	line := string(c.Name)
	if args := render.Arguments(c.Arguments, 200); args != "" {
		line += " " + args
	}
	if c.Invalid != "" {
		line += " (not well formed: " + render.Clip(inert.Line(c.Invalid), 100) + ")"
	}
	return line
}

// Of a result that is longer, this much is shown.
const (
	resultLines   = 8
	resultColumns = 200
)

func (p *page) result(c *wire.Part) string {
	text := inert.Text(c.Text)
	if !p.Full {
		text = render.Head(text, resultLines, resultColumns, "--full shows all")
	}
	var how string
	switch {
	case c.ExitCode != nil && *c.ExitCode != 0:
		how = fmt.Sprintf("(exit %d) ", *c.ExitCode)
	case c.Status != "" && c.Status != "ok":
		how = "(failed) "
	}
	return how + text
}

// say prints what somebody said, done what was done, and aside what is neither.
func (p *page) say(who, text string)   { p.print(who, text, bold, false) }
func (p *page) done(who, text string)  { p.print(who, text, cyan, false) }
func (p *page) aside(who, text string) { p.print(who, text, dim, true) }

const (
	plain = "\x1b[0m"
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	cyan  = "\x1b[36m"
)

// print prints one piece with whose it is: the first line behind the name, the
// others below it. The name has a style, or all of it. Styles end with their line:
// a pager may show any line first.
func (p *page) print(who, text, style string, all bool) {
	who += ":"
	text = strings.ReplaceAll(strings.TrimRight(inert.Text(text), "\n"), "\n", "\n  ")
	switch {
	case !p.Color:
	case all:
		who, text = style+who, strings.ReplaceAll(text, "\n", plain+"\n"+style)+plain
	default:
		who = style + who + plain
	}
	_, _ = io.WriteString(p, who+" "+text+"\n") // the printer keeps the error
}
