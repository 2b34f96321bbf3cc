package screen

// grid is one of the two screens.
type grid struct {
	rows  []*row
	saved cursor   // DECSC
	keys  keyboard // kitty's keyboard protocol has a stack for each screen
}

func newGrid(rows int) *grid {
	g := &grid{rows: make([]*row, rows)}
	for y := range g.rows {
		g.rows[y] = new(row)
	}
	g.clear()
	return g
}

// clear makes the grid a new one.
func (g *grid) clear() {
	for _, r := range g.rows {
		r.reset(blank(0))
	}
	g.saved, g.keys = home, keyboard{}
}

// up scrolls rows top to bottom up by n. Lines that then have another
// neighbour no longer go on in it.
func (g *grid) up(top, bottom, n int, fill cell) {
	n = min(n, bottom-top+1)
	if top > 0 {
		g.rows[top-1].wrapped = false
	}
	g.rows[bottom].wrapped = false
	if n == 1 {
		r := g.rows[top]
		copy(g.rows[top:bottom], g.rows[top+1:bottom+1])
		g.rows[bottom] = r
		r.reset(fill)
		return
	}
	moved := append([]*row(nil), g.rows[top:top+n]...)
	copy(g.rows[top:], g.rows[top+n:bottom+1])
	copy(g.rows[bottom+1-n:], moved)
	for _, r := range moved {
		r.reset(fill)
	}
}

// down scrolls rows top to bottom down by n.
func (g *grid) down(top, bottom, n int, fill cell) {
	n = min(n, bottom-top+1)
	if top > 0 {
		g.rows[top-1].wrapped = false
	}
	moved := append([]*row(nil), g.rows[bottom+1-n:bottom+1]...)
	copy(g.rows[top+n:bottom+1], g.rows[top:])
	copy(g.rows[top:], moved)
	for _, r := range moved {
		r.reset(fill)
	}
	g.rows[bottom].wrapped = false
}
