package screen

// eraseLine is EL.
func (s *Screen) eraseLine(how int) {
	switch from, end := s.cur.x, s.cols; how {
	case 1:
		from, end = 0, s.cur.x+1
		fallthrough
	case 0:
		s.line().erase(from, end, s.cols, s.erased())
	case 2:
		s.line().erase(0, s.cols, s.cols, s.erased())
	}
	s.moved()
}

// eraseDisplay is ED.
func (s *Screen) eraseDisplay(how int) {
	from, end := 0, s.rows
	switch how {
	case 0:
		s.eraseLine(0)
		from = s.cur.y + 1
	case 1:
		s.eraseLine(1)
		end = s.cur.y
	case 2:
	case 3:
		s.history.clear()
		return
	default:
		return
	}
	for _, r := range s.grid.rows[from:end] {
		r.reset(s.erased())
	}
	s.moved()
}

// insertLines is IL. It does nothing outside of the margins.
func (s *Screen) insertLines(n int) {
	if s.cur.y < s.top || s.cur.y > s.bottom {
		return
	}
	s.grid.down(s.cur.y, s.bottom, n, s.erased())
	s.cur.x = 0
	s.moved()
}

// deleteLines is DL.
func (s *Screen) deleteLines(n int) {
	if s.cur.y < s.top || s.cur.y > s.bottom {
		return
	}
	s.grid.up(s.cur.y, s.bottom, n, s.erased())
	s.cur.x = 0
	s.moved()
}

// align is DECALN: the screen full of E.
func (s *Screen) align() {
	for _, r := range s.grid.rows {
		r.reset(cell{r: 'E'})
	}
	s.top, s.bottom = 0, s.rows-1
	s.cur.origin = false
	s.moveTo(0, 0)
}

// growTabs puts a tab stop in every eighth of the columns that have not been
// there before.
func (s *Screen) growTabs() {
	for x := len(s.tabs); x < s.cols; x++ {
		s.tabs = append(s.tabs, x%8 == 0)
	}
}

// resetTabs puts a tab stop in every eighth column.
func (s *Screen) resetTabs() {
	s.tabs = s.tabs[:0]
	s.growTabs()
}

// tab moves the cursor to the n-th next tab stop, or the last column.
func (s *Screen) tab(n int) {
	x := s.cur.x
	for ; n > 0 && x < s.cols-1; n-- {
		for x++; x < s.cols-1 && !s.tabs[x]; x++ {
		}
	}
	s.cur.x = x
	s.moved()
}

// backTab moves the cursor to the n-th tab stop before it, or the first column.
func (s *Screen) backTab(n int) {
	x := s.cur.x
	for ; n > 0 && x > 0; n-- {
		for x--; x > 0 && !s.tabs[x]; x-- {
		}
	}
	s.toColumn(x)
}
