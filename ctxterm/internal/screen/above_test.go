package screen

import (
	"testing"

	"cortexfs.org/libctx/termwire"
	"pgregory.net/rapid"
)

// shown is a copy of a terminal that shares nothing with it.
func shown(a *Screen) *Screen {
	b := New(a.Size(), Options{})
	b.Write(a.Redraw(termwire.Size{}))
	return b
}

// The text is above the line, and nothing else has changed.
func TestAbove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := drawSize(t)
		a := New(size, Options{})
		a.Write(output(t, "a"))
		a.Write([]byte("\x18"))
		a.titles = nil
		text := output(t, "text")
		above := a.Above(text)
		if above == nil {
			return
		}
		want := shown(a)
		insert(want, text)
		b := shown(a)
		b.Write(above)
		if d := difference(b, want); d != "" {
			t.Fatalf("text %q as %q: %s", text, above, d)
		}
	})
}

// insert does what Above promises, on the cells.
func insert(s *Screen, text []byte) {
	first := s.cur.y
	for first > 0 && s.grid.rows[first-1].wrapped {
		first--
	}
	last := s.bottom
	for last > s.cur.y && s.grid.rows[last].length(s.cols) == 0 && !s.grid.rows[last-1].wrapped {
		last--
	}
	lines := s.layout(text)
	paper := New(termwire.Size{Cols: s.cols, Rows: len(lines) + 1}, Options{})
	joined := false
	for _, l := range lines {
		if joined {
			paper.Write([]byte(wrap))
		}
		paper.Write(l.text)
		if joined = l.wrapped; !joined {
			paper.Write([]byte("\r\n"))
		}
	}
	rows := append([]*row(nil), s.grid.rows[s.top:first]...)
	for _, r := range paper.grid.rows[:len(lines)] {
		copied := &row{fill: r.fill, wrapped: r.wrapped}
		for x := range s.cols {
			c := r.at(x)
			n, _ := s.marks.add(paper.marks.texts[c.mark])
			c.mark = n
			copied.extend(x, s.cols)
			copied.cells[x] = c
			copied.used = x + 1
		}
		rows = append(rows, copied)
	}
	rows = append(rows, s.grid.rows[first:last+1]...)
	height := s.bottom - s.top + 1
	cut := max(len(rows)-height, 0)
	rows = rows[cut:]
	for len(rows) < height {
		rows = append(rows, &row{fill: blank(0)})
	}
	copy(s.grid.rows[s.top:], rows)
	s.grid.rows[s.bottom].wrapped = false
	if s.top > 0 && (cut > 0 || first == s.top) {
		s.grid.rows[s.top-1].wrapped = false
	}
	down := len(lines) - cut
	s.cur.y += down
	s.lastY += down
}
