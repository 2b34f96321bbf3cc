package screen

import (
	"testing"

	"cortexfs.org/libctx/termwire"
	"pgregory.net/rapid"
)

func TestResize(t *testing.T) {
	for _, c := range []struct {
		output     string
		cols, rows int
		want, gone string
	}{
		{"1\r\n2\r\n3\r\n4", 8, 2, "3|4 @1,1", "1\r\n2\r\n"},
		{"1\r\n2\r\n3\r\n4\x1b[2;2H", 8, 2, "1|2 @1,1", ""},
		{"1\r\n2\r\n3\r\n4\x1b[3;1H", 8, 2, "2|3 @0,1", "1\r\n"},
		{"1\r\n2\r\n3\r\n4", 8, 6, "1|2|3|4 @1,3", ""},
		{"abcdefgh", 4, 4, "abcd @3,0", ""},
		{"abc漢", 4, 4, "abc @3,0", ""},
		{"abcdefghij", 12, 4, "abcdefgh|ij @2,1", ""},
		{"\x1b[2;3r\x1b[4;1Hx", 8, 5, "|||x @1,3", ""},
		{"\x1b[44m\x1b[K\x1b[m", 10, 4, " @0,0", ""},
		{"1\r\n2\r\n3\r\n4\x1b[?1049h\x1b[Hx", 8, 2, "x @1,0", "1\r\n2\r\n"},
	} {
		s := small(c.output)
		s.Resize(termwire.Size{Cols: c.cols, Rows: c.rows})
		if got, gone := shows(s), string(s.Scrollback(10)); got != c.want || gone != c.gone {
			t.Errorf("%q at %dx%d is %q, %q, not %q, %q", c.output, c.cols, c.rows, got, gone, c.want, c.gone)
		}
		if c := s.grid.rows[0].at(s.cols - 1); s.cols == 10 && c.bg != 0 {
			t.Error("the new columns have a colour")
		}
	}
	s := small("1\r\n2\r\n3\r\n4\x1b[?1049h\x1b[Hx")
	s.Resize(termwire.Size{Cols: 8, Rows: 2})
	s.Write([]byte("\x1b[?1049ly"))
	if got := shows(s); got != "3|4y @2,1" {
		t.Errorf("below the alternate screen is %q", got)
	}
}

// However it is resized in the middle of whatever is written, a terminal is
// sound and can be redrawn.
func TestResizeStorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(drawSize(t), Options{Scrollback: 50})
		for range rapid.IntRange(1, 10).Draw(t, "sizes") {
			s.Write(output(t, "output"))
			s.Resize(drawSize(t))
			sound(t, s)
		}
		s.Write([]byte("\x18"))
		b := New(s.Size(), Options{})
		s.titles = nil
		b.Write(s.Redraw(termwire.Size{}))
		if d := difference(s, b); d != "" {
			t.Fatal(d)
		}
	})
}

type fataler interface{ Fatalf(string, ...any) }

// sound checks what everything else relies on.
func sound(t fataler, s *Screen) {
	c := s.cur
	switch {
	case c.x < 0 || c.x >= s.cols || c.y < 0 || c.y >= s.rows:
		t.Fatalf("the cursor is at %d, %d of %v", c.x, c.y, s.Size())
	case s.top < 0 || s.bottom >= s.rows || s.top > s.bottom:
		t.Fatalf("the margins are %d, %d of %v", s.top, s.bottom, s.Size())
	case c.wrap && (c.x != s.cols-1 || !s.modes.autowrap):
		t.Fatalf("a wrap is pending in column %d", c.x)
	case c.origin && (c.y < s.top || c.y > s.bottom):
		t.Fatalf("the cursor is in row %d, outside of the margins", c.y)
	case len(s.tabs) != s.cols:
		t.Fatalf("%d tab stops for %d columns", len(s.tabs), s.cols)
	}
	for _, g := range []*grid{s.main, s.alternate} {
		if g == nil {
			continue
		}
		if len(g.rows) != s.rows || g.rows[s.rows-1].wrapped {
			t.Fatalf("%d rows of %d, the last goes on: %v", len(g.rows), s.rows, g.rows[s.rows-1].wrapped)
		}
		for y, r := range g.rows {
			if r.cells != nil && len(r.cells) != s.cols || r.used > s.cols {
				t.Fatalf("row %d has %d cells of %d", y, len(r.cells), s.cols)
			}
			for x := range s.cols {
				second := x > 0 && r.at(x-1).attr&wide != 0
				if c := r.at(x); second != (c.attr&spacer != 0) || c.attr&wide != 0 && x == s.cols-1 {
					t.Fatalf("half of a wide character in column %d, row %d", x, y)
				}
			}
		}
	}
}

// A view of another size is a part of the screen with the cursor in it, and
// blanks, on any terminal.
func TestView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := New(drawSize(t), Options{})
		a.Write(output(t, "a"))
		a.Write([]byte("\x18"))
		view := drawSize(t)
		if view == a.Size() {
			return
		}
		b := New(view, Options{})
		b.Write(output(t, "before"))
		b.Write(a.Redraw(view))
		left, top := a.cur.x-b.cur.x, a.cur.y-b.cur.y
		if left < 0 || top < 0 || left > 0 && left+view.Cols > a.cols || top > 0 && top+view.Rows > a.rows {
			t.Fatalf("the view begins at %d, %d", left, top)
		}
		for y := range view.Rows {
			for x := range view.Cols {
				want := blank(0)
				if left+x < a.cols && top+y < a.rows {
					want = a.grid.rows[top+y].at(left + x)
				}
				cut := want.attr&spacer != 0 && x == 0 || want.attr&wide != 0 && x == view.Cols-1
				if cut {
					want.r, want.mark, want.attr = ' ', 0, want.attr&^(wide|spacer)
				}
				got := b.grid.rows[y].at(x)
				if got.r != want.r || b.marks.texts[got.mark] != a.marks.texts[want.mark] || lookDifference(a, b, want.style, got.style) != "" {
					t.Fatalf("column %d, row %d: %v, not %v", x, y, got, want)
				}
			}
		}
		if a.Alternate() != b.Alternate() || a.titled && a.title != b.title || a.modes.paste != b.modes.paste || a.modes.hidden != b.modes.hidden {
			t.Fatal("modes of the view differ")
		}
	})
}
