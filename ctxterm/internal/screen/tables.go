package screen

import "cortexfs.org/libctx"

// table holds texts that cells refer to by number, each once. Number 0 is the
// empty text.
type table struct {
	texts []string
	index map[string]uint32
	limit int // entries after which those no cell needs are removed
}

func newTable(limit int) table {
	return table{texts: []string{""}, index: map[string]uint32{"": 0}, limit: limit}
}

// add is the number of a text, which is new to the table if ok is false and
// there is no place for it before sweep has made some.
func (t *table) add(text string) (n uint32, ok bool) {
	if n, ok := t.index[text]; ok {
		return n, true
	}
	if len(t.texts) > t.limit {
		return 0, false
	}
	n = uint32(len(t.texts))
	t.texts = append(t.texts, text)
	t.index[text] = n
	return n, true
}

// sweep keeps the texts that visit asks renumber for, which maps an old number
// to its new one.
func (t *table) sweep(visit func(renumber func(uint32) uint32)) {
	kept := newTable(t.limit)
	visit(func(n uint32) uint32 {
		m, ok := kept.index[t.texts[n]]
		if !ok {
			m = uint32(len(kept.texts))
			kept.texts = append(kept.texts, t.texts[n])
			kept.index[t.texts[n]] = m
		}
		return m
	})
	*t = kept
}

// each calls f for every cell that shows.
func (s *Screen) each(f func(*cell)) {
	for _, g := range []*grid{s.main, s.alternate} {
		if g == nil {
			continue
		}
		for _, r := range g.rows {
			for x := range r.cells[:min(r.used, len(r.cells))] {
				f(&r.cells[x])
			}
		}
	}
}

// combine adds a mark to the character before the cursor.
func (s *Screen) combine(r rune) {
	row, x := s.line(), s.cur.x
	if !s.cur.wrap {
		x--
	}
	if x > 0 && row.at(x).attr&spacer != 0 {
		x--
	}
	if x < 0 {
		return
	}
	c := row.at(x)
	text := s.marks.texts[c.mark] + string(r)
	if len(text) > libctx.MaxTermMarks {
		return
	}
	n, ok := s.marks.add(text)
	if !ok {
		// The next sweep comes when the table has doubled: its cost, a look at
		// every cell, is spread over what was added.
		s.marks.sweep(func(renumber func(uint32) uint32) {
			s.each(func(c *cell) { c.mark = renumber(c.mark) })
		})
		s.marks.limit = 2*len(s.marks.texts) + markSweep
		n, _ = s.marks.add(text)
	}
	row.extend(x+1, s.cols)
	row.cells[x].mark = n
}

const markSweep = 4096

// link makes text, parameters and address of a hyperlink, that of what is
// written from now on. With more links on the screen than the table holds,
// further ones are left out.
func (s *Screen) link(text string) {
	n, ok := s.links.add(text)
	if !ok {
		// A sweep looks at every cell: not for each of many links.
		if s.crowded--; s.crowded < 0 {
			s.crowded = libctx.MaxTermLinks
			s.links.sweep(func(renumber func(uint32) uint32) {
				s.each(func(c *cell) { c.link = uint16(renumber(uint32(c.link))) })
			})
			n, _ = s.links.add(text)
		}
	}
	s.cur.pen.link = uint16(n)
}
