package screen

import "slices"

// cursor makes the terminal's cursor like c, which is not the final one, with
// full margins.
func (p *painter) cursor(c cursor) {
	p.str("\x1b[r")
	p.mode(6, c.origin)
	p.place(c)
	p.pen(c.pen)
	p.charsets(c)
}

// place moves the cursor, and writes the last column again if it has been
// written.
func (p *painter) place(c cursor) {
	if !c.wrap {
		p.toCell(c, c.x)
		return
	}
	g := p.s.grid
	if p.main {
		g = p.s.main
	}
	r := g.rows[c.y]
	x := c.x
	if x > 0 && r.at(x).attr&spacer != 0 {
		x--
	}
	p.toCell(c, x)
	p.cells(r, x, p.s.cols)
}

// toCell moves to column x of a cursor's row.
func (p *painter) toCell(c cursor, x int) {
	y := c.y
	if c.origin && p.inside {
		y -= p.s.top
	}
	p.at(x, y+p.down)
}

func (p *painter) charsets(c cursor) {
	for i, set := range c.charsets {
		p.b = append(p.b, 0x1B, '('+byte(i), set)
	}
	p.str([...]string{"\x0f", "\x0e", "\x1bn", "\x1bo"}[c.shift])
}

func (p *painter) keyboard(g *grid) {
	p.str("\x1b[<99u")
	flags := append(slices.Clone(g.keys.stack), g.keys.flags)
	p.f("\x1b[=%d;1u", flags[0])
	for _, f := range flags[1:] {
		p.f("\x1b[>%du", f)
	}
}

func (p *painter) tabs() {
	p.str("\r\x1b[3g")
	for x, stop := range p.s.tabs {
		if stop {
			p.f("\x1b[%dG\x1bH", x+1)
		}
	}
}

// modes sets all modes that do not move the cursor or change what writing
// does, and what else stays as it is while a program writes.
func (p *painter) modes() {
	m := &p.s.modes
	for _, n := range [...]int{1, 5, 1004, 1007, 2004} {
		p.mode(n, *m.flag(n))
	}
	if *m.flag(66) { // not every terminal knows the keypad as a mode
		p.str("\x1b=")
	} else {
		p.str("\x1b>")
	}
	for _, n := range [...]int{m.mouse, m.coordinates} {
		if n != 0 {
			p.mode(n, true)
		}
	}
	if m.otherKeys != 0 {
		p.f("\x1b[>4;%dm", m.otherKeys)
	}
	p.f("\x1b[%d q", m.pointer)
	if m.blinking != (m.pointer%2 == 1) {
		p.mode(12, m.blinking)
	}
	if p.s.titled {
		p.f("\x1b]2;%s\x1b\\", p.s.title)
	}
	for n, c := range p.s.colors.palette {
		if c != 0 {
			p.f("\x1b]4;%d;%s\x1b\\", n, c.spec())
		}
	}
	for i, c := range p.s.colors.dynamic {
		if c != 0 {
			p.f("\x1b]%d;%s\x1b\\", 10+i, c.spec())
		}
	}
}

// final is the cursor as it is, and the modes that change what writing does.
func (p *painter) final() {
	s, c := p.s, p.s.cur
	p.inside = true
	p.mode(6, c.origin)
	p.place(c)
	p.pen(c.pen)
	p.charsets(c)
	if s.modes.newline {
		p.str("\x1b[20h")
	}
	if s.modes.insert {
		p.str("\x1b[4h")
	}
	if !s.modes.autowrap {
		p.mode(7, false)
	}
	p.mode(25, !s.modes.hidden)
	if !s.modes.sync {
		p.mode(2026, false)
	}
	switch {
	case s.single == 2:
		p.str("\x1bN")
	case s.single == 3:
		p.str("\x1bO")
	case s.last != 0:
		// Written again, so that it can be repeated.
		c.y = s.lastY
		p.toCell(c, s.lastX)
		p.str(string(s.last))
	}
}
