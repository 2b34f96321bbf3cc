package termwire

import (
	"encoding/base64"
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// Frame is one line of a terminal. Kind is its type member.
type Frame interface{ Kind() string }

// Hello is the first frame: what the client was granted, and the terminal's
// size.
type Hello struct {
	Protocol int    `json:"protocol"`
	ID       string `json:"id,omitzero"` // of the terminal; empty if ctxterm was not told a resource
	Mode     string `json:"mode"`        // "watch", "attach" or "emit"
	Size
}

// Screen is a redraw that needs nothing that was sent before it: whatever the
// client's terminal showed and whatever modes it had, after Data it shows what
// the program has drawn up to Seq, as far as its size lets it.
type Screen struct {
	Seq  uint64 `json:"seq"`
	Size        // of the terminal
	Data []byte `json:"data_b64"`
}

// Bytes is output of the program, as it wrote it but for queries and clipboard
// sequences. Its type is "output".
type Bytes struct {
	Seq  uint64 `json:"seq"` // bytes of output up to the last one in Data, counted from 1
	Data []byte `json:"data_b64"`
}

// Resized says that the terminal has another size now.
type Resized struct{ Size }

// Lagged says that output was left out because the client read too slowly. A
// Screen follows, or for a pipe the next Bytes.
type Lagged struct{}

// Exit is the last frame: the program has ended and all its output was sent.
type Exit struct {
	Code int `json:"code"` // 0 to 255; 128 plus the number of a signal that ended it
}

// Error says why the terminal refuses a client or a line; clients act on Code.
type Error struct {
	Code    errdefs.Kind `json:"code"`
	Message string       `json:"message"`
}

// Other is a frame of a type this version does not know.
type Other struct {
	Type string
	Raw  jsontext.Value
}

func (*Hello) Kind() string   { return "hello" }
func (*Screen) Kind() string  { return "screen" }
func (*Bytes) Kind() string   { return "output" }
func (*Resized) Kind() string { return "resized" }
func (*Lagged) Kind() string  { return "lagged" }
func (*Exit) Kind() string    { return "exit" }
func (*Error) Kind() string   { return "error" }
func (o *Other) Kind() string { return o.Type }

// frames maps the type member to a decoder target.
var frames = map[string]func() Frame{
	"hello":   func() Frame { return new(Hello) },
	"screen":  func() Frame { return new(Screen) },
	"output":  func() Frame { return new(Bytes) },
	"resized": func() Frame { return new(Resized) },
	"lagged":  func() Frame { return new(Lagged) },
	"exit":    func() Frame { return new(Exit) },
	"error":   func() Frame { return new(Error) },
}

// MarshalFrame encodes a frame as one line with its LF. One over
// libctx.MaxFrame is errdefs.TooBig.
func MarshalFrame(f Frame) ([]byte, error) {
	if b, ok := f.(*Bytes); ok {
		return sized(AppendOutput(nil, b.Seq, b.Data), f)
	}
	line, err := marshal(`{"type":"`+f.Kind()+`"`, f)
	if err != nil {
		return nil, err
	}
	return sized(line, f)
}

func sized(line []byte, f Frame) ([]byte, error) {
	if len(line) > libctx.MaxFrame {
		return nil, errdefs.New(errdefs.TooBig, "%s frame of %d bytes is over the limit of %d", f.Kind(), len(line), libctx.MaxFrame)
	}
	return line, nil
}

const (
	outputHead   = `{"type":"output","seq":`
	outputMiddle = `,"data_b64":"`
	outputTail   = `"}`
)

// AppendOutput appends the line of a Bytes frame, with its LF, to dst: what
// MarshalFrame makes, without reflection. The caller keeps data short enough
// for libctx.MaxFrame.
func AppendOutput(dst []byte, seq uint64, data []byte) []byte {
	dst = append(dst, outputHead...)
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, outputMiddle...)
	dst = base64.StdEncoding.AppendEncode(dst, data)
	return append(dst, outputTail+"\n"...)
}

// DecodeFrame decodes one line of a terminal, with or without its LF. Types it
// does not know come back as *Other; what is wrong is errdefs.Invalid. The frame
// shares no memory with the line.
func DecodeFrame(line []byte) (Frame, error) {
	if b := decodeOutput(line); b != nil {
		return b, nil
	}
	var head struct {
		Type *string `json:"type"`
	}
	if err := wire.Object(line, &head); err != nil {
		return nil, err
	}
	if head.Type == nil {
		return nil, errdefs.New(errdefs.Invalid, "member type is missing")
	}
	target, ok := frames[*head.Type]
	if !ok {
		return &Other{Type: *head.Type, Raw: jsontext.Value(line).Clone()}, nil
	}
	f := target()
	if err := wire.Object(line, f); err != nil {
		return nil, err
	}
	if err := checkFrame(f); err != nil {
		return nil, err
	}
	return f, nil
}

func checkFrame(f Frame) error {
	switch f := f.(type) {
	case *Hello:
		return f.Size.Valid()
	case *Screen:
		if f.Data == nil {
			return errdefs.New(errdefs.Invalid, "member data_b64 is missing")
		}
		return f.Size.Valid()
	case *Bytes:
		if f.Data == nil {
			return errdefs.New(errdefs.Invalid, "member data_b64 is missing")
		}
	case *Resized:
		return f.Size.Valid()
	case *Exit:
		if f.Code < 0 || f.Code > 255 {
			return errdefs.New(errdefs.Invalid, "exit code %d is not 0 to 255", f.Code)
		}
	}
	return nil
}
