package wire

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "plain\ttext\n": "plain\ttext\n", "a\x00b": "a␀b", "a\xffb": "a\uFFFDb", "\xff\xfe": "\uFFFD", "ü": "ü",
	} {
		if got := Clean([]byte(in)); got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	if s, cut := Clip("short", 5); s != "short" || cut {
		t.Errorf("%q, %v", s, cut)
	}
	s, cut := Clip(strings.Repeat("a", 100)+strings.Repeat("z", 100), 120)
	if !cut || len(s) > 120 || !strings.HasPrefix(s, "aaa") || !strings.HasSuffix(s, "zzz") || !strings.Contains(s, "200 bytes in all") {
		t.Errorf("%q, %v", s, cut)
	}
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.StringN(0, 400, -1).Draw(t, "text")
		max := rapid.IntRange(0, 500).Draw(t, "max")
		out, cut := Clip(in, max)
		switch {
		case len(out) > max:
			t.Fatalf("%d bytes", len(out))
		case !utf8.ValidString(out):
			t.Fatalf("%q is not UTF-8", out)
		case cut != (len(in) > max):
			t.Fatalf("cut is %v", cut)
		case !cut && out != in:
			t.Fatal("changed")
		}
	})
}
