package screen

import (
	"fmt"
	"strconv"

	"cortexfs.org/libctx/termwire"
)

// Redraw is what makes any terminal show what this one does, whatever that
// showed before and whatever modes it was in. For the zero view, or one of the
// screen's own size, all of the state is restored: the main screen under the
// alternate one, margins, tab stops, character sets, saved cursors, and the
// rest, so that the terminal can go on with what the program writes next; for
// that Ground must hold. For any other view it is a picture for a terminal of
// that size, which is then drawn again and not written to: the part of the
// screen around the cursor, and blanks where the view is larger. A title, or
// colours of the palette, which no program has touched stay what they are.
//
// Nothing is cleared before it is drawn, and the terminal is asked to show it
// all at once. The result can be longer than a frame may be.
func (s *Screen) Redraw(view termwire.Size) []byte {
	p := painter{s: s, b: make([]byte, 0, 4096)}
	if view == (termwire.Size{}) || view == s.Size() {
		p.neutral(false)
		p.whole()
	} else {
		p.neutral(s.Alternate())
		p.picture(view)
	}
	return p.b
}

// Replay is the last lines of the scrollback, moved off the top of a terminal
// of the view's size (the zero view: of this size), and then Redraw.
func (s *Screen) Replay(view termwire.Size, lines int) []byte {
	p := painter{s: s}
	p.neutral(false)
	rows := view.Rows
	if rows == 0 {
		rows = s.rows
	}
	p.str("\x1b[1;1H\x1b[J")
	p.b = append(p.b, s.Scrollback(lines)...)
	for range rows - 1 {
		p.str("\n")
	}
	return append(p.b, s.Redraw(view)...)
}

// painter collects what a terminal is sent. st is the style it then has.
type painter struct {
	s      *Screen
	b      []byte
	st     style
	main   bool // the terminal is still on the main screen, for the alternate one
	inside bool // its margins are those of the screen
	down   int  // rows it shows the cursor's row below this one
}

func (p *painter) str(s string)              { p.b = append(p.b, s...) }
func (p *painter) f(format string, a ...any) { p.b = fmt.Appendf(p.b, format, a...) }

// at places the cursor at a column and row from 0.
func (p *painter) at(x, y int) {
	p.b = strconv.AppendInt(append(p.b, "\x1b["...), int64(y+1), 10)
	p.b = strconv.AppendInt(append(p.b, ';'), int64(x+1), 10)
	p.b = append(p.b, 'H')
}

func (p *painter) mode(n int, on bool) {
	final := 'l'
	if on {
		final = 'h'
	}
	p.f("\x1b[?%d%c", n, final)
}

func (p *painter) pen(st style) {
	p.b = p.s.appendPen(p.b, p.st, st)
	p.st = st
}

func (p *painter) cells(r *row, from, end int) {
	p.b = p.s.appendCells(p.b, r, from, end, &p.st, 0)
}

// neutral ends what a terminal may be in the middle of, and everything that
// changes what drawing does. It is on the one screen or the other afterwards.
func (p *painter) neutral(alternate bool) {
	p.str("\x18\x1b\\\x1b[?2026h\x1b[?25l")
	if alternate {
		p.str("\x1b[?1049h") // nothing happens to one that is there already
	} else {
		p.str("\x1b[?1049l\x1b[?1047l\x1b[?47l")
	}
	p.str("\x1b[?69l\x1b[r\x1b[?6l")
	p.plain()
	p.str("\x1b[?5l\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l")
	p.str("\x1b[>4;0m")
	if p.s.coloured {
		p.str("\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\")
	}
}

// plain is a cursor that draws like a new one.
func (p *painter) plain() {
	p.str("\x1b[4l\x1b[20l\x1b[?7h\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b]8;;\x1b\\\x1b[m")
	p.st = style{}
}

// whole restores everything.
func (p *painter) whole() {
	s := p.s
	p.grid(s.main)
	p.keyboard(s.main)
	p.tabs()
	if s.Alternate() {
		p.main = true
		p.cursor(s.main.saved)
		p.main = false
		p.str("\x1b[?1049h\x1b[?6l") // saves it, too
		p.plain()
		p.grid(s.alternate)
		p.keyboard(s.alternate)
	}
	p.cursor(s.grid.saved)
	p.str("\x1b7\x1b[?6l")
	p.plain()
	p.modes()
	if s.top != 0 || s.bottom != s.rows-1 {
		p.f("\x1b[%d;%dr", s.top+1, s.bottom+1)
	}
	p.final()
}

// grid draws all rows, and those that go on in the next one so.
func (p *painter) grid(g *grid) {
	s := p.s
	joined := false
	for y, r := range g.rows {
		if !joined {
			p.at(0, y)
		}
		length := r.length(s.cols)
		if joined {
			length = max(length, 1)
		}
		switch {
		case r.wrapped:
			p.cells(r, 0, s.cols)
		case length == s.cols:
			// The end of the row is erased before it is written, so that the
			// terminal forgets that the row went on.
			last := s.cols - 1
			if last > 0 && r.at(last).attr&spacer != 0 {
				last--
			}
			p.cells(r, 0, last)
			p.pen(style{})
			p.resume(last, y, joined)
			p.str("\x1b[K")
			p.cells(r, last, s.cols)
		default:
			p.cells(r, 0, length)
			p.pen(style{})
			p.str("\x1b[K")
		}
		joined = r.wrapped
	}
}

// resume makes sure that the cursor is in column x of row y, the last, where
// the row before has been joined and nothing was written yet.
func (p *painter) resume(x, y int, joined bool) {
	if joined && x == 0 {
		p.str(" ") // wraps
		p.at(0, y)
	}
}

// picture draws the part of the screen that a terminal of another size can
// show.
func (p *painter) picture(view termwire.Size) {
	s := p.s
	cols, rows := min(view.Cols, s.cols), min(view.Rows, s.rows)
	left, top := offset(s.cur.x, s.cols, cols), offset(s.cur.y, s.rows, rows)
	for y := range view.Rows {
		p.at(0, y)
		if y < rows {
			r := s.grid.rows[top+y]
			end := min(max(r.length(s.cols), left), left+cols)
			p.b = s.appendCells(p.b, r, left, end, &p.st, left)
			if end-left == view.Cols {
				continue
			}
		}
		p.pen(style{})
		p.str("\x1b[K")
	}
	p.pen(style{})
	p.modes()
	p.at(s.cur.x-left, s.cur.y-top)
	p.mode(25, !s.modes.hidden)
	p.mode(2026, false)
}

// offset is where a window of n out of size begins, so that at is in it.
func offset(at, size, n int) int {
	if at < n {
		return 0
	}
	return min(at-n/2, size-n)
}
