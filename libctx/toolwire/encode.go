package toolwire

import (
	"io"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// Encoder writes the frames of one call. It is for one goroutine. The start
// frame goes out with Start, or with the first other frame; after Done it is finished.
// Errors of its methods are those of the writer, or errdefs.TooBig and
// errdefs.Internal for a use that Decode would refuse.
type Encoder struct {
	w         io.Writer
	run, tool string
	started   bool
	failed    bool
	finished  bool
	size      int // bytes written
	text      int // bytes of text in the messages
	exit      *int
	truncated bool
}

// NewEncoder writes to w, which stays the caller's, the frames of a call of
// tool within run. Run may be empty.
func NewEncoder(w io.Writer, run, tool string) *Encoder {
	return &Encoder{w: w, run: run, tool: tool}
}

// Start writes the start frame now, before a call that may take long or end
// badly: what is read then is that a tool began and did not answer.
func (e *Encoder) Start() error {
	if e.started {
		return nil
	}
	return e.write(nil)
}

// Text adds to the result. Bytes that are not valid UTF-8 are replaced. All
// text of a call is at most libctx.MaxToolResultHard bytes.
func (e *Encoder) Text(s string) error {
	s = wire.Clean([]byte(s))
	if e.text += len(s); e.text > libctx.MaxToolResultHard {
		return errdefs.New(errdefs.TooBig, "result is longer than %d bytes", libctx.MaxToolResultHard)
	}
	if s == "" {
		return nil
	}
	return e.write(message{"message", e.run, "tool", []text{{"text", s}}})
}

// Fail says that the call failed, and why, in words a model can act on; at most
// libctx.MaxToolResultHard bytes. It is called at most once.
func (e *Encoder) Fail(code errdefs.Kind, message string) error {
	if e.failed {
		return errdefs.New(errdefs.Internal, "second error frame of one call")
	}
	message, _ = wire.Clip(wire.Clean([]byte(message)), libctx.MaxToolResultHard)
	if err := e.write(failure{"error", e.run, string(code), message}); err != nil {
		return err
	}
	e.failed = true
	return nil
}

// Exit sets the exit code that Done carries: that of a command the tool ran, 0 to
// 255.
func (e *Encoder) Exit(code int) { e.exit = &code }

// Truncated makes Done say that the text is not everything there was.
func (e *Encoder) Truncated() { e.truncated = true }

// Done ends the call: with status error if Fail was called, else ok.
func (e *Encoder) Done() error {
	status := statusOK
	if e.failed {
		status = statusError
	}
	if err := e.write(done{"done", e.run, status, e.exit, e.truncated}); err != nil {
		return err
	}
	e.finished = true
	return nil
}

func (e *Encoder) write(frame any) error {
	if e.finished {
		return errdefs.New(errdefs.Internal, "frame after done")
	}
	var out []byte
	if !e.started {
		line, err := wire.Marshal(start{"start", e.run, e.tool})
		if err != nil {
			return err
		}
		out = line
	}
	if frame != nil {
		line, err := wire.Marshal(frame)
		if err != nil {
			return err
		}
		out = append(out, line...)
	}
	if e.size += len(out); e.size > libctx.MaxToolOutput {
		return errdefs.New(errdefs.TooBig, "output of the tool is longer than %d bytes", libctx.MaxToolOutput)
	}
	if _, err := e.w.Write(out); err != nil {
		return err
	}
	e.started = true
	return nil
}
