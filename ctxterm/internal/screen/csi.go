package screen

// escape carries out ESC and a letter, or ESC, an intermediate byte and one.
func (s *Screen) escape(c byte) {
	switch s.inter {
	case '(', ')', '*', '+':
		s.cur.charsets[s.inter-'('] = charset(c)
		return
	case '#':
		if c == '8' {
			s.align()
		}
		return
	case 0:
	default:
		return
	}
	switch c {
	case '7':
		s.save()
	case '8':
		s.restore()
	case 'D':
		s.index()
	case 'E':
		s.index()
		s.cur.x = 0
	case 'H':
		s.tabs[s.cur.x] = true
	case 'M':
		s.reverseIndex()
	case 'N':
		s.single = 2
	case 'O':
		s.single = 3
	case 'Z':
		s.attributes()
	case 'c':
		s.reset()
	case '=':
		s.modes.appKeypad = true
	case '>':
		s.modes.appKeypad = false
	case 'n':
		s.cur.shift = 2
	case 'o':
		s.cur.shift = 3
	}
}

// charset is a designator that is known, else ASCII's.
func charset(c byte) byte {
	if c == '0' || c == 'A' {
		return c
	}
	return 'B'
}

// csi carries out a control sequence.
func (s *Screen) csi(c byte) {
	switch s.prefix {
	case 0:
		if s.inter == 0 {
			s.plain(c)
		} else {
			s.intermediate(c)
		}
	case '?':
		s.private(c)
	case '>':
		s.greater(c)
	case '=':
		if s.inter == 0 && c == 'u' {
			s.grid.keys.set(s.params.get(0, 0), s.params.get(1, 1))
		} else if s.inter == 0 && c == 'c' {
			s.answer("\x1bP!|00000000\x1b\\")
		}
	case '<':
		if s.inter == 0 && c == 'u' {
			s.grid.keys.pop(s.params.count(0))
		}
	}
}

func (s *Screen) plain(c byte) {
	p := &s.params
	switch c {
	case '@':
		s.line().insert(s.cur.x, p.count(0), s.cols, s.erased())
		s.moved()
	case 'A':
		s.upward(p.count(0))
	case 'B', 'e':
		s.downward(p.count(0))
	case 'C', 'a':
		s.toColumn(s.cur.x + p.count(0))
	case 'D':
		s.toColumn(s.cur.x - p.count(0))
	case 'E':
		s.downward(p.count(0))
		s.cur.x = 0
	case 'F':
		s.upward(p.count(0))
		s.cur.x = 0
	case 'G', '`':
		s.toColumn(p.count(0) - 1)
	case 'H', 'f':
		s.moveTo(p.count(1)-1, p.count(0)-1)
	case 'I':
		s.tab(p.count(0))
	case 'J':
		s.eraseDisplay(p.get(0, 0))
	case 'K':
		s.eraseLine(p.get(0, 0))
	case 'L':
		s.insertLines(p.count(0))
	case 'M':
		s.deleteLines(p.count(0))
	case 'P':
		s.line().remove(s.cur.x, p.count(0), s.cols, s.erased())
		s.moved()
	case 'S':
		s.scrollUp(p.count(0))
	case 'T':
		if p.n < 2 {
			s.grid.down(s.top, s.bottom, p.count(0), s.erased())
		}
	case '^':
		s.grid.down(s.top, s.bottom, p.count(0), s.erased())
	case 'X':
		s.line().erase(s.cur.x, min(s.cur.x+p.count(0), s.cols), s.cols, s.erased())
		s.moved()
	case 'Z':
		s.backTab(p.count(0))
	case 'c':
		if p.get(0, 0) == 0 {
			s.attributes()
		}
	case 'd':
		s.toRow(p.count(0) - 1)
	case 'g':
		switch p.get(0, 0) {
		case 0:
			s.tabs[s.cur.x] = false
		case 3:
			clear(s.tabs)
		}
	case 'h', 'l':
		for i := range p.n {
			s.setMode(p.get(i, 0), c == 'h')
		}
	case 'm':
		s.sgr()
	case 'n':
		s.status(p.get(0, 0))
	case 'r':
		s.margins(p.count(0)-1, p.get(1, 0)-1)
	case 's':
		if p.n == 0 {
			s.save()
		}
	case 't':
		s.window()
	case 'u':
		s.restore()
	}
}

func (s *Screen) intermediate(c byte) {
	switch {
	case s.inter == '!' && c == 'p':
		s.softReset()
	case s.inter == ' ' && c == 'q':
		if n := s.params.get(0, 0); n <= 6 {
			s.modes.pointer = n
			s.modes.blinking = n%2 == 1
		}
	case s.inter == '$' && c == 'p':
		n, known := s.params.get(0, 0), 0
		switch n {
		case 4:
			known = state(s.modes.insert)
		case 20:
			known = state(s.modes.newline)
		}
		s.answer("\x1b[%d;%d$y", n, known)
	}
}

func (s *Screen) private(c byte) {
	p := &s.params
	switch {
	case s.inter == '$' && c == 'p':
		s.answer("\x1b[?%d;%d$y", p.get(0, 0), s.privateState(p.get(0, 0)))
	case s.inter != 0:
	case c == 'h' || c == 'l':
		for i := range p.n {
			s.setPrivate(p.get(i, 0), c == 'h')
		}
	case c == 'J':
		s.eraseDisplay(p.get(0, 0))
	case c == 'K':
		s.eraseLine(p.get(0, 0))
	case c == 'W' && p.get(0, 0) == 5:
		s.resetTabs()
	case c == 'n' && p.get(0, 0) == 6:
		s.answer("\x1b[?%d;%dR", s.shownRow(), s.cur.x+1)
	case c == 'u':
		s.answer("\x1b[?%du", s.grid.keys.flags)
	case c == 'm' && p.get(0, 0) == 4:
		s.answer("\x1b[>4;%dm", s.modes.otherKeys)
	}
}

func (s *Screen) greater(c byte) {
	p := &s.params
	switch {
	case s.inter != 0:
	case c == 'c' && p.get(0, 0) == 0:
		s.answer("\x1b[>1;354;0c")
	case c == 'q' && p.get(0, 0) == 0:
		s.version()
	case c == 'u':
		s.grid.keys.push(p.get(0, 0))
	case c == 'm' && (p.n == 0 || p.get(0, 0) == 4):
		s.modes.otherKeys = min(p.get(1, 0), 3)
	case c == 'n' && p.get(0, 0) == 4:
		s.modes.otherKeys = 0
	}
}

// margins is DECSTBM; bottom -1 is the last row.
func (s *Screen) margins(top, bottom int) {
	if bottom < 0 || bottom >= s.rows {
		bottom = s.rows - 1
	}
	if top >= bottom {
		return
	}
	s.top, s.bottom = top, bottom
	s.moveTo(0, 0)
}
