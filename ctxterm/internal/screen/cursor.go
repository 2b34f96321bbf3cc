package screen

// cursor is where and how the program writes: what DECSC saves. x and y count
// from 0. wrap says that the last column was written and the next character
// goes to the next row.
type cursor struct {
	x, y     int
	wrap     bool
	origin   bool // DECOM: rows count from the top margin and end at the bottom one
	pen      style
	charsets [4]byte // designators of G0 to G3
	shift    int     // the one of them in use
}

var home = cursor{charsets: [4]byte{'B', 'B', 'B', 'B'}}

// moved forgets what holds only between two characters that follow each other.
func (s *Screen) moved() { s.cur.wrap = false }

// moveTo places the cursor at column x and row y, which count from the top
// margin in origin mode.
func (s *Screen) moveTo(x, y int) {
	top, bottom := 0, s.rows-1
	if s.cur.origin {
		top, bottom = s.top, s.bottom
	}
	s.cur.x = clamp(x, 0, s.cols-1)
	s.cur.y = clamp(y+top, top, bottom)
	s.moved()
}

// toRow places the cursor in row y as moveTo does.
func (s *Screen) toRow(y int) { s.moveTo(s.cur.x, y) }

// toColumn places the cursor in column x.
func (s *Screen) toColumn(x int) {
	s.cur.x = clamp(x, 0, s.cols-1)
	s.moved()
}

// upward moves the cursor n rows up, not over the top margin.
func (s *Screen) upward(n int) {
	limit := 0
	if s.cur.y >= s.top {
		limit = s.top
	}
	s.cur.y = max(s.cur.y-n, limit)
	s.moved()
}

// downward moves the cursor n rows down, not over the bottom margin.
func (s *Screen) downward(n int) {
	limit := s.rows - 1
	if s.cur.y <= s.bottom {
		limit = s.bottom
	}
	s.cur.y = min(s.cur.y+n, limit)
	s.moved()
}

// index moves the cursor one row down and scrolls at the bottom margin.
func (s *Screen) index() {
	if s.cur.y == s.bottom {
		s.scrollUp(1)
	} else if s.cur.y < s.rows-1 {
		s.cur.y++
	}
	s.cur.wrap = false
}

// reverseIndex moves the cursor one row up and scrolls at the top margin.
func (s *Screen) reverseIndex() {
	if s.cur.y == s.top {
		s.grid.down(s.top, s.bottom, 1, s.erased())
	} else if s.cur.y > 0 {
		s.cur.y--
	}
	s.moved()
}

// scrollUp scrolls the region up. What leaves the top of the main screen goes
// to the scrollback.
func (s *Screen) scrollUp(n int) {
	n = min(n, s.bottom-s.top+1)
	if s.top == 0 && s.grid == s.main {
		for _, r := range s.grid.rows[:n] {
			s.keep(r)
		}
	}
	s.grid.up(s.top, s.bottom, n, s.erased())
}

// wrapLine goes on in the next row.
func (s *Screen) wrapLine() {
	y := s.cur.y
	if y == s.bottom {
		s.scrollUp(1)
		if s.top < s.bottom {
			s.grid.rows[y-1].wrapped = true
		}
	} else if y < s.rows-1 {
		s.grid.rows[y].wrapped = true
		s.cur.y++
	}
	s.cur.x, s.cur.wrap = 0, false
}

// save is DECSC.
func (s *Screen) save() {
	s.grid.saved = s.cur
	s.grid.saved.pen.link = 0
}

// restore is DECRC.
func (s *Screen) restore() {
	link := s.cur.pen.link
	s.cur = s.grid.saved
	s.cur.pen.link = link
	s.cur.x = min(s.cur.x, s.cols-1)
	s.cur.y = min(s.cur.y, s.rows-1)
	if s.cur.origin {
		s.cur.y = clamp(s.cur.y, s.top, s.bottom)
	}
	s.cur.wrap = s.cur.wrap && s.modes.autowrap && s.cur.x == s.cols-1
	s.single = 0
}

// erased is what erasing leaves: blanks in the background of the pen.
func (s *Screen) erased() cell { return blank(s.cur.pen.bg) }

func (s *Screen) line() *row { return s.grid.rows[s.cur.y] }

func clamp(n, low, high int) int { return max(low, min(n, high)) }
