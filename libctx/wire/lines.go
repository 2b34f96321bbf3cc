package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrTorn is what Lines.Next returns when the stream ends inside a line.
var ErrTorn = errors.New("the last line has no end")

// Lines reads newline-terminated lines of bounded length. Memory grows with the
// line actually sent, never past the limit.
type Lines struct {
	r   *bufio.Reader
	max int
	buf []byte
}

// NewLines reads lines of at most max bytes, LF included.
func NewLines(r io.Reader, max int) *Lines {
	return &Lines{r: bufio.NewReaderSize(r, 16<<10), max: max}
}

// Next returns the next line without its LF; it is valid until the next call.
// At the end of the stream it returns io.EOF, or ErrTorn after an unfinished
// line; a line over the limit is errdefs.TooBig and ends the stream, because
// what follows can not be told from the rest of that line.
func (l *Lines) Next() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.buf)+len(part) > l.max {
			return nil, errdefs.New(errdefs.TooBig, "line is longer than %d bytes", l.max)
		}
		if err == nil && len(l.buf) == 0 {
			return part[:len(part)-1], nil
		}
		l.buf = append(l.buf, part...)
		switch {
		case err == nil:
			return l.buf[:len(l.buf)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(l.buf) > 0:
			return nil, ErrTorn
		default:
			return nil, err
		}
	}
}

// Rest is what follows the lines that were read.
func (l *Lines) Rest() io.Reader { return l.r }

// Object decodes one JSON object into v: strict names, no duplicates, valid
// UTF-8, nothing but white space around it. Errors are errdefs.Invalid. The
// members of v that the text does not name keep their values.
func Object(line []byte, v any, opts ...json.Options) error {
	if t := bytes.TrimLeft(line, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return errdefs.New(errdefs.Invalid, "not a JSON object")
	}
	if err := json.Unmarshal(line, v, opts...); err != nil {
		return errdefs.New(errdefs.Invalid, "%w", plain(err))
	}
	return nil
}

// plain turns a decoder error into a short sentence without Go types in it.
func plain(err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		if syntactic.Err != nil {
			return say("invalid JSON: " + syntactic.Err.Error())
		}
		return say("invalid JSON")
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		where := string(semantic.JSONPointer)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return say("unknown member " + where)
		case semantic.Err != nil:
			return say("member " + where + ": " + semantic.Err.Error())
		}
		return say("member " + where + " has the wrong type")
	}
	return err
}

// say is an error of one line: the names of members are the sender's.
func say(text string) error { return errors.New(inert.Line(text)) }

// Marshal encodes v as one line with its LF. Text that is not valid UTF-8 is
// refused: clean it first (Clean).
func Marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, errdefs.New(errdefs.Internal, "encode: %w", err)
	}
	return append(b, '\n'), nil
}

// MarshalFrame encodes a frame for the agent socket and enforces the frame
// limit: callers clip long members (Clip) before.
func MarshalFrame(f Frame) ([]byte, error) {
	b, err := Marshal(f)
	if err == nil && len(b) > libctx.MaxFrame {
		err = errdefs.New(errdefs.TooBig, "%s frame of %d bytes is over the limit of %d", f.Header().Type, len(b), libctx.MaxFrame)
	}
	return b, err
}
