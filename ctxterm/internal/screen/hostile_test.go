package screen

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/termwire"
)

// every sequence with a count, so large that nothing may be done so often.
func TestHugeCounts(t *testing.T) {
	largest := termwire.Size{Cols: libctx.MaxTermSide, Rows: libctx.MaxTermSide}
	s := New(largest, Options{Scrollback: libctx.MaxTermScrollback})
	for _, n := range []string{"999999999", "18446744073709551617", "-1", strings.Repeat("9", 10_000), strings.Repeat("1;", 10_000), strings.Repeat("4:", 10_000)} {
		for final := byte('@'); final <= '~'; final++ {
			for _, prefix := range []string{"", "?", ">", "=", "<", "!", " ", "$"} {
				s.Write(fmt.Appendf(nil, "x\x1b[%s%s%c", prefix, n, final))
			}
		}
		sound(t, s)
	}
	s.Resize(largest) // by another sequence it can not have changed
}

// What a sequence repeats is bounded.
func TestRepeatIsBounded(t *testing.T) {
	s := New(termwire.Size{Cols: 1, Rows: 2}, Options{Scrollback: libctx.MaxTermScrollback})
	s.Write([]byte("x\x1b[65535b"))
	if s.history.count > libctx.MaxTermRepeat {
		t.Errorf("%d lines by one sequence", s.history.count)
	}
}

// Strings without an end, and tables that a program fills, stay bounded.
func TestMemoryIsBounded(t *testing.T) {
	s := New(termwire.DefaultSize, Options{Scrollback: 1 << 30})
	for _, start := range []string{"\x1b]2;", "\x1bPq", "\x1b_", "\x1b^", "\x1bX", "\x1b]8;;http://"} {
		s.Write([]byte(start))
		for range 1000 {
			s.Write(bytes.Repeat([]byte("x"), 4096))
		}
		if len(s.text) > libctx.MaxTermString || cap(s.text) > 2*libctx.MaxTermString {
			t.Errorf("%d bytes of %q are kept", cap(s.text), start)
		}
		s.Write([]byte("\x1b\\"))
	}

	s.Write([]byte("x"))
	s.Write(bytes.Repeat([]byte("\u0301"), 1<<19))
	if got := s.Text()[0]; len(got) > 1+libctx.MaxTermMarks {
		t.Errorf("%d bytes in one cell", len(got))
	}
	for i := range 1 << 17 {
		s.Write(fmt.Appendf(nil, "y%c%c", 0x300+i%112, 0x300+i/112%112))
	}
	if n := len(s.marks.texts); n > 2*(2*s.cols*s.rows+markSweep) {
		t.Errorf("%d texts of marks for %d cells", n, s.cols*s.rows)
	}

	for i := range 1 << 17 {
		s.Write(fmt.Appendf(nil, "\x1b]8;;http://example.org/%d\az", i))
	}
	if n := len(s.links.texts); n > libctx.MaxTermLinks+1 {
		t.Errorf("%d links", n)
	}

	for range 1 << 10 {
		s.Write([]byte("\x1b[>1u\x1b[22t\x1b[>1u\x1b[?1049h\x1b[>1u"))
	}
	if len(s.grid.keys.stack) > maxKeyboards || len(s.titles) > maxTitles {
		t.Errorf("%d keyboards, %d titles", len(s.grid.keys.stack), len(s.titles))
	}
	s.Write([]byte("\x1b[?1049l"))

	// Long lines, and many empty ones.
	wide := New(termwire.Size{Cols: libctx.MaxTermSide, Rows: 2}, Options{Scrollback: 1 << 30})
	for i := range 3000 {
		for x := range 40 {
			wide.Write(fmt.Appendf(nil, "\x1b[38;2;%d;%d;%dm%025d", i%256, x, x, i))
		}
	}
	wide.Write(bytes.Repeat([]byte("\n"), 100_000))
	for i := range 3000 {
		wide.Write(fmt.Appendf(nil, "%0999d", i))
	}
	h := &wide.history
	if h.bytes > libctx.MaxTermScrollbackBytes+chunkBytes || h.count > libctx.MaxTermScrollback+chunkLines {
		t.Errorf("the scrollback has %d bytes in %d lines", h.bytes, h.count)
	}
	held := 0
	for _, c := range h.chunks {
		held += cap(c.data)
	}
	if held != h.bytes {
		t.Errorf("%d bytes are counted as %d", held, h.bytes)
	}
}

// An answer is no longer than a line, whatever was asked.
func TestAnswersAreBounded(t *testing.T) {
	asked := "\x1b]4;" + strings.Repeat("1;?;", libctx.MaxTermString) + "\a" + // too long for an answer
		"\x1bP$q" + strings.Repeat("m", 1000) + "\x1b\\\x1bP+q" + strings.Repeat("ab", 1000) + "\x1b\\\x1b[?" + strings.Repeat("9", 1000) + "$p"
	s := New(termwire.DefaultSize, Options{Reply: func(b []byte) {
		if len(b) > 80 {
			t.Errorf("an answer of %d bytes", len(b))
		}
	}})
	s.Write([]byte(asked))
}

func FuzzScreen(f *testing.F) {
	for _, name := range recorded {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, byte(80), byte(24))
	}
	for _, flood := range floods() {
		f.Add(flood[:1000], byte(7), byte(3))
	}
	f.Add([]byte(strings.Join(pieces, "")), byte(10), byte(5))
	f.Fuzz(func(t *testing.T, b []byte, cols, rows byte) {
		size := termwire.Size{Cols: int(cols) + 1, Rows: int(rows) + 1}
		answer := func([]byte) {}
		s := New(size, Options{Scrollback: 100, Reply: answer})
		half := len(b) / 2
		s.Write(b[:half])
		s.Resize(termwire.Size{Cols: size.Rows, Rows: size.Cols})
		s.Write(b[half:])
		sound(t, s)
		s.Write([]byte("\x18"))
		s.Write(s.Above(b[:half]))
		sound(t, s)
		s.titles = nil
		other := New(s.Size(), Options{Reply: func(b []byte) { t.Fatalf("a redraw asks, and gets %q", b) }})
		other.Write(s.Replay(termwire.Size{}, 10))
		if d := difference(s, other); d != "" {
			t.Fatal(d)
		}
		other = New(size, Options{})
		other.Write(s.Redraw(size))
		sound(t, other)
	})
}
