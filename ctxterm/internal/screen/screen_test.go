package screen

import (
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/libctx/termwire"
)

// small is a terminal of eight columns and four rows with that output.
func small(output string) *Screen {
	s := New(termwire.Size{Cols: 8, Rows: 4}, Options{Scrollback: 100})
	s.Write([]byte(output))
	return s
}

// shows is the text of the rows, without empty ones at the end, and the cursor.
func shows(s *Screen) string {
	x, y := s.Cursor()
	return fmt.Sprintf("%s @%d,%d", strings.TrimRight(strings.Join(s.Text(), "|"), "|"), x, y)
}

func TestText(t *testing.T) {
	full := "aaaaaaaabbbbbbbbccccccccdddddddd"
	for _, c := range []struct{ output, want string }{
		{"", " @0,0"},
		{"abc", "abc @3,0"},
		{"abcdefgh", "abcdefgh @7,0"},
		{"abcdefghi", "abcdefgh|i @1,1"},
		{"abcdefgh\r\ni", "abcdefgh|i @1,1"},
		{"abcdefgh\bX", "abcdefXh @7,0"},
		{"ab\rX", "Xb @1,0"},
		{"a\nb\vc\fd", "a| b|  c|   d @4,3"},
		{"\x1b[20ha\nb", "a|b @1,1"},
		{"a\x1bEb\x1bDc\x1bMd", "a|b d| c @3,1"},
		{"1\r\n2\r\n3\r\n4\r\n5", "2|3|4|5 @1,3"},
		{"a\x1bMb", " b|a @2,0"},
		// Tabs.
		{"\tx", "       x @7,0"},
		{"\x1b[3g\x1b[4G\x1bH\r\tx", "   x @4,0"},
		{"\x1b[4G\x1bH\x1b[g\r\tx", "       x @7,0"},
		{"\x1b[4G\x1bH\x1b[8G\x1b[Zx\x1b[2Zy", "y  x @1,0"},
		{"\x1b[4G\x1bH\r\x1b[2Ix", "       x @7,0"},
		{"\x1b[3g\x1b[?5W\tx", "       x @7,0"},
		// Wide characters, and what combines.
		{"漢字", "漢字 @4,0"},
		{"abcdefg漢", "abcdefg|漢 @2,1"},
		{"\x1b[?7labcdefg漢x", "abcdefgx @7,0"},
		{"漢\bx", " x @2,0"},
		{"漢\rx", "x @1,0"},
		{"漢字\x1b[3G\x1b[P", "漢 @2,0"},
		{"ab漢\x1b[2G\x1b[5@", "a     b @1,0"},
		{"e\u0301x", "e\u0301x @2,0"},
		{"abcdefgh\u0301", "abcdefgh\u0301 @7,0"},
		{"\u0301x", "x @1,0"},
		{"👩\u200d💻", "👩\u200d💻 @4,0"},
		{"❤\ufe0fx", "❤\ufe0fx @2,0"},
		{"\u1112\u1161\u11ab.", "\u1112\u1161\u11ab. @3,0"},
		// What is not UTF-8.
		{"a\xffb", "a�b @3,0"},
		{"a\xe2\x82b", "a�b @3,0"},
		{"\xed\xa0\x80", "��� @3,0"},
		{"\xc3\x1b[1mA", "�A @2,0"},
		{"\xc2\x9b2CA\xc2\x85B", "  A|B @1,1"},
		// Moving.
		{"\x1b[2;3Ha", "|  a @3,1"},
		{"\x1b[99;99Ha", "|||       a @7,3"},
		{"\x1b[0;0Ha\x1b[3db\x1b[6`c", "a|| b   c @6,2"},
		{"\x1b[2B\x1b[2Ca\x1b[A\x1b[Db", "|  b|  a @3,1"},
		{"\x1b[2Ea\x1b[Fb\x1b[3ec", "|b|a| c @2,3"},
		{"ab\x1b7\x1b[3;3Hc\x1b8d", "abd||  c @3,0"},
		{"ab\x1b[s\x1b[3;3Hc\x1b[ud", "abd||  c @3,0"},
		{"abcdefgh\x1b7\x1b[H\x1b8i", "abcdefgh|i @1,1"},
		// Erasing, inserting, deleting.
		{full + "\x1b[2;4H\x1b[K", "aaaaaaaa|bbb|cccccccc|dddddddd @3,1"},
		{full + "\x1b[2;4H\x1b[1K", "aaaaaaaa|    bbbb|cccccccc|dddddddd @3,1"},
		{full + "\x1b[2;4H\x1b[2K", "aaaaaaaa||cccccccc|dddddddd @3,1"},
		{full + "\x1b[2;4H\x1b[J", "aaaaaaaa|bbb @3,1"},
		{full + "\x1b[2;4H\x1b[1J", "|    bbbb|cccccccc|dddddddd @3,1"},
		{full + "\x1b[2;4H\x1b[2J", " @3,1"},
		{full + "\x1b[2;4H\x1b[2X", "aaaaaaaa|bbb  bbb|cccccccc|dddddddd @3,1"},
		{"abcd\x1b[2G\x1b[2P", "ad @1,0"},
		{"abcd\x1b[2G\x1b[2@", "a  bcd @1,0"},
		{"abcd\x1b[2G\x1b[4hXY", "aXYbcd @3,0"},
		{full + "\x1b[2;4H\x1b[L", "aaaaaaaa||bbbbbbbb|cccccccc @0,1"},
		{full + "\x1b[2;4H\x1b[2M", "aaaaaaaa|dddddddd @0,1"},
		{full + "\x1b[S", "bbbbbbbb|cccccccc|dddddddd @7,3"},
		{full + "\x1b[2T", "||aaaaaaaa|bbbbbbbb @7,3"},
		{"ab\x1b[3bc", "abbbbc @6,0"},
		{"ab\x1b[m\x1b[3bc", "abc @3,0"},
		{"漢\x1b[b", "漢漢 @4,0"},
		// Margins and origin.
		{full + "\x1b[2;3r\x1b[3;1H\nX", "aaaaaaaa|cccccccc|X|dddddddd @1,2"},
		{full + "\x1b[2;3r\x1b[4;1H\nX", "aaaaaaaa|bbbbbbbb|cccccccc|Xddddddd @1,3"},
		{full + "\x1b[2;3r\x1b[2;1H\x1bMX", "aaaaaaaa|X|bbbbbbbb|dddddddd @1,1"},
		{"\x1b[2;3r\x1b[?6hX\x1b[9;1HY", "|X|Y @1,2"},
		{"\x1b[2;3r\x1b[2;1H\x1b[9AX\x1b[9BY", "|X| Y @2,2"},
		{"\x1b[3;2rX", "X @1,0"},
		// Character sets.
		{"\x1b(0lqk\x1b(Bq", "┌─┐q @4,0"},
		{"\x1b)0q\x0eq\x0fq", "q─q @3,0"},
		{"\x1b*0q\x1bNqq", "q─q @3,0"},
		{"\x1b+A#\x1bO##", "#£# @3,0"},
		// The alternate screen.
		{"ab\x1b[?1049hX", "  X @3,0"},
		{"ab\x1b[?1049h\x1b[3;3HX\x1b[?1049lc", "abc @3,0"},
		{"ab\x1b[?47h\x1b[3;3HX\x1b[?47lc", "ab||   c @4,2"},
		// Sequences that are cut off, unknown, or hold others.
		{"a\x1b[3\x18b", "ab @2,0"},
		{"a\x1b[3\x1b[2Cb", "a  b @4,0"},
		{"a\x1b[\r2Cb", "a b @3,0"},
		{"a\x1b[?1;2$#zb", "ab @2,0"},
		{"a\x1b]2;title\x1b[Cb", "a b @3,0"},
		{"a\x1b_secret\x1b\\b\x1b^x\x1b\\c\x1bXx\x1b\\d\x1bPzz\x1b\\e", "abcde @5,0"},
		{"a\x1b]52;c;aGVsbG8=\ab", "ab @2,0"},
		{"\x1b#8\x1b[2;2H\x1b[K", "EEEEEEEE|E|EEEEEEEE|EEEEEEEE @1,1"},
		{full + "\x1bcx", "x @1,0"},
	} {
		if got := shows(small(c.output)); got != c.want {
			t.Errorf("%q shows %q, not %q", c.output, got, c.want)
		}
	}
}

func TestStyle(t *testing.T) {
	for _, c := range []struct{ output, want string }{
		{"\x1b[1;2;3;4;5;7;8;9;53mx", "0;1;2;3;5;7;8;9;53;4"},
		{"\x1b[1;2;3;4;5;7;8;9;53m\x1b[22;23;24;25;27;28;29;55mx", "0"},
		{"\x1b[31;42;97;101mx", "0;97;101"},
		{"\x1b[38;5;9;48;5;200mx", "0;91;48;5;200"},
		{"\x1b[38;2;1;2;3;48:2::4:5:6mx", "0;38;2;1;2;3;48;2;4;5;6"},
		{"\x1b[38:5:3;1mx", "0;1;33"},
		{"\x1b[38:2:7:8:9mx", "0;38;2;7;8;9"},
		{"\x1b[38;2;1;2;300;1mx", "0;1"},
		{"\x1b[38;5;300;1mx", "0;1"},
		{"\x1b[38;9;1mx", "0;1"},
		{"\x1b[38mx", "0"},
		{"\x1b[1;38;2;1mx", "0;1"},
		{"\x1b[4:3;58:5:9mx", "0m\x1b[4:3m\x1b[58:5:9"},
		{"\x1b[4:2;58;2;1;2;3mx", "0m\x1b[4:2m\x1b[58:2::1:2:3"},
		{"\x1b[21mx", "0m\x1b[4:2"},
		{"\x1b[4:3m\x1b[4:0;59mx", "0"},
		{"\x1b[4:9mx", "0"},
		{"\x1b[1m\x1b[mx", "0"},
		{"\x1b[1;;4mx", "0;4"},
		{"\x1b[>4;1mx", "0"},
		{"\x1b[44m\x1b[K", "0;44"},
		{"\x1b[1;4;44m\x1b[2J", "0;44"},
		{"\x1b[44m\x1b[1@", "0;44"},
	} {
		s := small(c.output)
		if got := string(appendSGR(nil, s.grid.rows[0].at(0).style)); got != "\x1b["+c.want+"m" {
			t.Errorf("%q is drawn as %q, not %q", c.output, got, c.want)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{"\x1b[5n", "\x1b[0n"},
		{"ab\x1b[6n", "\x1b[1;3R"},
		{"\x1b[2;3r\x1b[?6h\x1b[2;2H\x1b[6n\x1b[?6n", "\x1b[2;2R\x1b[?2;2R"},
		{"\x1b[c", "\x1b[?62;22c"},
		{"\x1b[0c\x1bZ", "\x1b[?62;22c\x1b[?62;22c"},
		{"\x1b[>c", "\x1b[>1;354;0c"},
		{"\x1b[=c", "\x1bP!|00000000\x1b\\"},
		{"\x1b[?25$p\x1b[?7$p\x1b[?1006h\x1b[?1006$p\x1b[?1049$p\x1b[?4711$p", "\x1b[?25;1$y\x1b[?7;1$y\x1b[?1006;1$y\x1b[?1049;2$y\x1b[?4711;0$y"},
		{"\x1b[4h\x1b[4$p\x1b[20$p\x1b[3$p", "\x1b[4;1$y\x1b[20;2$y\x1b[3;0$y"},
		{"\x1b[1;31m\x1bP$qm\x1b\\", "\x1bP1$r0;1;31m\x1b\\"},
		{"\x1b[2;3r\x1bP$qr\x1b\\", "\x1bP1$r2;3r\x1b\\"},
		{"\x1b[3 q\x1bP$q q\x1b\\", "\x1bP1$r3 q\x1b\\"},
		{"\x1bP$q\"p\x1b\\\x1bP$qz\x1b\\", "\x1bP1$r62;1\"p\x1b\\\x1bP0$r\x1b\\"},
		{"\x1b]11;?\a", "\x1b]11;rgb:0000/0000/0000\a"},
		{"\x1b]10;#123456\a\x1b]10;?;?\x1b\\", "\x1b]10;rgb:1212/3434/5656\x1b\\\x1b]11;rgb:0000/0000/0000\x1b\\"},
		{"\x1b]4;1;?;300;?;2;rgb:f/8/0\a\x1b]4;2;?\a", "\x1b]4;1;rgb:cdcd/0000/0000\a\x1b]4;2;rgb:ffff/8888/0000\a"},
		{"\x1b]4;2;#111\a\x1b]104;2\a\x1b]4;2;?\a\x1b]4;196;?\a\x1b]4;232;?\a", "\x1b]4;2;rgb:0000/cdcd/0000\a\x1b]4;196;rgb:ffff/0000/0000\a\x1b]4;232;rgb:0808/0808/0808\a"},
		{"\x1b[14t\x1b[16t\x1b[18t", "\x1b[4;64;64t\x1b[6;16;8t\x1b[8;4;8t"},
		{"\x1b[>5u\x1b[?u\x1b[<u\x1b[?u\x1b[=3u\x1b[=4;2u\x1b[=1;3u\x1b[?u", "\x1b[?5u\x1b[?0u\x1b[?6u"},
		{"\x1b[>4;2m\x1b[?4m", "\x1b[>4;2m"},
		{"\x1bP+q544e\x1b\\", "\x1bP0+r\x1b\\"},
		// What is never told.
		{"\x1b]52;c;?\a\x1b]52;p;?\x1b\\", ""},
		{"\x1b]2;secret\a\x1b[21t\x1b[20t", ""},
		{"\x05\x1b[x\x1b[>1c\x1b[1c\x1b]4;?\a\x1b]12;red\a", ""},
	} {
		var got []byte
		s := New(termwire.Size{Cols: 8, Rows: 4}, Options{Reply: func(b []byte) { got = append(got, b...) }})
		s.Write([]byte(c.query))
		if string(got) != c.want {
			t.Errorf("%q is answered by %q, not %q", c.query, got, c.want)
		}
	}
}

func TestTitle(t *testing.T) {
	for output, want := range map[string]string{
		"\x1b]2;✳ working\a":                                    "✳ working",
		"\x1b]0;both\x1b\\":                                     "both",
		"\x1b]1;icon\a":                                         "",
		"\x1b]2;a\tb\u202ec\a":                                  `ab\u202ec`,
		"\x1b]2;one\a\x1b[22t\x1b]2;two\a\x1b[23t":              "one",
		"\x1b]2;one\a\x1b]2;\a":                                 "",
		"\x1b]2;" + strings.Repeat("x", 5000) + "\a":            "",
		"\x1b]2;" + strings.Repeat("é", 600) + "\a":             strings.Repeat("é", 512),
		"\x1b]2;kept\a\x1bc":                                    "kept",
		"\x1b]2;one\a" + strings.Repeat("\x1b[23t", 3) + "text": "one",
	} {
		if got := small(output).Title(); got != want {
			t.Errorf("the title after %.60q is %q, not %q", output, got, want)
		}
	}
}

func TestScrollback(t *testing.T) {
	for _, c := range []struct {
		output string
		lines  int
		want   string
	}{
		{"1\r\n2\r\n3\r\n4\r\n5\r\n6", 10, "1\r\n2\r\n"},
		{"1\r\n2\r\n3\r\n4\r\n5\r\n6", 1, "2\r\n"},
		{"\x1b[1;44m1 \x1b[m.  \r\n\r\n\r\n\r\n\r\n", 10, "\x1b[0;1;44m1 \x1b[m.\r\n\r\n"},
		{"\x1b[44m1\r\n\n\n\n\n", 2, "\x1b[0;44m1\x1b[m\r\n\r\n"},
		{"x\x1b[44m\x1b[K\r\n\n\n\n", 2, "x\x1b[0;44m\x1b[K\x1b[m\r\n"},
		{"\x1b#8\x1b[S", 2, "EEEEEEEE\r\n"},
		{"漢e\u0301\x1b]8;;http://x/\ax\r\n\n\n\n", 2, "漢e\u0301x\r\n"},
		{"1\r\n2\r\n3\r\n4\r\n\x1b[?1049h5\r\n\n\n\n\n6", 10, "1\r\n"},
		{"1\r\n2\r\n3\r\n4\r\n5\x1b[3J", 10, ""},
		{"1\r\n2\r\n3\r\n4\x1b[2;4r\x1b[4;1H\n\n", 10, ""},
		{"1\r\n2\r\n3\r\n4\x1b[1;3r\x1b[3;1H\n", 10, "1\r\n"},
		{"1\r\n2\r\n3\x1b[2S", 10, "1\r\n2\r\n"},
	} {
		if got := string(small(c.output).Scrollback(c.lines)); got != c.want {
			t.Errorf("%q leaves %q, not %q", c.output, got, c.want)
		}
	}
}

// A terminal that has the scrollback in its own still shows the screen.
func TestReplay(t *testing.T) {
	a := small("1\r\n2\r\n3\r\n4\r\n5\r\n\x1b[?1049hx")
	b := small("junk\r\n\n\n\n\n\n\x1b[?1049h\x1b[2;3r")
	b.history.clear()
	b.Write(a.Replay(termwire.Size{}, 10))
	if d := difference(a, b); d != "" {
		t.Error(d)
	}
	if got := string(b.Scrollback(10)); got != "1\r\n2\r\n" {
		t.Errorf("the scrollback is %q", got)
	}
}
