package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// all reads a stream to its end; each event is TYPE|DATA.
func all(r io.Reader) (events []string, err error) {
	p := newParser(r)
	for {
		ev, err := p.next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, ev.Type+"|"+string(ev.Data))
	}
}

func TestEvents(t *testing.T) {
	for what, c := range map[string]struct{ in, want string }{
		"nothing":               {"", ""},
		"one":                   {"data: a\n\n", "|a"},
		"no space":              {"data:a\n\ndata:  b\n\n", "|a;| b"},
		"several lines":         {"data: a\ndata:\ndata: b\n\n", "|a\n\nb"},
		"no colon":              {"data\ndata\n\n", "|\n"},
		"empty data":            {"data:\n\n", "|"},
		"type":                  {"event: ping\ndata: a\n\ndata: b\n\n", "ping|a;|b"},
		"type alone":            {"event: ping\n\ndata: b\n\n", "|b"},
		"comments":              {": hello\n\n:\n:x\ndata: a\n: y\ndata: b\n\n", "|a\nb"},
		"a comment of bytes":    {": \xff\n\ndata: a\n\n", "|a"},
		"other fields":          {"id: 1\nretry: 5\nfuture: x\ndata: a\n\n", "|a"},
		"a mark":                {"\ufeffdata: a\n\n\ufeffdata: b\n\ndata: c\n\n", "|a;|c"},
		"a mark alone":          {"\ufeff\ndata: a\n\n", "|a"},
		"CRLF":                  {"data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", "|a\nb;|c"},
		"CR":                    {"data: a\rdata: b\r\rdata: c\r\r", "|a\nb;|c"},
		"all of them":           {"data: a\r\n\rdata: b\n\r\ndata: c\r\r\n", "|a;|b;|c"},
		"empty lines":           {"\n\n\r\n\rdata: a\n\n\n\n", "|a"},
		"characters":            {"data: grün 日本 🙂\n\n", "|grün 日本 🙂"},
		"U+2028 is no line end": {"data: a\u2028b\u0085c\n\n", "|a\u2028b\u0085c"},
		"NUL":                   {"data: a\x00b\n\n", "|a\x00b"},
	} {
		// However it is cut, it says the same.
		for size := 1; size <= len(c.in)+1; size++ {
			got, err := all(&pieces{c.in, size})
			if err != nil || strings.Join(got, ";") != c.want {
				t.Errorf("%s, in pieces of %d: %q, %v; not %q", what, size, got, err, c.want)
			}
		}
		for cut := range c.in {
			got, err := all(io.MultiReader(strings.NewReader(c.in[:cut]), strings.NewReader(c.in[cut:])))
			if err != nil || strings.Join(got, ";") != c.want {
				t.Errorf("%s, cut at %d: %q, %v; not %q", what, cut, got, err, c.want)
			}
		}
	}
}

// pieces reads a text in pieces of a size.
type pieces struct {
	rest string
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(p.size, len(b))], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func TestEventsBroken(t *testing.T) {
	failure := errors.New("reset")
	for what, c := range map[string]struct {
		in   io.Reader
		want string // of the events before
		err  error
	}{
		"inside an event":       {strings.NewReader("data: a\n\ndata: b\n"), "|a", errUnended},
		"inside a line":         {strings.NewReader("data: a\n\ndat"), "|a", errUnended},
		"inside a comment":      {strings.NewReader("data: a\n\n: x"), "|a", errUnended},
		"by an error":           {io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(failure)), "|a", failure},
		"with the last bytes":   {iotest.DataErrReader(io.MultiReader(strings.NewReader("data: a\n\n"), iotest.ErrReader(failure))), "|a", failure},
		"by bytes in data":      {strings.NewReader("data: a\n\ndata: \xff\n\n"), "|a", errEncoding},
		"by bytes in a type":    {strings.NewReader("event: \xe6\x97\ndata: a\n\n"), "", errEncoding},
		"by half a character":   {strings.NewReader("data: \xe6\x97\n\n"), "", errEncoding},
		"by a lone surrogate":   {strings.NewReader("data: \xed\xa0\x80\n\n"), "", errEncoding},
		"by an overlong letter": {strings.NewReader("data: \xc0\xaf\n\n"), "", errEncoding},
	} {
		got, err := all(c.in)
		if !errors.Is(err, c.err) || strings.Join(got, ";") != c.want {
			t.Errorf("%s: %q, %v; not %q, %v", what, got, err, c.want, c.err)
		}
	}
}

// endless gives the same piece again and again.
type endless struct{ piece, rest string }

func (e *endless) Read(b []byte) (int, error) {
	if e.rest == "" {
		e.rest = e.piece
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestEventsBounded(t *testing.T) {
	for what, c := range map[string]struct {
		in   io.Reader
		want string
	}{
		"a line":       {&endless{piece: strings.Repeat("x", 1<<20)}, fmt.Sprintf("an event of the answer is longer than %d bytes", libctx.MaxEvent)},
		"a data line":  {io.MultiReader(strings.NewReader("data: "), &endless{piece: strings.Repeat("x", 1<<20)}), fmt.Sprintf("an event of the answer is longer than %d bytes", libctx.MaxEvent)},
		"data lines":   {&endless{piece: "data: " + strings.Repeat("x", 1<<20) + "\n"}, fmt.Sprintf("an event of the answer is longer than %d bytes", libctx.MaxEvent)},
		"a type":       {io.MultiReader(strings.NewReader("event: "), &endless{piece: strings.Repeat("x", 1<<20)}), fmt.Sprintf("an event of the answer is longer than %d bytes", libctx.MaxEvent)},
		"events":       {&endless{piece: "data: x\n\n"}, fmt.Sprintf("the answer has more than %d events", libctx.MaxModelEvents)},
		"comments":     {&endless{piece: ": " + strings.Repeat("x", 1<<20) + "\n"}, fmt.Sprintf("the answer is longer than %d bytes", libctx.MaxEventStream)},
		"large events": {&endless{piece: "data: " + strings.Repeat("x", 1<<20) + "\n\n"}, fmt.Sprintf("the answer is longer than %d bytes", libctx.MaxEventStream)},
	} {
		_, err := all(c.in)
		var e *Error
		if !errors.As(err, &e) || e.Kind != errdefs.TooBig || err.Error() != c.want {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A large event is no trouble.
func TestLargeEvent(t *testing.T) {
	text := strings.Repeat("x", libctx.MaxEvent-100)
	got, err := all(strings.NewReader("data: " + text + "\r\n\r\ndata: y\n\n"))
	if err != nil || len(got) != 2 || got[0] != "|"+text || got[1] != "|y" {
		t.Errorf("%d events, %v", len(got), err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("\ufeffevent: x\r\ndata: a\rdata:b\n\n: c\n\ndata: d\n\n"), uint8(1))
	f.Add([]byte("data: \xe6\x97\xa5\n\ndata: \xff\n\n"), uint8(2))
	f.Add([]byte("data\n\r\ndata:\r\r\n"), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		want, wantErr := all(bytes.NewReader(in))
		got, err := all(&pieces{string(in), int(size%7) + 1})
		if fmt.Sprint(got, err) != fmt.Sprint(want, wantErr) {
			t.Fatalf("at once %q, %v; in pieces %q, %v", want, wantErr, got, err)
		}
		// The plainest form of what was read says the same.
		var plain []byte
		p := newParser(bytes.NewReader(in))
		for {
			ev, err := p.next()
			if err != nil {
				break
			}
			plain = appendEvent(plain, ev)
		}
		again, err := all(bytes.NewReader(plain))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(want) {
			t.Fatalf("%q became %q: %q, %v", in, plain, again, err)
		}
	})
}
