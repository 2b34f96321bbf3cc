package screen

import "cortexfs.org/libctx/termwire"

// Resize gives the terminal another size, which must be valid. Columns are cut
// off or added at the right; no text moves to another line. Rows that are too
// many go away below the cursor, and then at the top, from the main screen to
// the scrollback; new ones are added below, empty. Margins are set back.
func (s *Screen) Resize(size termwire.Size) {
	if size == s.Size() {
		return
	}
	wasCols := s.cols
	s.cols = size.Cols
	if s.Alternate() {
		s.resizeGrid(s.alternate, &s.cur.y, wasCols, size.Rows)
		s.resizeGrid(s.main, &s.main.saved.y, wasCols, size.Rows)
	} else {
		s.resizeGrid(s.main, &s.cur.y, wasCols, size.Rows)
	}
	s.rows, s.spare = size.Rows, nil
	s.top, s.bottom = 0, s.rows-1
	s.cur.x = min(s.cur.x, s.cols-1)
	s.cur.wrap, s.last = false, 0
	if s.cols < len(s.tabs) {
		s.tabs = s.tabs[:s.cols]
	}
	s.growTabs()
}

// resizeGrid resizes one screen, whose cursor is in row y.
func (s *Screen) resizeGrid(g *grid, y *int, wasCols, rows int) {
	if s.cols != wasCols {
		for _, r := range g.rows {
			r.resize(wasCols, s.cols)
		}
	}
	away := max(*y-rows+1, 0)
	if g == s.main {
		for _, r := range g.rows[:away] {
			s.keep(r)
		}
	}
	*y -= away
	if y != &g.saved.y {
		g.saved.y = clamp(g.saved.y-away, 0, rows-1)
	}
	kept := g.rows[away:min(away+rows, len(g.rows))]
	g.rows = append(make([]*row, 0, rows), kept...)
	for len(g.rows) < rows {
		g.rows = append(g.rows, &row{fill: blank(0)})
	}
	g.rows[rows-1].wrapped = false
	g.saved.x = min(g.saved.x, s.cols-1)
	g.saved.wrap = false
}
