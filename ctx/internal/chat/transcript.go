package chat

import (
	"fmt"
	"strings"
	"time"

	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// block is something to print: what the assistant said, whole, or a line about
// the work.
type block struct {
	answer bool
	loud   bool // also with --quiet
	text   string
}

// transcript makes blocks of the frames of runs, and keeps what can be asked for
// later. Deltas are collected and shown with their message only.
type transcript struct {
	calls   map[libctx.Call]call
	shelf   shelf
	made    int             // calls
	pieces  strings.Builder // since the last message, at most libctx.MaxFrame
	total   int             // bytes of all pieces
	tokens  int64           // of the run
	model   string
	doing   string // of the run, for the progress line
	failure *wire.Error
}

// call is a tool call without its result.
type call struct {
	number  int // from 1 on, in the order in which they were made
	name    libctx.Tool
	args    jsontext.Value
	refused string
}

// maxCalls bounds what is remembered of calls without a result.
const maxCalls = 1024

// begin forgets the run before.
func (t *transcript) begin() {
	t.calls = map[libctx.Call]call{}
	t.pieces.Reset()
	t.total, t.tokens, t.doing, t.failure = 0, 0, "waiting", nil
}

// frame takes a frame and returns what there is to print.
func (t *transcript) frame(f wire.Frame) []block {
	switch f := f.(type) {
	case *wire.Queued:
		t.doing = "waiting for another run"
		return note(fmt.Sprintf("queued: %d before this one", f.Position))
	case *wire.Start:
		t.doing = "thinking"
	case *wire.Delta:
		t.delta(f)
	case *wire.Message:
		t.doing = "thinking"
		return t.message(f)
	case *wire.ToolCall:
		if len(t.calls) < maxCalls {
			t.made++
			t.calls[f.Call] = call{number: t.made, name: f.Name, args: f.Arguments.Clone()}
		}
		t.doing = label(f.Name, f.Arguments, 24)
	case *wire.ToolPolicy:
		c, known := t.calls[f.Call]
		if !known && len(t.calls) < maxCalls { // a call of an earlier run, whose host died, is made again
			t.made++
			c.number, c.name, known = t.made, f.Name, true
		}
		if !f.Allowed {
			c.refused = fmt.Sprintf("%s (%s)", f.Reason, f.Code)
		}
		if known {
			t.calls[f.Call] = c
		}
	case *wire.ApprovalResult:
		return []block{{loud: true, text: render.Answered(f)}}
	case *wire.ToolResult:
		t.doing = "thinking"
		return t.result(f)
	case *wire.Usage:
		t.tokens += f.InputTokens + f.CachedTokens + f.CacheWriteTokens + f.OutputTokens
	case *wire.Lifecycle:
		t.doing = "model: " + f.State
	case *wire.CandidateError:
		return note(render.Passed(f))
	case *wire.Context:
		return note(render.Context(f))
	case *wire.Changes:
		blocks := note(render.Changes(f))
		for _, line := range render.Alarms(f) {
			blocks = append(blocks, block{loud: true, text: line})
		}
		return blocks
	case *wire.HookFailed:
		return note(render.HookFailed(f))
	case *wire.PromptChanged:
		return note(render.PromptChanged(f))
	case *wire.Delivered:
		return note("told: " + render.Clip(inert.Line(f.Text), 200))
	case *wire.Error:
		if f.Recoverable {
			return note("agent: " + f.Message)
		}
		t.failure = f
	case *wire.Done:
		return t.done(f)
	}
	return nil
}

func (t *transcript) delta(f *wire.Delta) {
	if f.Type != "delta" {
		t.doing = "thinking"
		return
	}
	t.doing = "writing"
	t.total += len(f.Text)
	if t.pieces.Len() < libctx.MaxFrame {
		t.pieces.WriteString(f.Text)
	}
}

// message is what was said, whole if the pieces or the frame have it all.
func (t *transcript) message(f *wire.Message) []block {
	var b strings.Builder
	for i := range f.Content {
		if f.Content[i].Type == "text" {
			b.WriteString(f.Content[i].Text)
		}
	}
	text, short := b.String(), f.Truncated
	if short && t.total == f.Bytes && t.pieces.Len() == t.total {
		text, short = t.pieces.String(), false
	}
	t.pieces.Reset()
	t.total = 0
	if strings.TrimSpace(text) == "" {
		return nil
	}
	blocks := []block{{answer: true, text: text}}
	if short {
		blocks = append(blocks, note(fmt.Sprintf("the message of %s is shortened here; ctx agent output prints all of it", render.Size(int64(f.Bytes))))...)
	}
	return blocks
}

func (t *transcript) result(f *wire.ToolResult) []block {
	c, known := t.calls[f.Call]
	delete(t.calls, f.Call)
	if !known {
		t.made++
		c.number = t.made
	}
	if c.name == "" {
		c.name = f.Name
	}
	name := label(c.name, c.args, 60)
	if c.refused != "" {
		return []block{{loud: true, text: fmt.Sprintf("tool %d %s … refused: %s", c.number, name, c.refused)}}
	}
	size := int64(max(f.Bytes, len(f.Content)))
	t.shelf.put(shelved{c.number, name, f.Content, size > int64(len(f.Content)) || f.Truncated})
	line := fmt.Sprintf("tool %d %s … ", c.number, name)
	if f.Status != "ok" {
		line += "failed "
	}
	if f.ExitCode != nil && *f.ExitCode != 0 {
		line += fmt.Sprintf("(exit %d) ", *f.ExitCode)
	}
	return note(line + render.Size(size) + " " + render.Duration(time.Duration(f.DurationMS)*time.Millisecond))
}

// done is the end of a run: nothing, unless it did not end well. What was
// written of an answer that never became a message is not lost.
func (t *transcript) done(f *wire.Done) []block {
	var blocks []block
	if f.Status != "ok" && strings.TrimSpace(t.pieces.String()) != "" {
		blocks = append(blocks, block{answer: true, text: t.pieces.String()})
	}
	t.pieces.Reset()
	t.total = 0
	switch {
	case f.Status == "ok":
	case f.Status == "cancelled":
		blocks = append(blocks, block{loud: true, text: "cancelled"})
	case t.failure != nil:
		blocks = append(blocks, block{loud: true, text: "the run failed: " + t.failure.Message})
	default:
		blocks = append(blocks, block{loud: true, text: "the run failed"})
	}
	return blocks
}

// progress is what the run does, on one line of at most columns columns.
func (t *transcript) progress(elapsed time.Duration, columns int) string {
	parts := []string{fmt.Sprintf("%d s", int(elapsed.Seconds()))}
	if elapsed >= time.Minute {
		parts[0] = render.Duration(elapsed)
	}
	if t.doing != "" {
		parts = append(parts, t.doing)
	}
	if t.tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", t.tokens))
	}
	if t.model != "" {
		parts = append(parts, t.model)
	}
	return render.Clip(inert.Line(strings.Join(parts, " · ")), columns)
}

// label names a call: "fs.read README.md". What tsh routes is named by itself,
// where its words are known.
func label(name libctx.Tool, args jsontext.Value, columns int) string {
	var words []string
	text := render.Arguments(args, columns)
	if name != "tsh" || text == "" {
		words = append(words, string(name))
	}
	if text != "" {
		words = append(words, text)
	}
	return strings.Join(words, " ")
}

func note(text string) []block { return []block{{text: text}} }
