package modelwire

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// Stream checks the order of the frames of one answer. The zero value is for a
// generate; Op names another operation. It is used by both sides: ctxmodel holds
// its drivers to it, clients hold ctxmodel to it.
type Stream struct {
	Op    string
	state state
	usage bool // has been said
	calls [libctx.MaxModelParts]callState
	n     int   // frames so far
	text  int64 // bytes of provisional text so far
}

type callState uint8

const (
	callNone callState = iota
	callOpen
	callEnded
)

type state uint8

const (
	fresh  state = iota // nothing but lifecycle
	begun               // after start
	said                // after message, or after a verdict or found server
	failed              // after error
	over                // after done
	none                // not allowed
)

// orders says for each operation and kind of frame what follows in each state.
var orders = map[string]map[string][over]state{
	"generate": {
		//                  fresh   begun   said    failed
		"lifecycle":       {fresh, begun, none, none},
		"start":           {begun, none, none, none},
		"delta":           {none, begun, none, none},
		"reasoning_delta": {none, begun, none, none},
		"call_start":      {none, begun, none, none},
		"call_delta":      {none, begun, none, none},
		"call_end":        {none, begun, none, none},
		"message":         {none, said, none, none},
		"usage":           {none, begun, said, none},
		"error":           {failed, failed, failed, none},
		"done":            {none, none, over, over},
	},
	"probe": {
		"verdict": {said, none, none, none},
		"error":   {failed, none, none, none},
		"done":    {none, none, over, over},
	},
	"detect": {
		"found": {begun, begun, none, none},
		"error": {failed, failed, none, none},
		"done":  {over, over, none, over},
	},
}

// Next decodes the next line of the answer. A frame that may not come now is
// errdefs.Protocol; the stream is then of no further use. Frames of unknown
// kinds may come anywhere before done.
func (s *Stream) Next(text []byte) (Frame, error) {
	f, err := DecodeFrame(text)
	if err != nil {
		return nil, err
	}
	if err := s.Follow(f); err != nil {
		return nil, err
	}
	return f, nil
}

// Follow is Next for a frame that is decoded already, or not yet encoded.
func (s *Stream) Follow(f Frame) error {
	refuse := func(why string) error {
		return errdefs.New(errdefs.Protocol, "frame %d of the answer, %.80q: %s", s.n+1, f.Kind(), why)
	}
	if s.state == over {
		return refuse("comes after done")
	}
	// The frames that end an answer have room in any case.
	_, failure := f.(*Error)
	done, last := f.(*Done)
	if s.n >= libctx.MaxModelEvents && !failure && !last {
		return errdefs.New(errdefs.TooBig, "the answer has more than %d frames", libctx.MaxModelEvents)
	}
	if _, unknown := f.(*Other); unknown {
		s.n++
		return nil
	}
	op := s.Op
	if op == "" {
		op = "generate"
	}
	row, ok := orders[op][f.Kind()]
	next := none
	if ok {
		next = row[s.state]
	}
	switch {
	case next == none:
		return refuse("does not belong there")
	case last && (done.Status == "error") != (s.state == failed):
		return refuse("status " + done.Status + " is not how it went")
	}
	if err := s.inside(f, refuse); err != nil {
		return err
	}
	s.state = next
	s.n++
	return nil
}

// inside checks what the table can not: calls, one usage, and how much there is.
func (s *Stream) inside(f Frame, refuse func(string) error) error {
	size := 0
	switch f := f.(type) {
	case *Delta:
		size = len(f.Text)
	case *ReasoningDelta:
		size = len(f.Text)
	case *Usage:
		if s.usage {
			return refuse("was there before")
		}
		s.usage = true
	case *CallStart:
		if s.calls[f.Index] != callNone {
			return refuse("begins a call of the same index again")
		}
		s.calls[f.Index] = callOpen
	case *CallDelta:
		if s.calls[f.Index] != callOpen {
			return refuse("belongs to no open call")
		}
		size = len(f.Text)
	case *CallEnd:
		if s.calls[f.Index] != callOpen {
			return refuse("belongs to no open call")
		}
		s.calls[f.Index] = callEnded
	}
	if s.text += int64(size); s.text > libctx.MaxModelMessage {
		return errdefs.New(errdefs.TooBig, "the answer is longer than %d bytes", libctx.MaxModelMessage)
	}
	return nil
}

// Done reports whether the last frame has come: an answer that ends before it is
// not one.
func (s *Stream) Done() bool { return s.state == over }
