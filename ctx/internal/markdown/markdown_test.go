package markdown

import (
	"strings"
	"testing"

	"cortexfs.org/libctx/inert"
)

func TestRender(t *testing.T) {
	for _, c := range []struct{ in, plain, color string }{
		{"", "", ""},
		{"hello", "hello\n", "hello\n"},
		{"one\ntwo", "one\ntwo\n", "one\ntwo\n"},
		{"# Head\ntext", "# Head\n\ntext\n", "\x1b[1mHead\x1b[0m\n\ntext\n"},
		{"a **b** *c* `d e`", "a **b** *c* `d e`\n", "a \x1b[1mb\x1b[0m \x1b[3mc\x1b[0m \x1b[36md\x1b[0m \x1b[36me\x1b[0m\n"},
		{"- a\n- b\n  - c\n\nend", "• a\n• b\n  • c\n\nend\n", "• a\n• b\n  • c\n\nend\n"},
		{"3. a\n4. b", "3. a\n4. b\n", "3. a\n4. b\n"},
		{"- [x] done\n- [ ] open", "• [x] done\n• [ ] open\n", "• [x] done\n• [ ] open\n"},
		{"> a\n> b", "│ a\n│ b\n", "│ a\n│ b\n"},
		{"```go\nx := 1\n\n\ty()\n```", "  x := 1\n\n  \ty()\n", "  \x1b[36mx := 1\x1b[0m\n  \x1b[36m\x1b[0m\n  \x1b[36m\ty()\x1b[0m\n"},
		{"[here](http://x) <http://y>", "here (http://x) http://y\n", "here (http://x) http://y\n"},
		{"| a | b |\n|---|---|\n| 1 | long |", "a  b\n1  long\n", "\x1b[1ma  b\x1b[0m\n1  long\n"},
		{"<b>x</b>", "<b>x</b>\n", "<b>x</b>\n"},
		{"&lt;&#27;[2J &#x202e;", `<\x1b[2J \u202e` + "\n", `<\x1b[2J \u202e` + "\n"},
		{"\x1b[2Jx\rY", `\x1b[2Jx\rY` + "\n", `\x1b[2Jx\rY` + "\n"},
		{"```\n\x1b]0;x\a\n```", `  \x1b]0;x\x07` + "\n", "  \x1b[36m" + `\x1b]0;x\x07` + "\x1b[0m\n"},
	} {
		if got := Render(c.in, 80, false); got != c.plain {
			t.Errorf("%q plain:\n%q\nwant\n%q", c.in, got, c.plain)
		}
		if got := Render(c.in, 80, true); got != c.color {
			t.Errorf("%q:\n%q\nwant\n%q", c.in, got, c.color)
		}
	}
}

func TestWrap(t *testing.T) {
	got := Render("- the quick brown fox jumps over the lazy dog\n- 日本語日本語 日本語日本語", 24, false)
	want := "• the quick brown fox\n  jumps over the lazy\n  dog\n• 日本語日本語\n  日本語日本語\n"
	if got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

// TestHostile: shapes that a parser could take long for, or that nest without
// end, come back, and come back inert.
func TestHostile(t *testing.T) {
	for _, in := range []string{
		strings.Repeat(">", 200_000), strings.Repeat("- ", 100_000), strings.Repeat("*", 200_000), strings.Repeat("[", 100_000),
		strings.Repeat("`", 100_000), strings.Repeat("**a ", 60_000), strings.Repeat("![", 100_000), strings.Repeat("<", 200_000),
		strings.Repeat("> ", 60) + "x\n" + strings.Repeat("y\n", 50_000), strings.Repeat("|a", 50_000) + "\n" + strings.Repeat("|-", 50_000),
	} {
		check(t, in)
	}
}

func check(t *testing.T, in string) {
	t.Helper()
	out := Render(in, 40, false)
	if out != inert.Text(out) {
		t.Errorf("%.40q is not inert", in)
	}
	styled := Render(in, 40, true)
	for _, s := range []string{"\x1b[0m", "\x1b[1m", "\x1b[3m", "\x1b[9m", "\x1b[36m"} {
		styled = strings.ReplaceAll(styled, s, "")
	}
	if styled != inert.Text(styled) {
		t.Errorf("%.40q has other styles than ours", in)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("# a\n\n- b\n\n> c `d` **e** [f](g)\n\n| h |\n|---|\n| i |\n")
	f.Add("&#27;[2J\x1b[2J\x9b\u202e")
	f.Add("<!-- x\n--> <b>\n\n***\n\n1) a\n2) b\n\n    code\n")
	f.Fuzz(check)
}
