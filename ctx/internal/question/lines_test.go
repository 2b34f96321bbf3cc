package question

import (
	"strings"
	"testing"
	"unicode"

	"cortexfs.org/ctx/internal/render"
	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

func TestLines(t *testing.T) {
	for _, c := range []struct {
		raw     string
		columns int
		want    string
	}{
		{`{"cmd":"make"}`, 80, "cmd │ make"},
		{`{"cmd":"make\nrm -rf /\n","timeout_ms":5}`, 80, "cmd │ make\n  │ rm -rf /\n  │ \ntimeout_ms = 5"},
		{`{"args":["-c","a\nb"]}`, 80, "args 1 │ -c\nargs 2 │ a\n  │ b"},
		{`{"args":[]}`, 80, "args = []"},
		{`{}`, 80, ""},
		{`{"a":{"b":[1,"x\u202e"]}}`, 80, `a = {"b":[1,"x\u202e"]}`},
		{"{\"cmd\":\"a\u202eb\\u001b[2J\\tc\\u00a0\\u2003d  \"}", 80, `cmd │ a\u202eb\x1b[2J\tc\u00a0\u2003d··`},
		{`{"cmd":"x\ncwd │ /"}`, 80, "cmd │ x\n  │ cwd │ /"},
		{`{"cwd │ \n":"y"}`, 80, `"cwd │ \n" │ y`},
		{`{"cmd":"0123456789"}`, 12, "cmd │ 012345\n  ┆ 6789"},
		{`{"cmd":"日本語日本語"}`, 12, "cmd │ 日本語\n  ┆ 日本語"},
		{`{"cmd":"e\u0301\u0301\u0301x"}`, 80, "cmd │ e\u0301\u0301\\u0301x"},
		{"{\"cmd\":\"l\ufe0fs \ufe0e\"}", 80, `cmd │ l\ufe0fs \ufe0e`},
		{`[1]`, 80, "arguments = [1]"},
	} {
		if got := strings.Join(Lines([]byte(c.raw), c.columns), "\n"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.raw, got, c.want)
		}
	}
}

// TestLinesAreWhole: whatever the text, no line is wider than the terminal, nothing
// in it acts on one, and every letter of it is there in its order.
func TestLinesAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, columns := rapid.String().Draw(t, "text"), rapid.IntRange(12, 200).Draw(t, "columns")
		raw, err := json.Marshal(map[string]string{"cmd": text})
		if err != nil {
			t.Fatal(err)
		}
		var shown strings.Builder
		for _, line := range Lines(raw, columns) {
			if render.Width(line) > columns {
				t.Fatalf("%q is %d wide", line, render.Width(line))
			}
			for _, r := range line {
				if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) || r != ' ' && unicode.IsSpace(r) {
					t.Fatalf("%q has %U", line, r)
				}
			}
			_, rest, _ := strings.Cut(strings.Replace(line, "┆", "│", 1), "│ ")
			shown.WriteString(rest)
		}
		left := shown.String()
		for _, r := range text {
			if !unicode.IsLetter(r) {
				continue
			}
			_, rest, ok := strings.Cut(left, string(r))
			if !ok && r < 0x3164 {
				t.Fatalf("%q is not in %q", r, shown.String())
			}
			if ok {
				left = rest
			}
		}
	})
}
