package transport

import (
	"errors"
	"io"
	"net/http"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
)

// Stream is the body of an answer, as events. A driver calls Next; an SDK that
// wants to read gets the same events in their plainest form: no byte order mark,
// no comments, LF alone, nothing of an event that did not come whole. It is for
// one goroutine; whoever has it closes it.
type Stream struct {
	body     io.ReadCloser
	w        *watcher
	parser   *parser
	terminal func(Event) bool
	status   int
	complete bool   // the terminal event has come
	err      error  // what Next says from now on
	buf      []byte // the last event, for Read
	plain    []byte // of buf, not yet read
}

func newStream(resp *http.Response, w *watcher, silence time.Duration, terminal func(Event) bool) *Stream {
	s := &Stream{body: resp.Body, w: w, terminal: terminal, status: resp.StatusCode}
	s.parser = newParser(&patient{resp.Body, w, silence})
	return s
}

// StreamOf is the body of an answer that came through a Transport and an SDK; the
// caller closes it. If the SDK put something over it, it is closed, and the error
// is errdefs.Internal.
func StreamOf(resp *http.Response) (*Stream, error) {
	s, ok := resp.Body.(*Stream)
	if !ok {
		resp.Body.Close()
		return nil, errdefs.New(errdefs.Internal, "the SDK put something over the transport's stream: a %T", resp.Body)
	}
	return s, nil
}

// Next is the next event, the terminal one included; after it io.EOF. A stream
// that ends before it, however cleanly, is a *Error as is everything else.
func (s *Stream) Next() (Event, error) {
	if s.err != nil {
		return Event{}, s.err
	}
	ev, err := s.parser.next()
	if errors.Is(err, errUnended) && len(s.parser.line) == 0 && s.terminal(s.parser.event()) {
		ev, err = s.parser.event(), nil // all but the empty line after it
	}
	if err == nil {
		if s.terminal(ev) {
			s.complete, s.err = true, io.EOF
		}
		return ev, nil
	}
	s.err = s.broken(err)
	return Event{}, s.err
}

func (s *Stream) broken(err error) *Error {
	var known *Error
	switch {
	case errors.As(err, &known):
	case errors.Is(err, io.EOF):
		known = &Error{Phase: modelwire.PhaseBody, Kind: errdefs.Provider, Err: errEarly}
	case errors.Is(err, errUnended):
		known = &Error{Phase: modelwire.PhaseBody, Kind: errdefs.Provider, Err: errUnended}
	default:
		known = s.w.fail(err)
	}
	known.Status = s.status
	return known
}

// Read is for SDKs that take the stream apart themselves; see Stream.
func (s *Stream) Read(p []byte) (int, error) {
	if len(s.plain) == 0 {
		ev, err := s.Next()
		if err != nil {
			return 0, err
		}
		s.buf = appendEvent(s.buf[:0], ev)
		s.plain = s.buf
	}
	n := copy(p, s.plain)
	s.plain = s.plain[n:]
	return n, nil
}

// appendEvent writes an event in its plainest form.
func appendEvent(dst []byte, ev Event) []byte {
	if ev.Type != "" {
		dst = append(append(append(dst, "event: "...), ev.Type...), '\n')
	}
	dst = append(dst, "data: "...)
	for _, c := range ev.Data {
		if dst = append(dst, c); c == '\n' {
			dst = append(dst, "data: "...)
		}
	}
	return append(dst, "\n\n"...)
}

// Close ends the request. After the terminal event the little that follows it is
// read in the background, for a bounded time, so that the next request finds the
// connection open; whatever the caller's context does meanwhile.
func (s *Stream) Close() error {
	if !s.complete || !s.w.release() {
		s.w.end(nil)
		return s.body.Close()
	}
	s.err = io.EOF
	s.w.enter(modelwire.PhaseBody, libctx.ProviderDrain)
	go func() {
		// That it fails costs a connection and nothing else.
		_, _ = io.CopyN(io.Discard, s.body, libctx.MaxErrorBody)
		_ = s.body.Close()
		s.w.end(nil)
	}()
	return nil
}

// patient reads a body and waits only so long for each piece of it. Time the
// reader spends with a piece does not count.
type patient struct {
	r       io.Reader
	w       *watcher
	silence time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	p.w.enter(modelwire.PhaseBody, p.silence)
	n, err := p.r.Read(b)
	p.w.pause()
	return n, err
}
