package screen

import (
	"fmt"
	"slices"
	"testing"

	"cortexfs.org/libctx/termwire"
	"pgregory.net/rapid"
)

// difference is the first thing in which two terminals differ, of all that
// shows or that later output depends on; "" if they are equal.
func difference(a, b *Screen) string {
	if d := gridDifference("main", a, b, a.main, b.main); d != "" {
		return d
	}
	if a.Alternate() != b.Alternate() {
		return fmt.Sprintf("alternate screen: %v, %v", a.Alternate(), b.Alternate())
	}
	if a.Alternate() {
		if d := gridDifference("alternate", a, b, a.alternate, b.alternate); d != "" {
			return d
		}
	}
	if d := cursorDifference(a, b, a.cur, b.cur); d != "" {
		return "cursor: " + d
	}
	if a.last == 0 || b.last == 0 {
		a, b = shallow(a), shallow(b)
		a.lastX, a.lastY, b.lastX, b.lastY = 0, 0, 0, 0
	}
	pairs := []struct {
		what string
		a, b any
	}{
		{"margins", [2]int{a.top, a.bottom}, [2]int{b.top, b.bottom}},
		{"modes", a.modes, b.modes},
		{"tab stops", fmt.Sprint(a.tabs), fmt.Sprint(b.tabs)},
		{"single shift", a.single, b.single},
		{"last character", [3]int{int(a.last), a.lastX, a.lastY}, [3]int{int(b.last), b.lastX, b.lastY}},
		{"title", a.title, b.title},
		{"colours", a.colors, b.colors},
	}
	for _, p := range pairs {
		if p.a != p.b {
			return fmt.Sprintf("%s: %v, %v", p.what, p.a, p.b)
		}
	}
	return ""
}

func shallow(s *Screen) *Screen { c := *s; return &c }

func gridDifference(name string, a, b *Screen, g, h *grid) string {
	for y := range g.rows {
		for x := range a.cols {
			c, d := g.rows[y].at(x), h.rows[y].at(x)
			if c.r != d.r || a.marks.texts[c.mark] != b.marks.texts[d.mark] || lookDifference(a, b, c.style, d.style) != "" {
				return fmt.Sprintf("%s, column %d, row %d: %q%q %v, %q%q %v", name, x, y,
					c.r, a.marks.texts[c.mark], c.style, d.r, b.marks.texts[d.mark], d.style)
			}
		}
		if g.rows[y].wrapped != h.rows[y].wrapped {
			return fmt.Sprintf("%s, row %d goes on: %v, %v", name, y, g.rows[y].wrapped, h.rows[y].wrapped)
		}
	}
	if d := cursorDifference(a, b, g.saved, h.saved); d != "" {
		return name + ", saved cursor: " + d
	}
	if g.keys.flags != h.keys.flags || !slices.Equal(g.keys.stack, h.keys.stack) {
		return fmt.Sprintf("%s, keyboard: %v, %v", name, g.keys, h.keys)
	}
	return ""
}

func cursorDifference(a, b *Screen, c, d cursor) string {
	if look := lookDifference(a, b, c.pen, d.pen); look != "" {
		return "pen: " + look
	}
	c.pen, d.pen = style{}, style{}
	if c != d {
		return fmt.Sprintf("%+v, %+v", c, d)
	}
	return ""
}

func lookDifference(a, b *Screen, c, d style) string {
	k, l := a.links.texts[c.link], b.links.texts[d.link]
	c.link, d.link = 0, 0
	if c != d || k != l {
		return fmt.Sprintf("%v %q, %v %q", c, k, d, l)
	}
	return ""
}

var (
	pieces = []string{
		"a", "hello world ", "0123456789abcdefghijklmnopqrstuvwxyz", "é", "漢字", "🙂", "e\u0301", "👩\u200d💻", "❤\ufe0f", "\u0301",
		"\r\n", "\n", "\r", "\b", "\t", "\x0e", "\x0f", "\x7f", "\x1b7", "\x1b8", "\x1bD", "\x1bE", "\x1bH", "\x1bM", "\x1bN", "\x1bO",
		"\x1bn", "\x1bo", "\x1b=", "\x1b>", "\x1b(0", "\x1b)0", "\x1b(B", "\x1b*0", "\x1b+A", "\x1b#8", "\x1b[!p", "\x1bc", "qqlkx",
		"\x1b]2;a title ✓\a", "\x1b]0;\x1b\\", "\x1b]8;;http://example.org/\x1b\\", "\x1b]8;id=7;http://example.org/b\x1b\\", "\x1b]8;;\a",
		"\x1b]4;1;rgb:12/34/56;7;#fff\a", "\x1b]10;#123456\a", "\x1b]11;rgb:1/2/3;#444\x1b\\", "\x1b]104;1\a", "\x1b]104\a", "\x1b]110\a",
		"\x1b[?1049h", "\x1b[?1049l", "\x1b[?47h", "\x1b[?47l", "\x1b[?1047h", "\x1b[?1048h", "\x1b[?1048l", "\x1bP$qm\x1b\\", "\x1b[22t", "\x1b[23t",
		"\xff", "\xc3", "\xe2\x82", "\x18", "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b_", "\xc2\x9b", "\u0085", "\x1b[38;2;1;2;3m", "\x1b[48;5;200m",
		"\x1b[4:3m", "\x1b[58:2::9:8:7m", "\x1b[58;5;3m", "\x1b[0m", "\x1b[m", "\x1b[7;1;44m", "\x1b[4h", "\x1b[4l", "\x1b[20h",
		"\x1b[>1u", "\x1b[>31u", "\x1b[<u", "\x1b[=5;2u", "\x1b[>4;2m", "\x1b[?6h", "\x1b[?7l", "\x1b[?2026h", "\x1b[999999999b", "\x1b[2b",
	}
	finals   = "@ABCDEFGHIJKLMPSTXZ^`abcdefghlmnrstu"
	privates = []int{1, 5, 6, 7, 9, 12, 25, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 2004, 2026, 3, 69}
)

// output draws what a program might write, or what nobody would.
func output(t *rapid.T, label string) []byte {
	var b []byte
	for range rapid.IntRange(0, 60).Draw(t, label) {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1, 2, 3:
			b = append(b, rapid.SampledFrom(pieces).Draw(t, "piece")...)
		case 4, 5, 6:
			final := rapid.SampledFrom([]byte(finals)).Draw(t, "final")
			b = fmt.Appendf(b, "\x1b[%d;%d%c", rapid.IntRange(0, 12).Draw(t, "n"), rapid.IntRange(0, 30).Draw(t, "m"), final)
			if rapid.Bool().Draw(t, "one") {
				b = fmt.Appendf(b, "\x1b[%d%c", rapid.IntRange(0, 12).Draw(t, "n"), final)
			}
		case 7:
			b = fmt.Appendf(b, "\x1b[?%d%c", rapid.SampledFrom(privates).Draw(t, "mode"), rapid.SampledFrom([]byte("hl")).Draw(t, "on"))
		case 8:
			b = fmt.Appendf(b, "\x1b[%d q\x1b[%dm", rapid.IntRange(0, 7).Draw(t, "shape"), rapid.IntRange(0, 110).Draw(t, "sgr"))
		case 9:
			b = append(b, rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "bytes")...)
		}
	}
	return b
}

func drawSize(t *rapid.T) termwire.Size {
	return termwire.Size{Cols: rapid.IntRange(1, 30).Draw(t, "cols"), Rows: rapid.IntRange(1, 10).Draw(t, "rows")}
}

// A redraw brings a new terminal, and one in any other state, to the state of
// this one, and it stays there.
func TestRedraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := drawSize(t)
		a := New(size, Options{})
		a.Write(output(t, "a"))
		if rapid.Bool().Draw(t, "resize") {
			size = drawSize(t)
			a.Resize(size)
			a.Write(output(t, "resized"))
		}
		a.Write([]byte("\x18"))
		a.titles = nil // what the program has put by is not restored
		for _, before := range [][]byte{nil, output(t, "before")} {
			b := New(size, Options{})
			b.Write(before)
			b.titles = nil
			if !a.titled {
				b.title = "" // what a has not touched stays
			}
			if !a.coloured {
				b.colors = colors{}
			}
			redraw := a.Redraw(termwire.Size{})
			b.Write(redraw)
			if d := difference(a, b); d != "" {
				t.Fatalf("after the redraw %q: %s", redraw, d)
			}
			if !b.Ground() {
				t.Fatal("the redraw is not complete")
			}
			c := New(size, Options{})
			c.Write(a.Redraw(size))
			more := output(t, "more")
			b.Write(more)
			c.Write(more)
			if d := difference(b, c); d != "" {
				t.Fatalf("after the same output: %s", d)
			}
		}
		// Last, since a takes no further part: it and a copy stay equal.
		b := New(size, Options{})
		b.Write(a.Redraw(size))
		more := output(t, "more")
		a.Write(more)
		b.Write(more)
		if d := difference(a, b); d != "" {
			t.Fatalf("after the same output %q: %s", more, d)
		}
	})
}

// Where output is cut changes nothing.
func TestCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := drawSize(t)
		var told, said []byte
		a := New(size, Options{Reply: func(b []byte) { told = append(told, b...) }})
		b := New(size, Options{Reply: func(b []byte) { said = append(said, b...) }})
		out := output(t, "output")
		a.Write(out)
		for i := range out {
			b.Write(out[i : i+1])
		}
		if d := difference(a, b); d != "" || string(told) != string(said) {
			t.Fatalf("%q cut: %s; answers %q, %q", out, d, told, said)
		}
	})
}
