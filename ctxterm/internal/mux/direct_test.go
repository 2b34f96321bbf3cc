package mux

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"cortexfs.org/libctx/termwire"
)

// sink is a connection that takes as much at once as takes says.
type sink struct {
	mu     sync.Mutex
	got    bytes.Buffer
	takes  func(n int) int
	direct int // bytes that did not need the goroutine
}

func (s *sink) write(b []byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.takes(len(b))
	s.got.Write(b[:n])
	s.direct += n
	return n
}

// drain is the goroutine of the connection.
func (s *sink) drain(c *Client) {
	for b, ok := c.Next(); ok; b, ok = c.Next() {
		s.mu.Lock()
		s.got.Write(b)
		s.mu.Unlock()
	}
}

// Little output goes to few clients directly, in order with all else, however
// much of it their connections take.
func TestDirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, size80)
		defer r.close()
		cut := 0
		sinks := []*sink{
			{takes: func(n int) int { return n }},
			{takes: func(int) int { return 0 }},
			{takes: func(n int) int { cut++; return cut % (n + 1) }},
			{takes: func(n int) int { return n }},
		}
		var clients []*Client
		var done sync.WaitGroup
		for _, s := range sinks {
			c, err := r.Join(Watch, View{})
			if err != nil {
				t.Fatal(err)
			}
			c.Direct(s.write)
			clients = append(clients, c)
			done.Go(func() { s.drain(c) })
		}
		var want strings.Builder
		for i := range 300 {
			synctest.Wait() // they have all they can have
			text := fmt.Sprintf("key %d\r\n", i)
			if i%50 == 49 {
				text = strings.Repeat(text, 1000)
			}
			want.WriteString(text)
			r.print(text)
			if i == 100 {
				clients[0].Refuse(fmt.Errorf("no"), false)
			}
		}
		r.End(0)
		done.Wait()
		direct := 0
		for i, s := range sinks {
			v := &viewer{t: t, rest: s.got.Bytes()}
			for len(v.rest) > 0 {
				v.frame()
			}
			if v.bytes.String() != want.String() || v.kinds[len(v.kinds)-1] != "exit" {
				t.Errorf("client %d: %d bytes of %d, %v", i, v.bytes.Len(), want.Len(), v.kinds)
			}
			direct += s.direct
		}
		if direct == 0 {
			t.Error("nothing went directly")
		}
	})
}

// What an emitter says is text, whatever it is.
func TestLinesAreInert(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "a\n", "a\n": "a\n", "a\tb\n\nc": "a\tb\n\nc\n", "\x1b[1;31mred\x1b[m": "\x1b[1;31mred\x1b[m\n",
		"\x1b[2J": "\\x1b[2J\n", "\x1b": "\\x1b\n", "\x1b[": "\\x1b[\n", "\x1b[1": "\\x1b[1\n", "\x1b[?1m": "\\x1b[?1m\n", "\x1b[1;31": "\\x1b[1;31\n",
		"\r\n": "\n", "a\r\nb\r": "a\nb\\r\n", "\a\b\x00\x7f": "\\x07\\x08\\x00\\x7f\n", "\u009b2J": "\\u009b2J\n", "\xff\xc3": "\\xff\\xc3\n", "\x1b\x1b[m": "\\x1b\x1b[m\n",
		"\x1b[" + strings.Repeat("1;", 40) + "m": "\\x1b[" + strings.Repeat("1;", 40) + "m\n", "é\x1b[mé": "é\x1b[mé\n", "\u202e": "\\u202e\n",
	} {
		if got := string(lines([]byte(in))); got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
	}
}

// A frame of the stream is whole in one block.
func TestStream(t *testing.T) {
	s := newStream()
	start := s.here()
	for i := range 400 {
		s.output(uint64(i), bytes.Repeat([]byte("x"), i%200*1000))
	}
	for start.pos < s.end {
		b := start.take(s.end)
		if b[len(b)-1] != '\n' {
			t.Fatalf("a piece ends in %q", b[len(b)-10:])
		}
		for line := range bytes.Lines(b) {
			if _, err := termwire.DecodeFrame(line); err != nil {
				t.Fatal(err)
			}
		}
	}
}
