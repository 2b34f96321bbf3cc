package screen

import (
	"bytes"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/termwire"
)

// Above is what puts text above the line the cursor is in, all rows of it, as
// if it had been there before: line, cursor, pen and modes are as they were,
// what is too much leaves at the top. To be written to this terminal and to
// all that show the same. Of the text, lines of UTF-8, only characters, LF, TAB
// and SGR sequences count, and the last libctx.MaxTermScrollback lines. nil on
// the alternate screen, if the cursor is outside of the margins, and where
// Ground does not hold.
func (s *Screen) Above(text []byte) []byte {
	y := s.cur.y
	if s.Alternate() || !s.Ground() || y < s.top || y > s.bottom {
		return nil
	}
	first := y
	for first > 0 && s.grid.rows[first-1].wrapped {
		if first--; first < s.top {
			return nil
		}
	}
	lines := s.layout(text)
	if len(lines) == 0 {
		return nil
	}
	last := s.bottom
	for last > y && s.grid.rows[last].length(s.cols) == 0 && !s.grid.rows[last-1].wrapped {
		last--
	}

	p := painter{s: s}
	p.str("\x1b[?2026h\x1b[?25l\x1b[?6l")
	p.plain()
	for row := first; row <= s.bottom; row++ {
		p.at(0, row)
		p.str("\x1b[K")
	}
	p.at(0, first)
	joined := false
	for _, l := range lines {
		if joined {
			p.str(wrap)
		}
		p.b = append(p.b, l.text...)
		if joined = l.wrapped; !joined {
			p.str("\r\n")
		}
	}
	p.block(first, last)
	p.down = len(lines) - max(first+len(lines)+last-first-s.bottom, 0)
	p.final()
	return p.b
}

// wrap goes on in the next row, which scrolls in without a colour.
const wrap = " \r"

// block draws rows one below the other from where the cursor is.
func (p *painter) block(first, last int) {
	joined := false
	for y := first; y <= last; y++ {
		r := p.s.grid.rows[y]
		if joined {
			p.pen(style{})
			p.str(wrap)
		}
		length := r.length(p.s.cols)
		if joined = r.wrapped && y < last; joined {
			length = p.s.cols
		}
		p.cells(r, 0, length)
		if !joined && y < last {
			p.pen(style{})
			p.str("\r\n")
		}
	}
}

// laid is a row of a text.
type laid struct {
	text    []byte
	wrapped bool
}

// layout makes rows of a text.
func (s *Screen) layout(text []byte) []laid {
	text = harmless(text)
	if len(text) == 0 {
		return nil
	}
	if text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	paper := New(termwire.Size{Cols: s.cols, Rows: 2}, Options{Scrollback: libctx.MaxTermScrollback})
	paper.widths = s.widths
	paper.modes.newline = true
	paper.Write(text)
	paper.cur.pen = style{}
	if paper.cur.y > 0 {
		paper.index()
	}
	var lines []laid
	paper.history.last(libctx.MaxTermScrollback, func(line []byte, wrapped bool) {
		lines = append(lines, laid{line, wrapped})
	})
	return lines
}

// harmless keeps of a text its characters, line ends, tabs and SGR sequences.
func harmless(text []byte) []byte {
	out := make([]byte, 0, len(text)+1)
	for len(text) > 0 {
		if n := sgrLength(text); n > 0 {
			out = append(out, text[:n]...)
			text = text[n:]
			continue
		}
		r, n := utf8.DecodeRune(text)
		if r >= ' ' && r < 0x7F || r >= 0xA0 || r == '\n' || r == '\t' {
			out = utf8.AppendRune(out, r)
		}
		text = text[n:]
	}
	return out
}

// sgrLength is the length of the SGR sequence at the beginning of a text, 0 if
// there is none.
func sgrLength(text []byte) int {
	if !bytes.HasPrefix(text, []byte("\x1b[")) {
		return 0
	}
	for i, c := range text[2:] {
		if c == 'm' {
			return i + 3
		}
		if (c < '0' || c > '9') && c != ';' && c != ':' {
			return 0
		}
	}
	return 0
}
