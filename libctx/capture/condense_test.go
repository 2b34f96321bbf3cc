package capture

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func condensed(pieces ...string) (string, int64) {
	var b bytes.Buffer
	c := NewCondenser(&b)
	for _, p := range pieces {
		c.Write([]byte(p))
	}
	c.Flush()
	return b.String(), c.Dropped()
}

func TestCondense(t *testing.T) {
	bar := "start\n"
	for i := range 100 {
		bar += fmt.Sprintf("\r%d%%", i+1)
	}
	for in, want := range map[string]string{
		"":                     "",
		"plain\nlines\n":       "plain\nlines\n",
		"no end":               "no end",
		"a\r\nb\r\n":           "a\r\nb\r\n",
		"one\rtwo\rthree\nx":   "three\nx",
		"one\rtwo":             "two",
		"kept\r":               "kept\r",
		"a\r\r\nb":             "a\r\nb",
		"\rx\n":                "x\n",
		"50%\r     \rdone\n":   "done\n",
		bar + "\nafter\r\nend": "start\n100%\nafter\r\nend",
	} {
		got, dropped := condensed(in)
		if got != want || int(dropped) != len(in)-len(want) {
			t.Errorf("%q: %q, %d dropped", in, got, dropped)
		}
	}
	long := strings.Repeat("x", maxPending+10)
	if got, _ := condensed(long, "y\rz\n"); got != long+"z\n" {
		t.Errorf("a long line became %d bytes", len(got))
	}
}

// Whatever pieces it comes in, the output is the same.
func TestCondensePieces(t *testing.T) {
	over := regexp.MustCompile(`[^\n]*\r([^\r\n])`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab\r\n]{0,40}`).Draw(t, "text")
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		got, _ := condensed(pieces...)
		want := regexp.MustCompile(`\r+`).ReplaceAllString(text, "\r")
		for over.MatchString(want) {
			want = over.ReplaceAllString(want, "$1")
		}
		if got != want {
			t.Fatalf("%q becomes %q, not %q", text, got, want)
		}
	})
}
