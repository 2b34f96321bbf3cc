package terminals

import (
	"strconv"
	"time"
	"unicode/utf8"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// recorder writes an asciicast of version 2.
type recorder struct {
	from    *caller.Caller
	title   string
	started string // size at the latest start, for a record whose beginning is gone

	begun bool
	first time.Time
	at    time.Duration // of the latest event: time never goes back
	size  termwire.Size
	cut   []byte // the beginning of a character
}

// header is the first line.
type header struct {
	Version   int               `json:"version"`
	Width     int               `json:"width"`
	Height    int               `json:"height"`
	Timestamp int64             `json:"timestamp,omitzero"`
	Title     string            `json:"title"`
	Env       map[string]string `json:"env"`
}

func (r *recorder) begin(e terminal.Event) error {
	r.begun, r.first = true, e.Time
	switch size, err := termwire.ParseSize(r.started); {
	case e.Type == terminal.EventResize:
		r.size = e.Size
	case err == nil:
		r.size = size
	default:
		r.size = termwire.DefaultSize
	}
	h := header{Version: 2, Width: r.size.Cols, Height: r.size.Rows, Title: r.title, Env: map[string]string{"TERM": "xterm-256color"}}
	if !e.Time.IsZero() {
		h.Timestamp = e.Time.Unix()
	}
	return r.from.Object(h)
}

// event writes what an asciicast can say of an event.
func (r *recorder) event(e terminal.Event) error {
	if !r.begun {
		if err := r.begin(e); err != nil {
			return err
		}
	}
	r.at = max(r.at, e.Time.Sub(r.first))
	switch e.Type {
	case terminal.EventResize:
		if e.Size == r.size {
			return nil
		}
		r.size = e.Size
		return r.line("r", e.Size.String())
	case terminal.EventOutput:
		text := append(r.cut, e.Data...)
		whole := len(text) - unfinished(text)
		r.cut = append([]byte(nil), text[whole:]...)
		if whole == 0 {
			return nil
		}
		return r.line("o", valid(text[:whole]))
	}
	return nil
}

// finish writes what is left of a character that was never finished, and the
// header of a terminal that showed nothing.
func (r *recorder) finish() error {
	if !r.begun {
		return r.begin(terminal.Event{})
	}
	if len(r.cut) == 0 {
		return nil
	}
	return r.line("o", valid(r.cut))
}

func (r *recorder) line(code, data string) error {
	seconds := jsontext.Value(strconv.FormatFloat(r.at.Seconds(), 'f', 3, 64))
	line, err := wire.Marshal([]any{seconds, code, data})
	if err != nil {
		return err
	}
	return r.from.Line(line)
}

// unfinished is the number of bytes at the end of b that are the beginning of a
// character.
func unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// valid is b with U+FFFD for each byte that is no text.
func valid(b []byte) string {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		c, n := utf8.DecodeRune(b)
		out, b = utf8.AppendRune(out, c), b[n:]
	}
	return string(out)
}
