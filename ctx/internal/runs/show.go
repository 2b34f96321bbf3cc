package runs

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// show prints the frames of runs for people: text as it comes, one line for each
// tool call beside it.
type show struct {
	out     *output.Printer
	speak   speech
	thought thought
	calls   map[libctx.Call]call
	shared  bool // text and lines beside it go to one terminal, file or pipe

	refusal string // why the latest call with a result was refused, "" if it was not
}

// call is what is known of a tool call before its result.
type call struct {
	name    libctx.Tool
	args    jsontext.Value
	refused string // why it was not run
}

// maxCalls bounds what is remembered of calls without a result.
const maxCalls = 1024

func newShow(p *output.Printer) *show {
	return &show{
		out: p, speak: speech{out: p}, calls: make(map[libctx.Call]call),
		shared: p.OutTTY && p.ErrTTY || sameFile(p.Out, p.Err),
	}
}

// sameFile reports whether two streams are one terminal, file or pipe.
func sameFile(a, b io.Writer) bool {
	type file interface{ Stat() (fs.FileInfo, error) }
	one, ok := a.(file)
	other, same := b.(file)
	if !ok || !same {
		return false
	}
	if x, err := one.Stat(); err == nil {
		y, err := other.Stat()
		return err == nil && os.SameFile(x, y)
	}
	return false
}

// frame shows one frame. Frames that say nothing to people are passed over.
func (s *show) frame(f wire.Frame) {
	if _, more := f.(*wire.Delta); !more {
		s.thought.end(s.detail)
	}
	switch f := f.(type) {
	case *wire.Queued:
		s.note(fmt.Sprintf("queued: %d before this one", f.Position))
	case *wire.Delta:
		if f.Type == "delta" {
			s.thought.end(s.detail)
			s.speak.piece(f.Text)
		} else if s.out.Verbose {
			s.thought.piece(f.Text, s.detail)
		}
	case *wire.Message:
		if f.Type == "reasoning_message" {
			s.thought.whole(text(f.Content, "reasoning"), s.detail)
			return
		}
		if s.speak.message(text(f.Content, "text"), f.Truncated, f.Bytes) {
			s.note(fmt.Sprintf("the message of %s is shortened here; ctx agent output prints all of it", render.Size(int64(f.Bytes))))
		}
	case *wire.ToolCall:
		if len(s.calls) < maxCalls {
			s.calls[f.Call] = call{name: f.Name, args: f.Arguments.Clone()}
		}
	case *wire.ToolPolicy:
		c, known := s.calls[f.Call]
		if !known { // a call of an earlier run, whose host died, is made again
			c.name = f.Name
		}
		if !f.Allowed {
			c.refused = fmt.Sprintf("%s (%s)", f.Reason, f.Code)
		}
		if known || len(s.calls) < maxCalls {
			s.calls[f.Call] = c
		}
	case *wire.ApprovalRequest:
		s.note(render.Asked(f))
	case *wire.ApprovalResult:
		s.note(render.Answered(f))
	case *wire.ToolResult:
		s.result(f)
	case *wire.Usage:
		s.detail(fmt.Sprintf("tokens: %d input, %d cache read, %d cache write, %d output",
			f.InputTokens, f.CachedTokens, f.CacheWriteTokens, f.OutputTokens))
	case *wire.UsageUncertain:
		s.detail("tokens: unknown: " + f.Reason)
	case *wire.Lifecycle:
		s.detail("model: " + f.State)
	case *wire.CandidateError:
		s.note(render.Passed(f))
	case *wire.Context:
		s.note(render.Context(f))
	case *wire.Changes:
		s.note(render.Changes(f))
		for _, line := range render.Alarms(f) {
			s.warn(line)
		}
	case *wire.HookFailed:
		s.note(render.HookFailed(f))
	case *wire.PromptChanged:
		s.note(render.PromptChanged(f))
	case *wire.Delivered:
		s.note("told: " + render.Clip(inert.Line(f.Text), 200))
	case *wire.Error:
		if f.Recoverable {
			s.note("agent: " + f.Message)
		}
	case *wire.Done:
		s.speak.newline()
		clear(s.calls)
	}
}

func (s *show) result(f *wire.ToolResult) {
	c := s.calls[f.Call]
	delete(s.calls, f.Call)
	s.refusal = c.refused
	if c.name == "" {
		c.name = f.Name
	}
	if c.refused != "" {
		s.warn(c.line() + " … refused: " + c.refused)
		return
	}
	size := int64(len(f.Content))
	if f.Bytes > 0 {
		size = int64(f.Bytes)
	}
	line := c.line() + " … "
	if f.Status != "ok" {
		line += "failed "
	}
	if f.ExitCode != nil && *f.ExitCode != 0 {
		line += fmt.Sprintf("(exit %d) ", *f.ExitCode)
	}
	s.note(line + render.Size(size) + " " + render.Duration(time.Duration(f.DurationMS)*time.Millisecond))
}

// line names the call: "tool fs.read README.md". What tsh routes is named by
// itself, where its words are known.
func (c call) line() string {
	words := []string{"tool"}
	args := render.Arguments(c.args, 60)
	if c.name != "tsh" || args == "" {
		words = append(words, string(c.name))
	}
	if args != "" {
		words = append(words, args)
	}
	return strings.Join(words, " ")
}

// note and warn speak beside the text; where both go to one place, the text's line
// is ended first.
func (s *show) note(line string) {
	if !s.out.Quiet {
		s.warn(line)
	}
}

// detail is a note for --verbose.
func (s *show) detail(line string) {
	if s.out.Verbose {
		s.warn(line)
	}
}

func (s *show) warn(line string) {
	if s.shared {
		s.speak.newline()
	}
	s.out.Warn(line)
}

// text is the parts of that type, one after the other.
func text(parts []wire.Part, kind string) string {
	var b strings.Builder
	for i := range parts {
		if parts[i].Type == kind {
			b.WriteString(parts[i].Text)
		}
	}
	return b.String()
}
