package modelwire

import (
	"bytes"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// request and frame are a line: the word that says what it is, then the rest.
type request[T any] struct {
	Op   string `json:"op"`
	Body T      `json:",embed"`
}

type frame[T any] struct {
	Type string `json:"type"`
	Body T      `json:",embed"`
}

// DecodeRequest decodes and checks the line of a client, without its LF. Every
// error is errdefs.Invalid and says which member is wrong, or errdefs.TooBig.
func DecodeRequest(text []byte) (Request, error) {
	op, err := word(text, "op")
	if err != nil {
		return nil, err
	}
	switch op {
	case "generate":
		return decodeRequest[Generate](text)
	case "probe":
		return decodeRequest[Probe](text)
	case "detect":
		return decodeRequest[Detect](text)
	}
	return nil, errdefs.New(errdefs.Invalid, "unknown operation %.80q", op)
}

func decodeRequest[T any, P interface {
	*T
	Request
	check() error
}](text []byte) (Request, error) {
	if len(text) >= libctx.MaxModelFrame {
		return nil, tooLong(len(text) + 1)
	}
	var r request[T]
	if err := wire.Object(text, &r, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	p := P(&r.Body)
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// MarshalRequest encodes a request as one line with its LF. A request that
// DecodeRequest would refuse is refused here, with the same error; text that is
// not UTF-8 is errdefs.Internal.
func MarshalRequest(r Request) ([]byte, error) {
	switch r := r.(type) {
	case *Generate:
		return marshal(request[*Generate]{r.Op(), r}, r.check())
	case *Probe:
		return marshal(request[*Probe]{r.Op(), r}, r.check())
	case *Detect:
		return marshal(request[*Detect]{r.Op(), r}, nil)
	}
	return nil, errdefs.New(errdefs.Internal, "encode a %T", r)
}

// DecodeFrame decodes and checks one line of an answer, without its LF. A kind
// that this version does not know comes back as *Other; unknown members are
// ignored. Every error is errdefs.Invalid or errdefs.TooBig.
func DecodeFrame(text []byte) (Frame, error) {
	kind, err := word(text, "type")
	if err != nil {
		return nil, err
	}
	decode, ok := kinds[kind]
	if ok {
		return decode(text)
	}
	if err := wire.Object(text, new(struct{})); err != nil {
		return nil, err
	}
	return &Other{Type: kind}, nil
}

// checked is a frame that can say what is wrong with it.
type checked interface {
	Frame
	check() error
}

func decodeFrame[T any, P interface {
	*T
	checked
}](text []byte) (Frame, error) {
	var f frame[T]
	p := P(&f.Body)
	if max := limit(p); len(text) >= max {
		return nil, tooLong(len(text) + 1)
	}
	if err := wire.Object(text, &f); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

func encodeFrame[T any](f T, checked error) ([]byte, error) {
	return marshal(frame[T]{any(f).(Frame).Kind(), f}, checked)
}

// kinds maps the member type to a decoder.
var kinds = map[string]func([]byte) (Frame, error){
	"start":           decodeFrame[Start],
	"lifecycle":       decodeFrame[Lifecycle],
	"delta":           decodeFrame[Delta],
	"reasoning_delta": decodeFrame[ReasoningDelta],
	"call_start":      decodeFrame[CallStart],
	"call_delta":      decodeFrame[CallDelta],
	"call_end":        decodeFrame[CallEnd],
	"message":         decodeFrame[MessageFrame],
	"usage":           decodeFrame[Usage],
	"error":           decodeFrame[Error],
	"found":           decodeFrame[Found],
	"verdict":         decodeFrame[Verdict],
	"done":            decodeFrame[Done],
}

// MarshalFrame encodes a frame as one line with its LF. A frame that DecodeFrame
// would refuse is refused here, with the same error; text that is not UTF-8 is
// errdefs.Internal.
func MarshalFrame(f Frame) ([]byte, error) {
	c, ok := f.(checked)
	if !ok {
		return nil, errdefs.New(errdefs.Internal, "encode a %T", f)
	}
	line, err := encode(c, c.check())
	if err == nil && len(line) > limit(f) {
		return nil, tooLong(len(line))
	}
	return line, err
}

func encode(f Frame, bad error) ([]byte, error) {
	switch f := f.(type) {
	case *Start:
		return encodeFrame(f, bad)
	case *Lifecycle:
		return encodeFrame(f, bad)
	case *Delta:
		return encodeFrame(f, bad)
	case *ReasoningDelta:
		return encodeFrame(f, bad)
	case *CallStart:
		return encodeFrame(f, bad)
	case *CallDelta:
		return encodeFrame(f, bad)
	case *CallEnd:
		return encodeFrame(f, bad)
	case *MessageFrame:
		return encodeFrame(f, bad)
	case *Usage:
		return encodeFrame(f, bad)
	case *Error:
		return encodeFrame(f, bad)
	case *Found:
		return encodeFrame(f, bad)
	case *Verdict:
		return encodeFrame(f, bad)
	case *Done:
		return encodeFrame(f, bad)
	}
	return nil, errdefs.New(errdefs.Internal, "encode a %T", f)
}

// limit is how long the line of a frame can be, LF included. A message is kept
// within what a ledger record holds.
func limit(f Frame) int {
	if _, ok := f.(*MessageFrame); ok {
		return libctx.MaxModelMessage
	}
	return libctx.MaxModelFrame
}

func marshal(v any, bad error) ([]byte, error) {
	if bad != nil {
		return nil, bad
	}
	line, err := wire.Marshal(v)
	if err == nil && len(line) > libctx.MaxModelFrame {
		return nil, tooLong(len(line))
	}
	return line, err
}

func tooLong(n int) error {
	return errdefs.New(errdefs.TooBig, "a line of %d bytes is over its limit", n)
}

// word reads one member of an object without decoding what stands behind it:
// lines are long, and it is usually the first.
func word(text []byte, name string) (string, error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if d.PeekKind() != '{' {
		return "", errdefs.New(errdefs.Invalid, "not a JSON object")
	}
	if _, err := d.ReadToken(); err != nil {
		return "", errdefs.New(errdefs.Invalid, "invalid JSON")
	}
	for d.PeekKind() == '"' {
		key, err := d.ReadToken()
		if err != nil {
			break
		}
		if key.String() != name {
			if d.SkipValue() != nil {
				break
			}
			continue
		}
		if d.PeekKind() != '"' {
			return "", errdefs.New(errdefs.Invalid, "member %s is not a text", name)
		}
		value, err := d.ReadToken()
		if err != nil {
			break
		}
		return value.String(), nil
	}
	// Whatever is wrong, the strict decoder says it better.
	if err := wire.Object(text, new(struct{})); err != nil {
		return "", err
	}
	return "", missing(name)
}

func missing(name string) error {
	return errdefs.New(errdefs.Invalid, "member %s is missing or empty", name)
}
