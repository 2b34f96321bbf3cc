package envelope

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// state is where the output of one step stands; it only moves down this list.
type state uint8

const (
	writing state = iota // frames may come
	yielded              // a tool_call came: nothing may follow
	broken               // a rule was broken: nothing counts any more
)

// event is what one line is to the state machine.
type event uint8

const (
	progress event = iota // delta, reasoning_delta, message, recoverable error
	call                  // a well-formed tool_call
	bad                   // anything else
)

// next is the whole behaviour: a step writes progress frames, then perhaps one
// tool_call, then nothing.
var next = [...][3]state{
	writing: {progress: writing, call: yielded, bad: broken},
	yielded: {progress: broken, call: broken, bad: broken},
	broken:  {progress: broken, call: broken, bad: broken},
}

// Output checks the frames one step writes, a line at a time. It does not know
// how the process ended: the caller also wants exit status 0 and a last line
// that was finished. Not for concurrent use.
type Output struct {
	run   libctx.Run
	state state
	bytes int            // of all lines so far, LFs included
	call  *wire.ToolCall // set in state yielded
	err   error          // set in state broken: the first broken rule
}

// NewOutput checks the output of a step of this run.
func NewOutput(run libctx.Run) *Output { return &Output{run: run} }

// Line takes the next line, without its LF, and returns its frame: *wire.Delta
// ("delta" or "reasoning_delta"), *wire.Message of the assistant, *wire.Error
// with Recoverable set, or *wire.ToolCall, which is the last. None has an event
// id; the host gives those. The frame owns its memory.
//
// Every error is errdefs.Protocol: a line that is not one of these frames, a
// frame of another run, more than MaxAgentFrame bytes in a line or
// MaxAgentOutput in all, anything after a tool_call. The first error is final;
// later calls return it again.
func (o *Output) Line(line []byte) (wire.Frame, error) {
	if o.state == broken {
		return nil, o.err
	}
	frame, err := o.read(line)
	ev := classify(frame, err)
	was := o.state
	o.state = next[was][ev]
	switch {
	case o.state == broken:
		if was == yielded {
			err = errdefs.New(errdefs.Protocol, "agent wrote a frame after its tool call")
		}
		o.call, o.err = nil, err
		return nil, err
	case o.state == yielded:
		o.call = frame.(*wire.ToolCall)
	}
	return frame, nil
}

// ToolCall is the call the step yielded, nil if there is none or if the output
// broke a rule.
func (o *Output) ToolCall() *wire.ToolCall { return o.call }

func classify(f wire.Frame, err error) event {
	if err != nil {
		return bad
	}
	if _, ok := f.(*wire.ToolCall); ok {
		return call
	}
	return progress
}

// read counts and decodes one line.
func (o *Output) read(line []byte) (wire.Frame, error) {
	n := len(line) + 1
	if n > libctx.MaxAgentFrame {
		return nil, errdefs.New(errdefs.Protocol, "agent wrote a frame longer than %d bytes", libctx.MaxAgentFrame)
	}
	if o.bytes += n; o.bytes > libctx.MaxAgentOutput {
		return nil, errdefs.New(errdefs.Protocol, "agent wrote more than %d bytes in one step", libctx.MaxAgentOutput)
	}
	f, err := decodeFrame(line)
	if err != nil {
		return nil, errdefs.New(errdefs.Protocol, "agent wrote an invalid frame: %w", err)
	}
	if got := f.Header().Run; got != o.run {
		return nil, errdefs.New(errdefs.Protocol, "agent wrote a frame of run %.80q, not of this one", got)
	}
	return f, nil
}
