package filter

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/vt"
	"pgregory.net/rapid"

	"cortexfs.org/ctxterm/internal/screen"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/termwire"
)

// cut filters the pieces of in.
func cut(f *Filter, in []byte, sizes ...int) []byte {
	var out []byte
	for len(in) > 0 {
		n := len(in)
		if len(sizes) > 0 {
			n, sizes = min(max(sizes[0], 1), n), append(sizes[1:], sizes[0])
		}
		out = f.Append(out, in[:n])
		in = in[n:]
	}
	return out
}

func TestFilter(t *testing.T) {
	long := strings.Repeat("a", libctx.MaxTermHeld)
	for _, c := range []struct{ name, in, out string }{
		{"text", "plain grün 日本 🙂\r\n\tx\x00\x7f", "="},
		{"bytes of nothing", "\xff\xfe\xc0\xe6\x97x\xf5\x80\x8f\xa0", "="},
		{"colours", "\x1b[31mred\x1b[0;38;2;1;2;3m\x1b[4:3m\x1b[>4;2m", "="},
		{"cursor", "\x1b[H\x1b[2J\x1b7\x1b8\x1b(B\x1b[?25l\x1b[?1;6c\x1b[s\x1b[u\x1b[>1u\x1b[<u\x1b[=1;1u\x1b[2 q\x1b[!p\x1b[1\"q", "="},
		{"window and its titles", "a\x1b[22;0t\x1b[23t\x1b[8;24;80t\x1b[1tb\x1b[>1t\x1b[2 t\x1b[1;2$t", "ab\x1b[>1t\x1b[2 t\x1b[1;2$t"},
		{"printer", "a\x1b[5ib\x1b[?5ic\x1b[id", "abcd"},
		{"locked and other keys", "\x1b[2ha\x1b[2;4hb\x1b[4;2hc\x1b[?9001hd\x1b[?25;9001he\x1b[4h\x1b[?2h\x1b[2l\x1b[?9001l", "a\x1b[4hb\x1b[4hcd\x1b[?25he\x1b[4h\x1b[?2h\x1b[2l\x1b[?9001l"},
		{"keys that type, capabilities, letters, macros", "a\x1bP0;1|17/6c730a\x1b\\b\x1bP+p544e\x1b\\c\x1bP1;1;1{ @x\x1b\\d\x1bP1;0;0!zff\x1b\\e", "abcde"},
		{"files of the client's", "a\x1b_Ga=T,t=t,q=2;L3RtcC94\x1b\\b\x1b]1337;SetBackgroundImageFile=eA==\ac\x1b]50;fixed\ad\x1b_Ga=T,t=d,q=2;AAAA\x1b\\", "abcd\x1b_Ga=T,t=d,q=2;AAAA\x1b\\"},
		{"keys and scrolling", "\x1b[>4;1m\x1b[3S\x1b[>1f\x1b[#p\x1b[#q\x1b[?1004s\x1b[>4n\x1b[1*x\x1b[1$x", "="},
		{"titles", "\x1b]0;a?;?\a\x1b]2;b\x1b\\\x1b]8;;http://x/?a=?\x1b\\l\x1b]8;;\a\x1b]7;file://h/\x1b\\", "="},
		{"colours set", "\x1b]4;1;#fff;2;red\a\x1b]11;rgb:00/00/00\x1b\\\x1b]104\a\x1b]112\x1b\\", "="},
		{"sixel", "\x1bPq#0;2;0;0;0#0~~@@vv@@~~$\x1b\\", "="},
		{"other strings", "\x1b_hi\x1b\\\x1b^x\x1b\\\x1bXy\x1b\\\x1bk?\x1b\\", "="},
		{"continuation bytes are no C1", "雛5n\x1b]0;本52;\a睝52;c;x\a", "="},

		{"ENQ", "a\x05b", "ab"},
		{"DECID", "a\x1bZb\x9ac\xc2\x9ad", "abcd"},
		{"DSR", "a\x1b[6nb\x1b[5n\x1b[?6n\x1b[?996nc\x9b6nd\xc2\x9b6ne", "abcde"},
		{"DA", "a\x1b[cb\x1b[0cc\x1b[>cd\x1b[=ce", "abcde"},
		{"others", "a\x1b[>q\x1b[>0q\x1b[?25$p\x1b[4$p\x1b[x\x1b[1x\x1b[1$w\x1b[1;1$u\x1b[1;1;1;1;1;1*y\x1b[?1;1;0S\x1b[?4m\x1b[?ub", "ab"},
		{"window reports", "a\x1b[14t\x1b[18t\x1b[21t\x1b[014;2t\x1b[65550tb", "ab"},
		{"report of a mode", "\x1b[?2048ha\x1b[?25;2048;2004hb\x1b[?2048l", "a\x1b[?25;2004hb\x1b[?2048l"},
		{"device strings", "a\x1bP$qm\x1b\\b\x1bP+q544e\x1b\\c\x90$qm\x9cd\x1bP@kitty-cmd{}\x1b\\e", "abcde"},
		{"control characters in a question stay", "a\x1b[6\r\nnb", "a\r\nb"},
		{"controls in a sequence", "a\x1b[3\r1mb", "="},

		{"colour", "a\x1b]11;?\ab\x1b]10;?\x1b\\c\x1b]4;1;?\ad\x9d11;?\x9ce\xc2\x9d11;?\xc2\x9cf", "abcdef"},
		{"some of the colours", "\x1b]4;1;?;2;#fff\a\x1b]10;?;#000;?;red;blue\x1b\\", "\x1b]4;2;#fff\a\x1b]11;#000\x1b\\\x1b]13;red;blue\x1b\\"},
		{"kitty's colours", "\x1b]21;foreground=?;cursor=red\a\x1b]21;a=?\a", "\x1b]21;cursor=red\a"},
		{"fonts, pointers, features", "a\x1b]50;?\a\x1b]22;?a,b\a\x1b]60\a\x1b]61;x\ab", "ab"},
		{"iTerm2", "a\x1b]1337;ReportCellSize\a\x1b]1337;Copy=:aGk=\a\x1b]1337;CopyToClipboard=\ab\x1b]1337;File=inline=1:AAA=\a", "ab\x1b]1337;File=inline=1:AAA=\a"},
		{"notifications", "\x1b]99;i=1:d=0;Hello?\a\x1b]99;i=1:p=?;\a", "\x1b]99;i=1:d=0;Hello?\a"},
		{"numbers too large", "a\x1b]4294967348;c;x\ab\x1b]65588;c;x\ac", "abc"},

		{"clipboard", "a\x1b]52;c;aGk=\ab\x1b]52;c;?\x1b\\c\x9d52;c;aGk=\x9cd\xc2\x9d52;;x\xc2\x9ce\x1b]052;p;!\x18f\x1b]52;c;x\x1ag\x1b] 5\x012;c;x\x07h\x1b]52 0;x\x07i", "abcdefghi"},
		{"clipboard cut short", "a\x1b]52;c;aGk=\x1b[31mb\x1b]52;c;\x9b32mc", "a\x1b[31mb\x9b32mc"},
		{"kitty's clipboard and files", "a\x1b]5522;type=write\x1b\\b\x1b]5113;ac=send\x1b\\c", "abc"},
		{"clipboard through tmux", "a\x1bPtmux;\x1b\x1b]52;c;aGk=\a\x1b\\b", "ab"},
		{"clipboard through two", "a\x1bPtmux;\x1b\x1bPtmux;\x1b\x1b\x1b\x1b]52;c;x\a\x1b\x1b\\\x1b\\b", "ab"},
		{"clipboard through tmux in parts", "a\x1bPtmux;\x1b\x1b]5\x1b\\\x1bPtmux;2;c;x\a\x1b\\b", "a\x1bPtmux;2;c;x\a\x1b\\b"},
		{"through tmux", "a\x1bPtmux;\x1b\x1b]0;t\a\x1b\\b", "="},
		{"clipboard through screen", "a\x1bP\x1b]52;c;aGk=\a\x1b\\b", "a\x1bP\x18\x1b\\b"},
		{"clipboard through screen, ended by ST", "a\x1bP\x1b]52;c;aGk=\x1b\\b", "a\x1bP\x18\x1b\\b"},
		{"clipboard through screen in parts", "\x1bP\x1b]5\x1b\\\x1bP2;c;x\a\x1b\\b", "\x1bP\x18\x1b\\\x1bP2;c;x\a\x1b\\b"},
		{"question through screen in parts", "\x1bP\x1b[\x1b\\\x1bP6n\x1b\\b", "\x1bP\x18\x1b\\\x1bP6n\x1b\\b"},

		{"kitty's graphics", "a\x1b_Gi=1,a=q;AAAA\x1b\\b\x1b_Gf=100,q=2;AAAA\x1b\\c\x1b_Gi=1,q=1,a=T;AAAA\x1b\\\x1b_Ga=d\x1b\\\x1b_Gm=1;B\x1b\\",
			"ab\x1b_Gf=100,q=2;AAAA\x1b\\c\x1b_Gi=1,a=T,q=2;AAAA\x1b\\\x1b_Ga=d,q=2\x1b\\\x1b_Gm=1,q=2;B\x1b\\"},

		{"what it cut short stays cut short", "\x1b]0;title\x1b[6ntext\x1b[\x1b[6n6n\x1b\x1bZ[6n", "\x1b]0;title\x18text\x1b[\x186n\x1b\x18[6n"},
		{"taken apart", "\x1b[\x056n\x1b\x05[6n\x1b]5\x052;c;x\a", ""},
		{"letters in a sequence", "a\x1b[6é\x1b[31mb\x1b[6énc", "a\x1b[6é\x1b[31mbc"},
		{"letters of eight bits", "a\x1b[6îb\x1bÝ52;c;x\ac\x1bÛ6nd", "abcd"},
		{"C1 in a sequence", "\x1b[6\xc2\x9dn;\a \x1b\xc2\x9b]52;c;x\a", "\xc2\x9dn;\a \xc2\x9b]52;c;x\a"},
		{"UTF-8 off", "\x1b%@\xe9\x9b6n\xe9\x9d52;c;x\a\x1b%G雛6n", "\x1b%@\xe9\xe9\x1b%G雛6n"},
		{"too long", "a\x1b]11;" + long + "\ab\x1b[" + strings.Repeat("1", libctx.MaxTermHeld) + "6nc", "abc"},
		{"long title", "a\x1b]0;" + long + long + "\ab", "="},
		{"ESC at the end is sent later", "a\x1b", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := strings.Replace(c.out, "=", c.in, min(1, strings.Count(c.out, "=")*max(0, 2-len(c.out))))
			for size := range 8 {
				var f Filter
				var got []byte
				if size == 0 {
					got = cut(&f, []byte(c.in))
				} else {
					got = cut(&f, []byte(c.in), size)
				}
				if string(got) != want {
					t.Fatalf("in pieces of %d:\n%.200q\ngot  %.200q\nwant %.200q", size, c.in, got, want)
				}
			}
		})
	}
}

func TestClipboardLetThrough(t *testing.T) {
	for in, out := range map[string]string{
		"a\x1b]52;c;aGk=\ab":                   "=",
		"a\x1b]52;;\x1b\\b":                    "=",
		"a\xc2\x9d52;c;aGk=\xc2\x9cb":          "=",
		"a\x1b]52;c;?\ab\x1b]52;c;\x01?\ac":    "abc",
		"\x1bPtmux;\x1b\x1b]52;c;aGk=\a\x1b\\": "=",
		"\x1bPtmux;\x1b\x1b]52;c;?\a\x1b\\":    "",
		"\x1b]5522;type=read\a":                "",
	} {
		if out == "=" {
			out = in
		}
		for size := 1; size <= len(in); size++ {
			f := Filter{Clipboard: true}
			if got := cut(&f, []byte(in), size); string(got) != out {
				t.Errorf("%q in pieces of %d: got %q, want %q", in, size, got, out)
			}
		}
	}
}

func TestGround(t *testing.T) {
	for in, want := range map[string]bool{
		"": true, "a": true, "日": true, "\x1b[0m": true, "\x1b]0;a\a": true, "\x1b[6n": true, "\xff": true, "\x1b]52;c;x\a": true,
		"\x1b": false, "\x1b[": false, "\x1b]0;a": false, "\x1b]0;a\x1b": false, "\xe6": false, "\xe6\x97": false, "\xc2": false,
		"\x1b]52;c;": false, "\x1bPq": false, "\x1b(": false, "\x1b[6n\x1b_G": false,
	} {
		var f Filter
		f.Append(nil, []byte(in))
		if f.Ground() != want {
			t.Errorf("after %q: %v", in, f.Ground())
		}
	}
}

// pieces are what random outputs are made of: whole sequences, and the parts
// from which a malicious program would put one together.
var pieces = []string{
	"\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX", "\x1b\\", "\a", "\x18", "\x1a", "\x05", "\r\n", "\x00", "\x7f", " ",
	"\x90", "\x98", "\x9a", "\x9b", "\x9c", "\x9d", "\x9f", "\x85", "\xc2", "\xc2\x90", "\xc2\x9b", "\xc2\x9c", "\xc2\x9d", "\xc2\x9f", "\xc2\x85",
	"5", "2", "52", "6n", "n", "c", ";", ";?", "?", ">", "=", "$", "$p", "$q", "+q", "0", "4;1;?", "11;?", "10;red;?", "tmux;", "14t", "u", "q", "m", "t", "h", "?2048h", "x", "Z",
	"52;c;aGk=", "52;c;?", "Ga=q;", "Gi=1;AA", "1337;Copy=", "a", "@", "é", "î", "Ý", "Û", "日", "雛", "\xe9", "\xe9\x9b", "\xff", "\xb6", "\xee",
	"\x1b[6n", "\x1b[31m", "\x1b]0;t\a", "\x1b]52;c;aGk=\a", "\x1bPtmux;\x1b\x1b]52;c;x\a\x1b\\", "\x1bPtmux;\x1b\x1b", "\x1b\x1b", "\x1bP\x1b]52;c;x\a\x1b\\",
	"\x1b_Ga=T;AA\x1b\\", "\x1b]4;1;?;2;red\a", "text",
}

func output() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		return []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 24).Draw(t, "pieces"), ""))
	})
}

// check is what holds for every output, cut in any way.
func check(t interface{ Fatalf(string, ...any) }, in []byte, sizes ...int) {
	var whole, parts, again Filter
	out := cut(&whole, in)
	if got := cut(&parts, in, sizes...); !bytes.Equal(got, out) {
		t.Fatalf("%q\nwhole  %q\nin %d %q", in, out, sizes, got)
	}
	if whole.Ground() != parts.Ground() {
		t.Fatalf("%q: whole ground %v", in, whole.Ground())
	}
	var answers []byte
	emulated := screen.New(termwire.DefaultSize, screen.Options{Reply: func(b []byte) { answers = append(answers, b...) }})
	if emulated.Write(out); answers != nil {
		t.Fatalf("%q\nbecomes %q\nand is answered with %q", in, out, answers)
	}
	for name, reader := range terminals() {
		reader.feed(out)
		if found := reader.all(); found != nil {
			t.Fatalf("%q\nbecomes %q\nand a terminal (%s) finds %q", in, out, name, found)
		}
	}
	// What is left does not make another question. (Bytes that are no letter can
	// make one, or a C1 control, with those that were further away.)
	if !utf8.Valid(in) {
		return
	}
	if got := cut(&again, out); !bytes.HasPrefix(out, got) || len(got) < len(out) && again.Ground() {
		t.Fatalf("%q\nbecomes %q\nand then %q", in, out, got)
	}
	if len(whole.held) > libctx.MaxTermHeld+2 {
		t.Fatalf("%d bytes are held", len(whole.held))
	}
}

func TestNothingSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		check(t, output().Draw(t, "output"), rapid.SliceOfN(rapid.IntRange(1, 9), 1, 5).Draw(t, "sizes")...)
	})
}

func TestAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.SliceOf(rapid.Byte()).Draw(t, "output"), rapid.SliceOfN(rapid.IntRange(1, 9), 1, 5).Draw(t, "sizes")...)
	})
}

// harmlessPieces hold no part that is ever taken out, and are whole.
var harmlessPieces = []string{
	"text", "grün", "日本語", "🙂", "\r\n", "\t", "\x00", "\x7f", "\xff", "\x80", "\xa0", "\x85", "\b", "\x0e", "\x0f",
	"\x1b[31m", "\x1b[38;5;1;48;2;1;2;3m", "\x1b[2J", "\x1b[H", "\x1b[?1049h", "\x1b[?25l", "\x1b[>4;2m", "\x1b[2 q", "\x9b1m", "\xc2\x9b1m",
	"\x1b7", "\x1b(B", "\x1b#8", "\x1bc", "\x1b=", "\x1b]0;title?\a", "\x1b]2;本\x1b\\", "\x1b]4;1;#fff\a", "\x1b]104\x1b\\", "\x1b]8;;http://x\a",
	"\x1bPq#0~\x1b\\", "\x1bP1$r0m\x1b\\", "\x1b_x\x1b\\", "\x1bPtmux;\x1b\x1b[1m\x1b\\", "\x1b[12\x18", "\x1b]0;x\x18", "\x1b\x1b[1m", "\x1b[1;\x1b[m",
}

func TestIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := []byte(strings.Join(rapid.SliceOf(rapid.SampledFrom(harmlessPieces)).Draw(t, "pieces"), ""))
		var f Filter
		got := cut(&f, in, rapid.SliceOfN(rapid.IntRange(1, 9), 1, 5).Draw(t, "sizes")...)
		if !bytes.Equal(got, in) {
			t.Fatalf("%q\nbecomes %q", in, got)
		}
		if !f.Ground() {
			t.Fatalf("%q does not end on the ground", in)
		}
	})
}

// questions are whole sequences that are taken out.
var questions = []string{
	"\x05", "\x1bZ", "\x1b[c", "\x1b[>c", "\x1b[=c", "\x1b[6n", "\xc2\x9b5n", "\x1b[?6n", "\x1b[>q", "\x1b[?2004$p", "\x1b[18t", "\x1b[?u", "\x1b[x",
	"\x1b]11;?\a", "\x1b]4;1;?\x1b\\", "\x1b]52;c;aGk=\a", "\x1b]52;c;?\a", "\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\", "\x1b_Ga=q,i=1;AA\x1b\\",
	"\x1bPtmux;\x1b\x1b]52;c;x\a\x1b\\", "\x1b[?25;2048h",
}

// What is taken out changes no picture.
func TestPicture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := []byte(strings.Join(rapid.SliceOf(rapid.SampledFrom(slices.Concat(harmlessPieces, questions))).Draw(t, "pieces"), ""))
		var f Filter
		seen, shown := screen.New(termwire.DefaultSize, screen.Options{}), screen.New(termwire.DefaultSize, screen.Options{})
		seen.Write(in)
		out := cut(&f, in, rapid.SliceOfN(rapid.IntRange(1, 9), 1, 5).Draw(t, "sizes")...)
		shown.Write(out)
		for _, s := range []*screen.Screen{seen, shown} {
			s.Write([]byte("x\b")) // a question comes between a character and its repetition; nobody repeats over it
		}
		if want, got := seen.Redraw(termwire.DefaultSize), shown.Redraw(termwire.DefaultSize); !bytes.Equal(got, want) {
			t.Fatalf("%q\nbecomes %q\nand shows %q\nnot %q", in, out, got, want)
		}
	})
}

// An independent emulator that answers does not see a question until it is asked
// without a filter.
func TestIndependentEmulator(t *testing.T) {
	asked := vt.NewEmulator(80, 24)
	written := make(chan struct{})
	go func() {
		defer close(written)
		var f Filter
		for _, q := range slices.Concat(questions, harmlessPieces) {
			asked.Write(f.Append(nil, []byte(q)))
		}
		asked.Write([]byte("\x1b[c"))
	}()
	var answers []byte
	for !bytes.HasSuffix(answers, []byte("c")) {
		b := make([]byte, 64)
		n, err := asked.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, b[:n]...)
	}
	<-written
	if bytes.Count(answers, []byte("\x1b")) != 1 || !bytes.HasPrefix(answers, []byte("\x1b[?")) {
		t.Errorf("it answers %q", answers)
	}
}

// The readers above find what they should.
func TestTerminals(t *testing.T) {
	for in, who := range map[string]string{
		"\x1b[6n": "seven bits", "\x9b6n": "C1 raw", "\xc2\x9b6n": "C1 in UTF-8", "\x1b[6é\x01n": "seven bits", "\x1b[6î": "eight bits",
		"\x1bP\x1b]5\x1b\\\x1bP2;c;x\a\x1b\\": "screen", "\x1bPtmux;\x1b\x1b]52;c;x\a\x1b\\": "tmux", "\x1b]65588;c;x\a": "aborting",
		"\x1bPtmux;\x1b\x1bPtmux;\x1b\x1b\x1b\x1b[6n\x1b\x1b\\\x1b\\": "tmux in tmux", "\x1b]10;red;?\a": "seven bits", "\x1b]52;c;x\xc2\x9c": "C1 in UTF-8",
	} {
		reader := terminals()[who]
		reader.feed([]byte(in))
		if reader.all() == nil {
			t.Errorf("%s finds nothing in %q", who, in)
		}
	}
}

func FuzzFilter(f *testing.F) {
	for i, p := range pieces {
		f.Add([]byte(p+pieces[(i*7+3)%len(pieces)]), uint8(i))
	}
	f.Add([]byte(strings.Join(pieces, "")), uint8(3))
	f.Add([]byte(strings.Join(slices.Concat(harmlessPieces, pieces), "x")), uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		check(t, in, int(size%13)+1)
	})
}
