package emit

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/wire"
)

// of is the frame of a line if it is about a tool call, else nil.
func of(line []byte) wire.Frame {
	if !bytes.HasPrefix(line, []byte(`{"type":"tool_`)) {
		return nil
	}
	f, err := wire.DecodeFrame(line)
	if err != nil {
		return nil
	}
	switch f.(type) {
	case *wire.ToolCall, *wire.ToolPolicy, *wire.ToolResult:
		return f
	}
	return nil
}

// Escapes that set text off, and mark, which stands in front of every line.
const (
	reset = "\x1b[0m"
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	red   = "\x1b[31m"
	mark  = "\x1b[36m┃" + reset + " "
)

// shower makes text of the frames of one run. The text is whole lines, inert but
// for the escapes above.
type shower struct {
	agent libctx.Agent
	calls map[libctx.Call]*call // those that have no result
}

// call is one call between its frames.
type call struct {
	line    string // its command line
	tool    libctx.Tool
	begun   bool // which has been shown
	refused bool
}

// maxCalls bounds the calls that are remembered: those of one answer and more.
const maxCalls = 4 * libctx.MaxTurnCalls

// append adds what is shown of a frame. A call is shown when it is decided, since
// that is when it begins.
func (s *shower) append(dst []byte, f wire.Frame) []byte {
	switch f := f.(type) {
	case *wire.ToolCall:
		if s.calls == nil {
			s.calls = map[libctx.Call]*call{}
		}
		if len(s.calls) < maxCalls {
			s.calls[f.Call] = &call{tool: f.Name, line: clip(command(f.Name, f.Arguments), libctx.MaxEmitCommand)}
		}
	case *wire.ToolPolicy:
		c := s.find(f.Call, f.Name)
		if f.Via != "" {
			c.tool = f.Name
		}
		dst = s.begin(dst, c)
		if c.refused = !f.Allowed; c.refused {
			why := f.Code
			if f.Reason != "" {
				why += ": " + f.Reason
			}
			dst = fmt.Appendf(dst, "%s%srefused%s %s%s%s\n", mark, red, reset, dim, clip(inert.Line(why), libctx.MaxEmitCommand), reset)
		}
	case *wire.ToolResult:
		c := s.find(f.Call, f.Name)
		delete(s.calls, f.Call)
		if c.refused { // its result is a sentence for the model
			return dst
		}
		dst = s.begin(dst, c)
		dst = appendOutput(dst, f.Content, f.Truncated)
		dst = append(append(append(dst, mark...), status(c, f)...), '\n')
	}
	return dst
}

// find is the call with this id; one that was never seen is known by its tool.
func (s *shower) find(id libctx.Call, name libctx.Tool) *call {
	if c := s.calls[id]; c != nil {
		return c
	}
	if name == "" {
		name = libctx.Tool(id)
	}
	return &call{tool: name, line: inert.Line(string(name))}
}

// begin shows the command line of a call, once.
func (s *shower) begin(dst []byte, c *call) []byte {
	if c.begun {
		return dst
	}
	c.begun = true
	return fmt.Appendf(dst, "%s%s%s%s %s\n", mark, bold, s.agent, reset, c.line)
}

// missed says that frames found no room in the queue.
func (s *shower) missed(dst []byte, n int) []byte {
	if n == 0 {
		return dst
	}
	return fmt.Appendf(dst, "%s%s… %d more lines about calls are not shown%s\n", mark, dim, n, reset)
}

// status is how a call ended, and how long it took.
func status(c *call, f *wire.ToolResult) string {
	text := dim + "ok"
	if f.Status != "ok" {
		text = red + inert.Line(f.Status) + reset + dim
	}
	if f.ExitCode != nil && *f.ExitCode != 0 {
		text += ", exit " + strconv.Itoa(*f.ExitCode)
	}
	d := time.Duration(f.DurationMS) * time.Millisecond
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	}
	return text + ", " + d.String() + " " + inert.Line(string(c.tool)) + reset
}

// appendOutput adds the first lines of what a tool said, and how many there are
// besides. More says that the text was cut before it came here.
func appendOutput(dst []byte, text string, more bool) []byte {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return dst
	}
	shown, size, left := 0, 0, 0
	for line := range strings.SplitSeq(text, "\n") {
		line = inert.Text(strings.TrimSuffix(line, "\r"))
		if left > 0 || shown == libctx.MaxEmitLines || size >= libctx.MaxEmitBytes {
			left++
			continue
		}
		line = clip(line, libctx.MaxEmitBytes-size)
		dst = append(append(append(dst, mark...), line...), '\n')
		shown++
		size += len(line) + 1
	}
	switch {
	case more:
		return fmt.Appendf(dst, "%s%s… more lines%s\n", mark, dim, reset)
	case left == 1:
		return fmt.Appendf(dst, "%s%s… 1 more line%s\n", mark, dim, reset)
	case left > 0:
		return fmt.Appendf(dst, "%s%s… %d more lines%s\n", mark, dim, left, reset)
	}
	return dst
}

// clip shortens an inert text to about max bytes, at a character.
func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && s[max]&0xC0 == 0x80 {
		max--
	}
	return s[:max] + "…"
}
