package screen

import (
	"bytes"

	"cortexfs.org/libctx"
)

// ascii writes printable ASCII.
func (s *Screen) ascii(text []byte) {
	if s.single != 0 || s.cur.charsets[s.cur.shift] != 'B' || s.modes.insert {
		for _, c := range text {
			s.print(rune(c))
		}
		return
	}
	c := &s.cur
	s.last = rune(text[len(text)-1])
	for {
		if c.wrap {
			s.wrapLine()
		}
		n := min(len(text), s.cols-c.x)
		s.line().put(c.x, text[:n], c.pen, s.cols)
		text = text[n:]
		c.x += n
		s.lastX, s.lastY = c.x-1, c.y
		if c.x == s.cols {
			c.x--
			c.wrap = s.modes.autowrap
			if !c.wrap && len(text) > 0 {
				s.line().put(c.x, text[len(text)-1:], c.pen, s.cols)
				return
			}
		}
		if len(text) == 0 {
			return
		}
	}
}

// print writes one character through the character set in use.
func (s *Screen) print(r rune) {
	set := s.cur.charsets[s.cur.shift]
	if s.single != 0 {
		set, s.single = s.cur.charsets[s.single], 0
	}
	s.write(translate(set, r))
}

// write writes one character.
func (s *Screen) write(r rune) {
	width := s.widths.of(r)
	if width == 0 {
		s.combine(r)
		s.last = 0
		return
	}
	c := &s.cur
	if c.wrap || width == 2 && c.x == s.cols-1 && s.modes.autowrap && s.cols > 1 {
		s.wrapLine()
	}
	if c.x+width > s.cols {
		s.last = 0 // no room, and no next row to go to
		return
	}
	if s.modes.insert {
		s.line().insert(c.x, width, s.cols, s.erased())
	}
	s.line().set(c.x, width, cell{r: r, style: c.pen}, s.cols)
	s.last, s.lastX, s.lastY = r, c.x, c.y
	if s.modes.insert {
		s.last = 0 // REP there would have to move what it just wrote
	}
	if c.x += width; c.x == s.cols {
		c.x--
		c.wrap = s.modes.autowrap
	}
}

// repeat is REP: the last character again, if nothing came between.
func (s *Screen) repeat(n int) {
	n = min(n, libctx.MaxTermRepeat)
	if s.last > 0 && s.last < 0x80 && s.cur.charsets[s.cur.shift] == 'B' {
		s.ascii(bytes.Repeat([]byte{byte(s.last)}, n))
		return
	}
	for ; n > 0 && s.last != 0; n-- {
		s.write(s.last)
	}
}

// translate maps a character by a character set: DEC's special graphics, the
// British one, or ASCII, which any other is taken for.
func translate(set byte, r rune) rune {
	switch {
	case set == '0' && r >= 0x5F && r <= 0x7E:
		return graphics[r-0x5F]
	case set == 'A' && r == '#':
		return '£'
	}
	return r
}

var graphics = [...]rune{
	' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼',
	'⎺', '⎻', '─', '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
}
