package screen

import "strings"

// Cell is a character as it is drawn.
type Cell struct {
	Text  string
	Width int    // in columns
	Style string // the parameters of the sequence that gives it its look, "" for a plain one
}

// Columns is the width of the terminal.
func (s *Screen) Columns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.em.Width()
}

// Cells are the lines that are to be seen without scrolling back, from the top to
// the last that is not empty, without blanks at their ends.
func (s *Screen) Cells() [][]Cell {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all [][]Cell
	last := 0
	for y := range s.em.Height() {
		var line []Cell
		end := 0
		for x := range s.em.Width() {
			c := s.em.CellAt(x, y)
			if c == nil || c.Width == 0 {
				continue // behind a wide character
			}
			style := strings.TrimSuffix(strings.TrimPrefix(c.Style.String(), "\x1b["), "m")
			line = append(line, Cell{c.Content, c.Width, strings.TrimPrefix(style, "0")})
			if strings.TrimSpace(c.Content) != "" {
				end = len(line)
			}
		}
		if all = append(all, line[:end]); end > 0 {
			last = len(all)
		}
	}
	return all[:last]
}
