package screen

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"cortexfs.org/libctx"
)

// history is the scrollback: lines as bytes with their SGR sequences, which
// takes a tenth of what cells take, in pieces that are dropped as a whole.
type history struct {
	lines  int // that are kept; 0: none
	chunks []chunk
	count  int // lines there
	bytes  int // of all pieces
}

// chunk is some lines. ends[i] is where line i ends, and above it whether it
// went on in the next one.
type chunk struct {
	data []byte
	ends []uint32
}

const (
	chunkBytes = 64 << 10
	chunkLines = 1024
	goesOn     = 1 << 31
)

// keep adds a row to the scrollback.
func (s *Screen) keep(r *row) {
	h := &s.history
	if h.lines <= 0 {
		return
	}
	if n := len(h.chunks); n == 0 || len(h.chunks[n-1].data) >= chunkBytes || len(h.chunks[n-1].ends) == chunkLines {
		h.next()
	}
	c := &h.chunks[len(h.chunks)-1]
	had := cap(c.data)
	length, tail := r.length(s.cols), false
	if r.wrapped {
		length = s.cols
	} else if tail = length > r.used && r.fill.r == ' '; tail {
		length = r.used
	}
	var st style
	c.data = s.appendCells(c.data, r, 0, length, &st, -1)
	if tail {
		c.data = append(s.appendPen(c.data, st, r.fill.style), "\x1b[K"...)
		st = r.fill.style
	}
	if st != (style{}) {
		c.data = append(c.data, "\x1b[m"...)
	}
	end := uint32(len(c.data))
	if r.wrapped {
		end |= goesOn
	}
	c.ends = append(c.ends, end)
	h.count++
	h.bytes += cap(c.data) - had
}

// next begins a piece, and drops the oldest if there is enough without it. Its
// memory is used again.
func (h *history) next() {
	var c chunk
	for len(h.chunks) > 0 {
		first := h.chunks[0]
		if h.count-len(first.ends) < h.lines && h.bytes+chunkBytes <= libctx.MaxTermScrollbackBytes {
			break
		}
		h.count -= len(first.ends)
		h.bytes -= cap(first.data)
		c = chunk{data: first.data[:0], ends: first.ends[:0]}
		h.chunks = append(h.chunks[:0], h.chunks[1:]...)
	}
	if cap(c.data) > 2*chunkBytes {
		c.data = nil // of very long lines
	}
	h.bytes += cap(c.data)
	h.chunks = append(h.chunks, c)
}

func (h *history) clear() { h.chunks, h.count, h.bytes = nil, 0, 0 }

// last calls f for each of the last n lines, the oldest first.
func (h *history) last(n int, f func(line []byte, wrapped bool)) {
	skip := h.count - min(n, h.count, h.lines)
	for _, c := range h.chunks {
		from := uint32(0)
		for _, e := range c.ends {
			end := e &^ goesOn
			if skip--; skip < 0 {
				f(c.data[from:end], e&goesOn != 0)
			}
			from = end
		}
	}
}

// Scrollback is the last lines that left the main screen at its top, with
// their styles but without links, each ended by CRLF. A coloured rest of a line
// is an EL.
func (s *Screen) Scrollback(lines int) []byte {
	var out []byte
	s.history.last(lines, func(line []byte, _ bool) {
		out = append(append(out, line...), "\r\n"...)
	})
	return out
}

// appendCells appends the cells of a row from one column up to another, and
// leaves in st the style that a terminal then has. left is the column which
// that terminal shows at its left edge; -1 for a text of lines, without links.
func (s *Screen) appendCells(dst []byte, r *row, from, end int, st *style, left int) []byte {
	for x := from; x < end; x++ {
		c := r.at(x)
		look := c.style
		look.attr &^= wide | spacer
		if left < 0 {
			look.link = 0
		}
		if look != *st {
			dst = s.appendPen(dst, *st, look)
			*st = look
		}
		if x >= r.used { // blank, or E
			for ; x < end; x++ {
				dst = append(dst, byte(c.r))
			}
			break
		}
		if n := r.same(x, end); n > 0 {
			at := len(dst)
			dst = slices.Grow(dst, n)[:at+n]
			for i := range n {
				dst[at+i] = byte(r.cells[x+i].r)
			}
			x += n - 1
			continue
		}
		switch {
		case c.attr&spacer != 0 && x > from:
			continue // with the cell before
		case c.attr&spacer != 0 || c.attr&wide != 0 && x+1 == end:
			dst = append(dst, ' ') // the other half is outside
		default:
			dst = utf8.AppendRune(dst, c.r)
			dst = append(dst, s.marks.texts[c.mark]...)
			if next := x + 1 + int(c.attr&wide/wide); left >= 0 && c.mark != 0 && next < end {
				// Terminals do not agree on how wide this is.
				dst = append(dst, "\x1b["...)
				dst = append(strconv.AppendInt(dst, int64(next-left+1), 10), 'G')
			}
		}
	}
	return dst
}

// appendPen appends what changes the style of a terminal.
func (s *Screen) appendPen(dst []byte, was, st style) []byte {
	if was.link != st.link {
		dst = append(dst, "\x1b]8;"...)
		if st.link == 0 {
			dst = append(dst, ';')
		}
		dst = append(dst, s.links.texts[st.link]...)
		dst = append(dst, "\x1b\\"...)
		was.link = st.link
	}
	if was == st {
		return dst
	}
	if st == (style{link: st.link}) {
		return append(dst, "\x1b[m"...)
	}
	return appendSGR(dst, st)
}
