package linefile

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

func TestError(t *testing.T) {
	for _, c := range []struct {
		e    Error
		want string
	}{
		{Error{"perm", 1, "rwz", "is not a triplet"}, `perm: line 1: "rwz": is not a triplet`},
		{Error{"", 0, "", "is empty"}, "is empty"},
		{Error{"env", 3, "a\nb\x1b[1m\u202e", "is odd"}, `env: line 3: "a\nb\x1b[1m\u202e": is odd`},
		{Error{"x", 1, strings.Repeat("ü", 500), "is long"}, `x: line 1: "` + strings.Repeat("ü", 30) + `"…: is long`},
	} {
		if got := c.e.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestInAndAt(t *testing.T) {
	_, name := libctx.ParseTool("a b")
	for _, c := range []struct {
		err  error
		want Error
	}{
		{Refuse(0, "", "is wrong"), Error{"f", 7, "tok", "is wrong"}},
		{Refuse(2, "own", "is wrong"), Error{"f", 7, "own", "is wrong"}},
		{name, Error{"f", 7, "a b", "holds a character other than letters, digits and . _ + -"}},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), Error{"f", 7, "tok", "read: unexpected EOF"}},
	} {
		err := In("f", At(7, "tok", c.err))
		var e *Error
		if !errors.As(err, &e) || *e != c.want || errdefs.KindOf(err) != errdefs.Invalid {
			t.Errorf("%v: %v", c.err, err)
		}
	}
	if In("f", nil) != nil || At(1, "", nil) != nil {
		t.Error("no error became one")
	}
}

func TestSplitAndOne(t *testing.T) {
	for text, want := range map[string]int{"": 0, "\n": 1, "a\n": 1, "a\n\nb\n": 3} {
		if lines, err := Split([]byte(text)); err != nil || len(lines) != want {
			t.Errorf("%q: %q, %v", text, lines, err)
		}
	}
	for text, line := range map[string]int{
		"a": 1, "a\nb": 2, "a\nb\r\n": 2, "a\r": 1, "\x00": 1, "a\n\n\x00\n": 3, "a\n\xff\n": 2, "\ufeffa\n": 1,
		"a\n\xed\xa0\x80\n": 2, // a lone surrogate
	} {
		var e *Error
		if _, err := Split([]byte(text)); !errors.As(err, &e) || e.Line != line {
			t.Errorf("%q: %v", text, err)
		}
	}
	if s, err := One([]byte("a b\n")); err != nil || s != "a b" {
		t.Errorf("%q, %v", s, err)
	}
	for _, text := range []string{"", "\n", "a\nb\n", "a\n\n", "a"} {
		if _, err := One([]byte(text)); errdefs.KindOf(err) != errdefs.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := Check(make([]byte, libctx.MaxControlFile+1)); err == nil || !strings.Contains(err.Error(), "65536") {
		t.Errorf("too large: %v", err)
	}
}

func TestControl(t *testing.T) {
	for _, bad := range []string{"\x00", "a\tb", "\x7f", "\u0085", "\u2028", "\x1b[1m"} {
		if _, found := Control(bad, ""); !found {
			t.Errorf("%q passes", bad)
		}
	}
	for _, good := range []string{"", "a b", "ü€😀", "a\u00a0b"} {
		if r, found := Control(good, ""); found {
			t.Errorf("%q: %q", good, r)
		}
	}
	if _, found := Control("a\tb", "\t"); found {
		t.Error("an exception is refused")
	}
}

func TestCheckPath(t *testing.T) {
	for _, bad := range []string{"", "a//b", "a/", "./a", "a/..", "a\nb", "a\xdc", strings.Repeat("a/", 3000) + "a"} {
		if err := CheckPath(bad); errdefs.KindOf(err) != errdefs.Invalid || len(err.Error()) > 300 {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
	if err := CheckAbsolute("a"); err == nil {
		t.Error("a relative path is absolute")
	}
	if err := CheckAbsolute("/"); err != nil {
		t.Error(err)
	}
}
