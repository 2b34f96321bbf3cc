package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// all reads until an error and returns the lines with it.
func all(r io.Reader, max int) (lines []string, err error) {
	l := NewLines(r, max)
	for {
		line, err := l.Next()
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("a", 100_000) // more than the reader's own buffer
	for name, c := range map[string]struct {
		in   string
		want []string
		end  error
	}{
		"nothing":         {"", nil, io.EOF},
		"one":             {"a\n", []string{"a"}, io.EOF},
		"empty lines":     {"\n\n", []string{"", ""}, io.EOF},
		"CR is kept":      {"a\r\nb\n", []string{"a\r", "b"}, io.EOF},
		"torn":            {"a\nb", []string{"a"}, ErrTorn},
		"long":            {long + "\nb\n", []string{long, "b"}, io.EOF},
		"long and torn":   {"b\n" + long, []string{"b"}, ErrTorn},
		"exactly the max": {strings.Repeat("b", 199_999) + "\n", []string{strings.Repeat("b", 199_999)}, io.EOF},
	} {
		for kind, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
		} {
			got, err := all(r, 200_000)
			if err != c.end || strings.Join(got, "|") != strings.Join(c.want, "|") || len(got) != len(c.want) {
				t.Errorf("%s, %s: %d lines, %v", name, kind, len(got), err)
			}
		}
	}
}

func TestLinesTooLong(t *testing.T) {
	for _, n := range []int{200_000, 10 << 20} {
		got, err := all(strings.NewReader("a\n"+strings.Repeat("b", n)+"\n"), 200_000)
		if len(got) != 1 || !errdefs.Is(err, errdefs.TooBig) {
			t.Errorf("%d bytes: %d lines, %v", n+1, len(got), err)
		}
	}
}

func TestLinesReadError(t *testing.T) {
	broken := errors.New("broken")
	got, err := all(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 64)
	if len(got) != 1 || err != broken {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\n"), 4)
	f.Add([]byte("\n\nlonger than that\n"), 8)
	f.Add([]byte("torn"), 16)
	f.Fuzz(func(t *testing.T, in []byte, max int) {
		if max < 1 || max > 1<<20 {
			return
		}
		got, err := all(iotest.HalfReader(bytes.NewReader(in)), max)
		rest := in
		for _, line := range got {
			if len(line)+1 > max {
				t.Fatalf("a line of %d bytes under a limit of %d", len(line)+1, max)
			}
			if !bytes.HasPrefix(rest, []byte(line+"\n")) {
				t.Fatalf("line %q is not what came", line)
			}
			rest = rest[len(line)+1:]
		}
		switch {
		case err == io.EOF:
			if len(rest) > 0 {
				t.Fatalf("lost %q", rest)
			}
		case err == ErrTorn:
			if len(rest) == 0 || bytes.IndexByte(rest, '\n') >= 0 {
				t.Fatalf("torn with %q left", rest)
			}
		case errdefs.Is(err, errdefs.TooBig):
			if i := bytes.IndexByte(rest, '\n'); i >= 0 && i+1 <= max {
				t.Fatalf("%q is not too long", rest[:i+1])
			}
		default:
			t.Fatal(err)
		}
	})
}

func TestObjectRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"nothing":           "",
		"white space":       " \t ",
		"null":              "null",
		"a list":            `[{"op":"ping"}]`,
		"a duplicate name":  `{"op":"ping","op":"ping"}`,
		"a duplicate below": `{"op":"ping","x":{"a":1,"a":2}}`,
		"20,000 levels":     `{"op":"ping","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
		"20,000 objects":    `{"op":"ping","x":` + strings.Repeat(`{"a":`, 20000) + `1` + strings.Repeat("}", 20000) + `}`,
		"invalid UTF-8":     "{\"op\":\"ping\",\"x\":\"\xc3\x28\"}",
		"a lone surrogate":  `{"op":"ping","x":"\ud800"}`,
		"a byte order mark": "\ufeff{\"op\":\"ping\"}",
		"cut short":         `{"op":"pi`,
		"a NUL":             "{\"op\":\"ping\"}\x00",
		"a wrong type":      `{"op":7}`,
		"a huge number":     `{"op":1e99999}`,
		"a bad number":      `{"op":"ping","x":01}`,
	} {
		var v struct {
			Op string `json:"op"`
		}
		err := Object([]byte(line), &v)
		if !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s := err.Error(); strings.Contains(s, "\n") || strings.Contains(s, "Go ") || len(s) > 200 {
			t.Errorf("%s: not a short plain line: %q", name, s)
		}
	}
}

func TestMarshalFrameLimit(t *testing.T) {
	d := &Delta{Head: Head{Type: "delta"}}
	empty, err := MarshalFrame(d)
	if err != nil {
		t.Fatal(err)
	}
	d.Text = strings.Repeat("a", libctx.MaxFrame-len(empty))
	if line, err := MarshalFrame(d); err != nil || len(line) != libctx.MaxFrame {
		t.Errorf("%d bytes, %v", len(line), err)
	}
	d.Text += "a"
	if _, err := MarshalFrame(d); !errdefs.Is(err, errdefs.TooBig) {
		t.Errorf("one byte more: %v", err)
	}
	if _, err := MarshalFrame(&Delta{Text: "\xff"}); !errdefs.Is(err, errdefs.Internal) {
		t.Errorf("invalid UTF-8: %v", err)
	}
}
