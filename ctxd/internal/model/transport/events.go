package transport

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
)

// Event is one event of a stream. Data is the data lines joined by LF; it is
// valid until the next event is read.
type Event struct {
	Type string // of the event line; usually empty
	Data []byte
}

var (
	mark        = []byte("\uFEFF")
	errEncoding = errors.New("the event stream is not UTF-8")
	errUnended  = errors.New("the answer ends inside an event")
	errEarly    = errors.New("the answer ends before its last event")
)

// parser reads an event stream as the HTML standard has it: lines end in LF, CR
// or CRLF, a byte order mark may come first, lines that begin with a colon are
// comments. Unlike there, bytes that are not UTF-8 are an error, since replacing
// them would change an answer in silence.
type parser struct {
	r     io.Reader
	buf   []byte // a chunk of the stream
	rest  []byte // of buf, unread
	line  []byte // begun, in earlier chunks
	lf    bool   // the last line ended in CR: a LF that follows belongs to it
	begun bool   // the first line is over
	total int
	count int
	kind  string
	data  []byte
	any   bool // there was a data line
}

func newParser(r io.Reader) *parser { return &parser{r: r, buf: make([]byte, 16<<10)} }

// next is the next event that has data. At the end of the stream it is io.EOF,
// inside an event errUnended; an error of a limit or of the encoding is a *Error,
// any other one comes from the reader.
func (p *parser) next() (Event, error) {
	p.kind, p.data, p.any = "", p.data[:0], false
	for {
		line, err := p.nextLine()
		if err != nil {
			if errors.Is(err, io.EOF) && (p.any || len(p.line) > 0) {
				err = errUnended
			}
			return Event{}, err
		}
		if !p.begun {
			p.begun = true
			line = bytes.TrimPrefix(line, mark)
		}
		if len(line) == 0 {
			if p.any {
				p.count++
				if p.count > libctx.MaxModelEvents {
					return Event{}, tooBig(modelwire.PhaseBody, "the answer has more than %d events", libctx.MaxModelEvents)
				}
				return p.event(), nil
			}
			p.kind = ""
			continue
		}
		if err := p.field(line); err != nil {
			return Event{}, err
		}
	}
}

// event is what the lines so far say.
func (p *parser) event() Event { return Event{Type: p.kind, Data: p.data} }

// field takes one line that is not empty.
func (p *parser) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if len(name) == 0 {
		return nil // a comment
	}
	if !utf8.Valid(line) {
		return &Error{Phase: modelwire.PhaseDecode, Kind: errdefs.Provider, Err: errEncoding}
	}
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		p.kind = string(value)
	case "data":
		if p.any {
			p.data = append(p.data, '\n')
		}
		if len(p.data)+len(value) > libctx.MaxEvent {
			return tooLong()
		}
		p.data, p.any = append(p.data, value...), true
	}
	return nil
}

// nextLine is one line without its end; it is valid until the next call.
func (p *parser) nextLine() ([]byte, error) {
	p.line = p.line[:0]
	for {
		if len(p.rest) == 0 {
			if err := p.fill(); err != nil {
				return nil, err
			}
		}
		if p.lf && p.rest[0] == '\n' {
			p.rest = p.rest[1:]
			p.lf = false
			continue
		}
		p.lf = false
		i := lineEnd(p.rest)
		if i < 0 {
			if len(p.line)+len(p.rest) > libctx.MaxEvent {
				return nil, tooLong()
			}
			p.line, p.rest = append(p.line, p.rest...), nil
			continue
		}
		line := p.rest[:i]
		p.lf, p.rest = p.rest[i] == '\r', p.rest[i+1:]
		if len(p.line) == 0 {
			return line, nil
		}
		p.line = append(p.line, line...)
		line, p.line = p.line, p.line[:0]
		return line, nil
	}
}

// lineEnd is where the first LF or CR is, or -1.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// fill reads a chunk.
func (p *parser) fill() error {
	for {
		n, err := p.r.Read(p.buf)
		if n > 0 {
			// An error that came with bytes comes again.
			p.rest, p.total = p.buf[:n], p.total+n
			if p.total > libctx.MaxEventStream {
				return tooBig(modelwire.PhaseBody, "the answer is longer than %d bytes", libctx.MaxEventStream)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func tooLong() *Error {
	return tooBig(modelwire.PhaseBody, "an event of the answer is longer than %d bytes", libctx.MaxEvent)
}
