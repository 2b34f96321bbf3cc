package tool

import (
	"fmt"
	"strings"
)

// Output is what a tool has to say: the text a model sees, notes about it, and
// facts of the call. Tools bound what they write themselves, to
// libctx.MaxToolResult bytes with the notes; Reserve of them is for the notes.
type Output struct {
	text      strings.Builder
	notes     []string
	exit      *int
	truncated bool
}

// Reserve is the number of bytes that a tool leaves free below
// libctx.MaxToolResult for its notes.
const Reserve = 1 << 10

// Write adds to the text; it never fails.
func (o *Output) Write(p []byte) (int, error) { return o.text.Write(p) }

// WriteString adds to the text; it never fails.
func (o *Output) WriteString(s string) (int, error) { return o.text.WriteString(s) }

// Len is the number of bytes of text so far.
func (o *Output) Len() int { return o.text.Len() }

// Notef adds a line about the text: what of it is shown and how to go on. A
// person gets notes on standard error, so that standard output is the exact
// text; a model gets them in brackets below the text. A note past Reserve bytes
// of notes is dropped.
func (o *Output) Notef(format string, args ...any) {
	note := "[" + fmt.Sprintf(format, args...) + "]"
	used := len(note) + 2
	for _, n := range o.notes {
		used += len(n) + 1
	}
	if used <= Reserve {
		o.notes = append(o.notes, note)
	}
}

// Truncated records that the text is not everything there was.
func (o *Output) Truncated() { o.truncated = true }

// IsTruncated says whether it is.
func (o *Output) IsTruncated() bool { return o.truncated }

// Exit records the exit code of the command that the tool ran.
func (o *Output) Exit(code int) { o.exit = &code }

// ExitCode is that exit code, nil if the tool ran no command.
func (o *Output) ExitCode() *int { return o.exit }

// Text is the text alone.
func (o *Output) Text() string { return o.text.String() }

// Notes are the notes, one line each, with their brackets.
func (o *Output) Notes() []string { return o.notes }

// Content is text and notes together, as a model sees them.
func (o *Output) Content() string {
	text := o.text.String()
	if len(o.notes) == 0 {
		return text
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + strings.Join(o.notes, "\n")
}
