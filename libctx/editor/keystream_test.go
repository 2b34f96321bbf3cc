package editor

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"cortexfs.org/libctx"
)

func keep(s string) string { return "<" + s + ">" }

func TestKeystream(t *testing.T) {
	var lone keystream
	if out := lone.take(nil, []byte("\x1b"), keep); len(out) > 0 || !lone.waiting() || string(lone.release(out)) != "\x1b" || lone.waiting() {
		t.Error("Escape alone")
	}
	for in, want := range map[string]string{
		"hello":                                 "hello",
		"a\x1b[Ab":                              "a\x1b[Ab",
		"\x1b\r":                                "\x1b\r",
		"a\x1b[12;40Rb":                         "ab",
		"\x1b[1;2R":                             "",
		"\x1b[R":                                "\x1b[R",
		"\x1b[1;5C":                             "\x1b[1;5C",
		"\x1b[\x03":                             "\x03",
		"x\x1b[200~a\r\nb\rc\x1b[201~y":         "x" + pasteBegin + "<a\nb\nc>" + pasteEnd + "y",
		"\x1b[200~\x1b[5;5R\x1b[A\x1b[201~":     pasteBegin + "<\x1b[5;5R\x1b[A>" + pasteEnd,
		"\x1b[200~\x1b[201~\x1b[200~z\x1b[201~": pasteBegin + "<>" + pasteEnd + pasteBegin + "<z>" + pasteEnd,
		"\x1b[201~":                             "\x1b[201~",
	} {
		for cut := 0; cut <= len(in); cut++ {
			var k keystream
			out := k.take(nil, []byte(in[:cut]), keep)
			out = k.take(out, []byte(in[cut:]), keep)
			if string(out) != want {
				t.Errorf("%q cut at %d: %q, want %q", in, cut, out, want)
			}
		}
	}
}

// TestSureReadsNothingBehindAPaste: read as far as is sure, a paste comes whole, and
// what follows stays where it is.
func TestSureReadsNothingBehindAPaste(t *testing.T) {
	for _, text := range []string{"", "x", "\x1b", "\x1b[201", "\x1b\x1b[20\x1b[201", "a longer text\r\nof lines"} {
		in := []byte(pasteBegin + text + pasteEnd + "\rls\r")
		var k keystream
		var out []byte
		for len(out) == 0 {
			n := k.sure()
			out = k.take(out, in[:n], func(s string) string { return "<" + s + ">" })
			in = in[n:]
		}
		if want := pasteBegin + "<" + string(lines([]byte(text))) + ">" + pasteEnd; string(out) != want || string(in) != "\rls\r" {
			t.Errorf("%q: %q, want %q; %q is left", text, out, want, in)
		}
	}
}

// TestEndlessPaste: what is not ended takes no more memory than one that is.
func TestEndlessPaste(t *testing.T) {
	var k keystream
	k.take(nil, []byte(pasteBegin), keep)
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	for range 2 * libctx.MaxPaste / len(chunk) {
		k.take(nil, chunk, keep)
		if len(k.held) > libctx.MaxPaste+len(pasteEnd) {
			t.Fatalf("%d bytes are held", len(k.held))
		}
	}
	out := k.take(nil, []byte("end"+pasteEnd+"y"), func(s string) string { return s[len(s)-3:] })
	if string(out) != pasteBegin+"end"+pasteEnd+"y" {
		t.Errorf("%q", out)
	}
}

var report = regexp.MustCompile(`\x1b\[([0-9]+);([0-9]+)R`) // what the library takes for one

func FuzzKeystream(f *testing.F) {
	f.Add([]byte("a\x1b[1;2Rb\x1b[200~\x1b[3;4R\x1b[201~c"), uint8(3))
	f.Add([]byte("\x1b[\x1b[1;2R"), uint8(1))
	f.Add([]byte("\x1b[1\x1b[;2R"), uint8(1))
	f.Add([]byte("\x1b\x1b[1;2R[3;4R\x1b[5;6\x1b[;RR"), uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		harmless := func(s string) string { return clean(s) }
		var whole, parts keystream
		want := whole.take(nil, bytes.Clone(in), harmless)
		var got []byte
		for rest := in; len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			got = parts.take(got, bytes.Clone(rest[:n]), harmless)
			rest = rest[n:]
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%q in pieces of %d: %q, whole %q", in, int(size)+1, got, want)
		}
		if report.Match(want) {
			t.Errorf("%q: a report comes through: %q", in, want)
		}
	})
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\nc":                    "a\tb\nc",
		"\x1b[31m\x00\x07\x7f\u0085": `\x1b[31m\x00\x07\x7f\x85`,
		"\u202e\u2028":               `\u202e\u2028`,
		"👩\u200d👩\u200d👧 é\ufffd":    "👩\u200d👩\u200d👧 é\ufffd",
		"\xff\xc3":                   `\xff\xc3`,
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestFold(t *testing.T) {
	var e Editor
	short, long := "two\nlines", strings.Repeat("x", 3000)+"\nend"
	line := e.fold(short) + e.fold(long) + "!" + e.fold(strings.Repeat("\n", 20))
	if line != short+"[paste 1: 2.9 KiB, 2 lines]![paste 2: 20 B, 21 lines]" {
		t.Errorf("%q", line)
	}
	if got := e.expand(line); got != short+long+"!"+strings.Repeat("\n", 20) {
		t.Errorf("%q", got)
	}
	if got := e.fold(strings.Repeat("y", libctx.MaxPaste)); got != "[4.0 MiB: too much to keep]" {
		t.Errorf("%.40q", got)
	}
	e.forget()
	if got := e.expand(line); got != line {
		t.Errorf("%q", got)
	}
}
