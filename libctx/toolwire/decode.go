package toolwire

import (
	"bytes"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
)

// Decode is Read for callers that need the text and the failure only.
func Decode(out []byte, run libctx.Run) (text string, failed *wire.Error, err error) {
	r, err := Read(out, run)
	return r.Text, r.Failed, err
}

// Read decodes the whole output of one call, at most libctx.MaxToolOutput
// bytes. Anything but the frames of the package comment, in their order, each
// with its own members only and with this run, is errdefs.Protocol, and the
// Result is then empty.
func Read(out []byte, run libctx.Run) (Result, error) {
	if len(out) > libctx.MaxToolOutput {
		return Result{}, refuse("output is longer than %d bytes", libctx.MaxToolOutput)
	}
	r := reader{run: string(run)}
	for line := range bytes.Lines(out) {
		if err := r.line(line); err != nil {
			return Result{}, err
		}
	}
	switch {
	case !r.started:
		return Result{}, refuse("there is no start frame")
	case !r.done:
		return Result{}, refuse("there is no done frame: the tool was killed, or ended without an answer")
	}
	var cut bool
	r.result.Text, cut = wire.Clip(r.text.String(), libctx.MaxToolResultHard)
	r.result.Truncated = r.result.Truncated || cut
	return r.result, nil
}

func refuse(format string, args ...any) error {
	return errdefs.New(errdefs.Protocol, "tool output: "+format, args...)
}

// reader goes start, then messages, then error, then done.
type reader struct {
	run           string
	started, done bool
	text          strings.Builder
	result        Result
}

func (r *reader) line(line []byte) error {
	if r.done {
		return refuse("there is a line after done")
	}
	if !bytes.HasSuffix(line, []byte("\n")) {
		return refuse("the last line has no end")
	}
	var head struct {
		Type string `json:"type"`
		Run  string `json:"run"`
	}
	if err := wire.Object(line, &head); err != nil {
		return refuse("%w", err)
	}
	if head.Run != r.run {
		return refuse("%.20q frame belongs to another run", head.Type)
	}
	if r.started == (head.Type == "start") {
		return refuse("the start frame is not the first, or not the only one")
	}
	frame := map[string]func([]byte) error{
		"start": r.start, "message": r.message, "error": r.failure, "done": r.end,
	}[head.Type]
	if frame == nil {
		return refuse("unknown frame %.20q", head.Type)
	}
	return frame(line)
}

// decode is strict: a frame has its own members and no others.
func decode(line []byte, frame any) error {
	if err := wire.Object(line, frame, json.RejectUnknownMembers(true)); err != nil {
		return refuse("%w", err)
	}
	return nil
}

func (r *reader) start(line []byte) error {
	var f start
	if err := decode(line, &f); err != nil {
		return err
	}
	name, err := libctx.ParseTool(f.Tool)
	if err != nil {
		return refuse("%w", err)
	}
	r.started, r.result.Tool = true, name
	return nil
}

func (r *reader) message(line []byte) error {
	var f message
	if err := decode(line, &f); err != nil {
		return err
	}
	if r.result.Failed != nil {
		return refuse("there is a message after the error")
	}
	if f.Role != "tool" || f.Content == nil {
		return refuse("a message is not one of role tool with content")
	}
	for _, part := range f.Content {
		if part.Type != "text" {
			return refuse("a message holds a part of type %.20q", part.Type)
		}
		r.text.WriteString(part.Text)
	}
	return nil
}

func (r *reader) failure(line []byte) error {
	var f failure
	if err := decode(line, &f); err != nil {
		return err
	}
	if r.result.Failed != nil {
		return refuse("there is a second error frame")
	}
	if !codes()[f.Code] {
		return refuse("the code %.20q of the error is not an errno name", f.Code)
	}
	r.result.Failed = &wire.Error{Code: errdefs.Kind(f.Code)}
	r.result.Failed.Type = "error"
	r.result.Failed.Run = libctx.Run(r.run)
	var cut bool
	r.result.Failed.Message, cut = wire.Clip(f.Message, libctx.MaxToolResultHard)
	r.result.Truncated = cut
	return nil
}

func (r *reader) end(line []byte) error {
	var f done
	if err := decode(line, &f); err != nil {
		return err
	}
	want := statusOK
	if r.result.Failed != nil {
		want = statusError
	}
	if f.Status != want {
		return refuse("done says %.20q and the frames before it say %s", f.Status, want)
	}
	if c := f.ExitCode; c != nil && (*c < 0 || *c > 255) {
		return refuse("the exit code %d is not one: 0 to 255", *c)
	}
	r.done = true
	r.result.ExitCode = f.ExitCode
	r.result.Truncated = r.result.Truncated || f.Truncated
	return nil
}
