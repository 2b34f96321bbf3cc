package terminal

import (
	"encoding/base64"
	"strconv"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Types of events. Others can come later and are passed over by who does not
// know them.
const (
	EventOutput = "pty.output"   // Data: what the terminal was given to show
	EventResize = "resize"       // Size: it has this size from here on
	EventExit   = "process.exit" // ExitCode: the program has ended
	EventPolicy = "tsh.policy"   // Rest: a decision of the tool shell about a command
)

// TimeFormat is the form of an event's time, always in UTC.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Event is one line of the event files. Seq counts the events of a terminal
// from 1 and goes on over its restarts.
type Event struct {
	Seq  uint64
	Time time.Time // to the millisecond, UTC
	Type string
	// What belongs to the type.
	Data     []byte         // EventOutput
	ExitCode int            // EventExit
	Size     termwire.Size  // EventResize
	Rest     jsontext.Value // an object of all other members, nil if there are none
}

// line is an event as JSON has it.
type line struct {
	Seq      uint64 `json:"seq"`
	TS       string `json:"ts"`
	Type     string `json:"type"`
	ExitCode *int   `json:"exit_code,omitzero"`
	termwire.Size
	Data *[]byte        `json:"data_b64,omitzero"`
	Rest jsontext.Value `json:",embed"`
}

// Append appends the event's line, with its LF, to dst. One over
// libctx.MaxTermEvent is errdefs.TooBig; Rest that is no object, or holds a
// member of the others, is errdefs.Invalid.
func (e Event) Append(dst []byte) ([]byte, error) {
	if e.Type == EventOutput && e.Rest == nil {
		return sized(dst, appendOutput(dst, e))
	}
	l := line{Seq: e.Seq, TS: e.Time.UTC().Format(TimeFormat), Type: e.Type, Rest: e.Rest}
	switch e.Type {
	case EventOutput:
		l.Data = &e.Data
	case EventExit:
		l.ExitCode = &e.ExitCode
	case EventResize:
		l.Size = e.Size
	}
	text, err := json.Marshal(l, json.Deterministic(true))
	if err != nil {
		return dst, errdefs.New(errdefs.Invalid, "encode event: %w", err)
	}
	return sized(dst, append(append(dst, text...), '\n'))
}

func sized(before, after []byte) ([]byte, error) {
	if n := len(after) - len(before); n > libctx.MaxTermEvent {
		return before, errdefs.New(errdefs.TooBig, "event of %d bytes is over the limit of %d", n, libctx.MaxTermEvent)
	}
	return after, nil
}

// appendOutput is Append for output, without reflection.
func appendOutput(dst []byte, e Event) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, e.Seq, 10)
	dst = append(dst, `,"ts":"`...)
	dst = e.Time.UTC().AppendFormat(dst, TimeFormat)
	dst = append(dst, `","type":"`+EventOutput+`","data_b64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, e.Data)
	return append(dst, "\"}\n"...)
}

// ParseEvent decodes and checks one line of an event file, with or without its
// LF. Errors are errdefs.Invalid. The event shares no memory with the line.
func ParseEvent(text []byte) (Event, error) {
	var l line
	if err := wire.Object(text, &l); err != nil {
		return Event{}, err
	}
	at, err := time.Parse(TimeFormat, l.TS)
	e := Event{Seq: l.Seq, Time: at, Type: l.Type, Rest: l.Rest}
	switch {
	case e.Seq == 0:
		return Event{}, errdefs.New(errdefs.Invalid, "member seq is missing or 0")
	case err != nil:
		return Event{}, errdefs.New(errdefs.Invalid, "member ts is %.40q, not a time", l.TS)
	case e.Type == "":
		return Event{}, errdefs.New(errdefs.Invalid, "member type is missing or empty")
	}
	switch e.Type {
	case EventOutput:
		if l.Data == nil {
			return Event{}, errdefs.New(errdefs.Invalid, "output without data_b64")
		}
		e.Data = *l.Data
	case EventExit:
		if l.ExitCode == nil {
			return Event{}, errdefs.New(errdefs.Invalid, "exit without exit_code")
		}
		e.ExitCode = *l.ExitCode
	case EventResize:
		if err := l.Size.Valid(); err != nil {
			return Event{}, err
		}
		e.Size = l.Size
	}
	return e, nil
}
