package inert

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"plain\ttext\n":             "plain\ttext\n",
		"grün 日本 🙂 e\u0301":         "grün 日本 🙂 e\u0301",
		"heart \u2764\ufe0f":        "heart \u2764\ufe0f",
		"a\rb\r\n":                  `a\rb\r` + "\n",
		"\x1b[31mred\x1b[0m":        `\x1b[31mred\x1b[0m`,
		"\x1b]0;title\x07":          `\x1b]0;title\x07`,
		"\x00\x08\x0b\x0c\x7f":      `\x00\x08\x0b\x0c\x7f`,
		"\u009b31m \u0085 \u0090":   `\u009b31m \u0085 \u0090`,
		"\x9b31m":                   `\x9b31m`,
		"user\u202etxt.exe":         `user\u202etxt.exe`,
		"a\u200bb\u200dc\ufeff":     `a\u200bb\u200dc\ufeff`,
		"x\u2066y\u2069\u061c":      `x\u2066y\u2069\u061c`,
		"line\u2028para\u2029":      `line\u2028para\u2029`,
		"tag\U000e0041":             `tag\U000e0041`,
		"sel\U000e0101 \ufe00":      `sel\U000e0101 \ufe00`,
		"fill\u3164 \u115f \u00ad.": `fill\u3164 \u115f \u00ad.`,
		"\xff\xfe":                  `\xff\xfe`,
		"cut \xe6\x97":              `cut \xe6\x97`,
		"surrogate \xed\xa0\x80":    `surrogate \xed\xa0\x80`,
		"over \xc0\xaf":             `over \xc0\xaf`,
		"replacement \ufffd":        "replacement \ufffd",
		"arabic number sign \u0600": "arabic number sign \u0600",
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Line("a\n\tb\x1b"); got != `a\n\tb\x1b` {
		t.Errorf("Line: %q", got)
	}
}

// harmless reports what is left in s that Text promises to take out.
func harmless(s string) bool {
	for _, r := range s {
		if hidden(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

func FuzzInert(f *testing.F) {
	f.Add([]byte("plain"), uint8(1))
	f.Add([]byte("日本\x1b[2J\u202e\xe6\x97"), uint8(2))
	f.Add([]byte("\xf0\x9f\x99\x82\xf0\x9f\xf0\x9f\x99"), uint8(1))
	f.Add([]byte("\xe6\x97\xe6\x97\xa5\x80\xff"), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		whole := Text(string(in))
		if !harmless(whole) {
			t.Fatalf("Text(%q) = %q", in, whole)
		}
		var s Inert
		var out []byte
		step := int(size%7) + 1
		for i := 0; i < len(in); i += step {
			out = s.Append(out, in[i:min(i+step, len(in))])
			if !harmless(string(out)) {
				t.Fatalf("after %q: %q", in[:i], out)
			}
		}
		if out = s.Flush(out); string(out) != whole {
			t.Fatalf("in steps of %d %q gives %q, at once %q", step, in, out, whole)
		}
		if again := Text(whole); again != whole {
			t.Fatalf("twice inert: %q, once %q", again, whole)
		}
		if line := Line(string(in)); strings.ContainsAny(line, "\n\t") || !harmless(line) {
			t.Fatalf("Line(%q) = %q", in, line)
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add("plain")
	f.Add("\u009b31m\u202e\u2028\U000e0041\x7f")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		line, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		out := JSON(line)
		if !harmless(string(out)) {
			t.Fatalf("JSON(%q) = %q", line, out)
		}
		var back map[string]string
		if err := json.Unmarshal(out, &back); err != nil || back["text"] != text {
			t.Fatalf("%q became %q: %v", text, back["text"], err)
		}
	})
}
