package fs

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	. "cortexfs.org/tsh/internal/tool/tooltest"

	"pgregory.net/rapid"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

func TestRead(t *testing.T) {
	Place(t, map[string]string{
		"five": "a\nb\nc\nd\ne\n", "open": "a\nb", "empty": "", "crlf": "\ufeffone\r\ntwo\r\n", "lf": "\n\n", "repl": "\ufffd\n",
	})
	for _, c := range []struct {
		args  map[string]any
		text  string
		notes string
	}{
		{map[string]any{"path": "five"}, "a\nb\nc\nd\ne\n", "[lines 1-5 of 5]"},
		{map[string]any{"path": "five", "start": 1, "lines": 9}, "a\nb\nc\nd\ne\n", "[lines 1-5 of 5]"},
		{map[string]any{"path": "five", "lines": 2}, "a\nb\n", "[lines 1-2 of 5; next: start=3]"},
		{map[string]any{"path": "five", "start": 2, "lines": 2}, "b\nc\n", "[lines 2-3 of 5; next: start=4]"},
		{map[string]any{"path": "five", "start": 4}, "d\ne\n", "[lines 4-5 of 5]"},
		{map[string]any{"path": "five", "start": 5, "numbers": true}, "     5\te\n", "[lines 5-5 of 5]"},
		{map[string]any{"path": "open"}, "a\nb", "[lines 1-2 of 2]"},
		{map[string]any{"path": "open", "start": 2}, "b", "[lines 2-2 of 2]"},
		{map[string]any{"path": "open", "lines": 1}, "a\n", "[lines 1-1 of 2; next: start=2]"},
		{map[string]any{"path": "empty"}, "", "[empty file]"},
		{map[string]any{"path": "crlf"}, "\ufeffone\r\ntwo\r\n", "[lines 1-2 of 2]"},
		{map[string]any{"path": "crlf", "start": 2}, "two\r\n", "[lines 2-2 of 2]"},
		{map[string]any{"path": "lf", "numbers": true}, "     1\t\n     2\t\n", "[lines 1-2 of 2]"},
		{map[string]any{"path": "repl"}, "\ufffd\n", "[lines 1-1 of 1]"},
		{map[string]any{"path": "five", "start": 2, "column": 1}, "b\n", "[line 2 of 5, characters 1-1 of 1; next: start=3]"},
		{map[string]any{"path": "open", "start": 2, "column": 1, "lines": 1}, "b", "[line 2 of 2, characters 1-1 of 1]"},
		{map[string]any{"path": "crlf", "column": 3}, "ne\r\n", "[line 1 of 2, characters 3-5 of 5; next: start=2]"},
		{map[string]any{"args": []string{"crlf", "2", "--column", "2", "--numbers"}}, "     2\two\r\n", "[line 2 of 2, characters 2-4 of 4]"},
		{map[string]any{"args": []string{"five", "2", "1"}}, "b\n", "[lines 2-2 of 5; next: start=3]"},
		{map[string]any{"args": []string{"--numbers", "five", "--start=5"}}, "     5\te\n", "[lines 5-5 of 5]"},
	} {
		out, err := Call(t, Read, c.args)
		if err != nil || out.Text() != c.text || len(out.Notes()) != 2 || out.Notes()[1] != c.notes || out.IsTruncated() {
			t.Errorf("%v: %q %q %v", c.args, out.Text(), out.Notes(), err)
		}
	}
	for _, args := range []map[string]any{
		{}, {"path": ""}, {"path": "five", "start": 0}, {"path": "five", "start": -1}, {"path": "five", "lines": 0},
		{"path": "five", "start": 6}, {"path": "five", "column": 0}, {"path": "five", "column": 2}, {"path": "lf", "column": 1},
		{"path": "empty", "column": 1}, {"path": "five", "start": 6, "column": 1}, {"path": "five", "column": 1, "lines": 2}, {"path": "empty", "start": 2}, {"path": nil}, {"path": 1}, {"path": "five", "offset": 1},
		{"path": "a\x00b"}, {"args": []string{"five", "x"}}, {"args": []string{"five", "1", "1", "1"}},
	} {
		_, err := Call(t, Read, args)
		mustRefuse(t, err, errdefs.Invalid)
	}
}

func TestReadLong(t *testing.T) {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "line %d é\n", i+1)
	}
	Place(t, map[string]string{"long": b.String()})
	// Following the notes gives the file back.
	var all strings.Builder
	for start := 1; ; {
		out, err := Call(t, Read, map[string]any{"path": "long", "start": start})
		Must(t, err)
		if n := len(out.Content()); n > libctx.MaxToolResult {
			t.Fatalf("%d bytes", n)
		}
		all.WriteString(out.Text())
		if !out.IsTruncated() {
			break
		}
		var from, to, total, next int
		if _, err := fmt.Sscanf(out.Notes()[1], "[lines %d-%d of %d; next: start=%d]", &from, &to, &total, &next); err != nil ||
			from != start || total != 20_000 || next != to+1 {
			t.Fatalf("note %q, %v", out.Notes(), err)
		}
		start = next
	}
	if all.String() != b.String() {
		t.Error("the parts are not the whole")
	}
}

func TestReadHash(t *testing.T) {
	text := strings.Repeat("é and more\n", 40_000)
	Place(t, map[string]string{"f": text})
	out, err := Call(t, Read, map[string]any{"path": "f", "start": 7, "lines": 1})
	if want := fmt.Sprintf("[sha256 %x]", sha256.Sum256([]byte(text))); err != nil || out.Notes()[0] != want {
		t.Errorf("%q, %v", out.Notes(), err)
	}
}

func TestReadHugeLine(t *testing.T) {
	Place(t, map[string]string{
		"huge": "first\n" + strings.Repeat("é", 1<<20) + "\r\nlast\n", "only": strings.Repeat("x", 1<<20),
		"just": strings.Repeat("é", libctx.MaxLineShown) + "\n",
	})
	out, err := Call(t, Read, map[string]any{"path": "huge"})
	if want := "first\n" + strings.Repeat("é", libctx.MaxLineShown) + "…[2093153 bytes more]\nlast\n"; err != nil || out.Text() != want || !out.IsTruncated() {
		t.Errorf("%.80q %q %v", out.Text(), out.Notes(), err)
	}
	if len(out.Notes()) != 3 || !strings.HasPrefix(out.Notes()[1], "[1 of these lines") || !strings.HasSuffix(out.Notes()[1], "; line 2 goes on with start=2 column=2001]") || out.Notes()[2] != "[lines 1-3 of 3]" {
		t.Errorf("%q", out.Notes())
	}
	out, err = Call(t, Read, map[string]any{"path": "only", "numbers": true})
	if err != nil || out.Text() != "     1\t"+strings.Repeat("x", libctx.MaxLineShown)+"…[1046576 bytes more]" || !out.IsTruncated() {
		t.Errorf("%q %v", out.Notes(), err)
	}
	if out, err = Call(t, Read, map[string]any{"path": "just"}); err != nil || out.IsTruncated() || len(out.Notes()) != 2 {
		t.Errorf("%q %v", out.Notes(), err)
	}
}

// Whatever pieces a text comes in, stretches that follow one another are the
// line.
func TestStretchesAreTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[aé€\n\r]{0,200}`).Draw(t, "text")
		limit := rapid.IntRange(5, 50).Draw(t, "limit")
		lines := strings.SplitAfter(text, "\n")
		n := rapid.IntRange(1, len(lines)).Draw(t, "line")
		line := lines[n-1]
		chars := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
		got := ""
		for column := 1; column <= chars; {
			s := stretch{line: n, column: column, max: limit}
			for rest := []byte(text); len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
				for n < len(rest) && !utf8.RuneStart(rest[n]) {
					n++
				}
				s.take(rest[:n])
				rest = rest[n:]
			}
			if len(s.out) > limit || s.chars != chars || s.shown == 0 || s.check("p") != nil || !utf8.Valid(s.out) || s.full != (column+s.shown <= chars) {
				t.Fatalf("%+v", s)
			}
			if want := strings.Count(text, "\n") + min(1, len(lines[len(lines)-1])); s.total() != want {
				t.Fatalf("%d lines, not %d", s.total(), want)
			}
			got += string(s.out)
			column += s.shown
		}
		if chars > 0 && got != line {
			t.Fatalf("%q, not %q", got, line)
		}
	})
}

func TestReadRefusesWhatIsNotText(t *testing.T) {
	Place(t, map[string]string{
		"nul": "a\x00b", "latin": "caf\xe9\n", "elf": "\x7fELF\x02\x01\x01\x00", "utf16": "\xff\xfea\x00", "torn": "abc\xe2\x82",
		"late": strings.Repeat("x", 300_000) + "\x80", "surrogate": "\xed\xa0\x80",
	})
	for name, words := range map[string][]string{
		"nul": {"binary file of 3 bytes", "byte 1 "}, "latin": {"binary file of 5 bytes", "byte 3 "}, "elf": {"byte 7 "}, "utf16": {"byte 0 "},
		"torn": {"byte 3 "}, "late": {"300001 bytes", "byte 300000 "}, "surrogate": {"byte 0 "},
	} {
		out, err := Call(t, Read, map[string]any{"path": name})
		mustRefuse(t, err, errdefs.Invalid, words...)
		if out.Content() != "" {
			t.Errorf("%s: %q is shown all the same", name, out.Content())
		}
	}
}

func TestReadSizeLimit(t *testing.T) {
	Place(t, nil)
	for size, ok := range map[int64]bool{33 << 20: false, libctx.MaxFileRead + 1: false} {
		f, err := os.Create("big")
		Must(t, err)
		Must(t, f.Truncate(size))
		Must(t, f.Close())
		_, err = Call(t, Read, map[string]any{"path": "big", "lines": 1})
		if ok != (err == nil) {
			t.Errorf("%d bytes: %v", size, err)
		}
		mustRefuse(t, err, errdefs.TooBig, fmt.Sprint(size), fmt.Sprint(libctx.MaxFileRead))
	}
	Must(t, os.WriteFile("full", []byte(strings.Repeat(strings.Repeat("x", 1023)+"\n", libctx.MaxFileRead>>10)), 0o644))
	out, err := Call(t, Read, map[string]any{"path": "full", "start": libctx.MaxFileRead >> 10})
	if err != nil || out.Len() != 1024 {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

func TestReadWithoutPermission(t *testing.T) {
	Place(t, map[string]string{"closed": "x"})
	Must(t, os.Chmod("closed", 0))
	_, err := Call(t, Read, map[string]any{"path": "closed"})
	if os.Geteuid() == 0 {
		if err != nil {
			t.Error(err) // root reads everything
		}
		return
	}
	mustRefuse(t, err, errdefs.Denied, "closed")
}

// Whatever pieces a text comes in, a view shows the same lines of it.
func TestViewDoesNotDependOnPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[aé\n\r]{0,200}`).Draw(t, "text")
		first := rapid.IntRange(1, 20).Draw(t, "first")
		count := rapid.IntRange(1, 20).Draw(t, "count")
		limit := rapid.IntRange(4, 100).Draw(t, "limit")
		width := rapid.IntRange(1, 20).Draw(t, "width")
		v := view{first: first, end: first + count, max: limit, width: width}
		for rest := []byte(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			for n < len(rest) && !utf8.RuneStart(rest[n]) {
				n++
			}
			v.take(rest[:n])
			rest = rest[n:]
		}
		v.finish()
		lines := strings.SplitAfter(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		if v.total() != len(lines) {
			t.Fatalf("%d lines, not %d", v.total(), len(lines))
		}
		want := ""
		for i := first; i < first+count && i <= len(lines); i++ {
			line, ending := strings.CutSuffix(lines[i-1], "\n")
			if r := []rune(line); len(r) > width {
				line = fmt.Sprintf("%s…[%d bytes more]", string(r[:width]), len(string(r[width:])))
			}
			if ending {
				line += "\n"
			}
			if len(want)+len(line) > limit {
				break
			}
			want += line
		}
		if string(v.out) != want {
			t.Fatalf("%q, not %q", v.out, want)
		}
	})
}

func BenchmarkRead1MiB(b *testing.B) {
	Place(b, map[string]string{"f": strings.Repeat("a line of text that is quite ordinary, as they go\n", 1<<20/50)})
	b.Run("tool", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			if _, err := Call(b, Read, map[string]any{"path": "f"}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			if _, err := os.ReadFile("f"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
