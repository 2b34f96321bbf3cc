package screen

// color is 0 for the default colour, indexed plus 0 to 255 for one of the
// palette, or direct plus 0xRRGGBB.
type color uint32

const (
	indexed color = 1 << 24
	direct  color = 2 << 24
)

// attr is a set of attributes and, above them, the style of the underline.
type attr uint16

const (
	bold attr = 1 << iota
	faint
	italic
	blink
	inverse
	invisible
	strike
	overline
	wide   // the character takes this cell and the next one
	spacer // the second cell of a wide character

	underShift      = 10
	underline  attr = 7 << underShift // 0 none, 1 single, 2 double, 3 curly, 4 dotted, 5 dashed
)

// style is how a cell looks. link is an index into the table of links.
type style struct {
	fg, bg, under color
	attr          attr
	link          uint16
}

// cell is one place of the grid. mark is an index into the table of marks:
// what combines with the character. A blank cell is a space.
type cell struct {
	r    rune
	mark uint32
	style
}

// blank is what erasing leaves: a space in the background colour.
func blank(bg color) cell { return cell{r: ' ', style: style{bg: bg}} }

// row is one line of the grid. Cells from used on are all like fill, so that
// erasing and scrolling cost nothing; what is in cells there is stale. wrapped
// says that the text goes on in the next row; it is never set in the last one.
type row struct {
	cells   []cell // nil, or one for each column
	used    int
	fill    cell
	wrapped bool
}

// at is the cell in column x.
func (r *row) at(x int) cell {
	if x < r.used {
		return r.cells[x]
	}
	return r.fill
}

// reset makes all cells of the row like fill.
func (r *row) reset(fill cell) { r.used, r.fill, r.wrapped = 0, fill, false }

// extend makes the cells before column x real.
func (r *row) extend(x, cols int) {
	if r.cells == nil {
		r.cells = make([]cell, cols)
	}
	for ; r.used < x; r.used++ {
		r.cells[r.used] = r.fill
	}
}

// split makes blanks of the two halves of a wide character whose second half
// is in column x, if one is there.
func (r *row) split(x int) {
	if x <= 0 || x >= r.used || r.cells[x].attr&spacer == 0 {
		return
	}
	for _, c := range []*cell{&r.cells[x-1], &r.cells[x]} {
		c.r, c.mark, c.attr = ' ', 0, c.attr&^(wide|spacer)
	}
}

// put writes ASCII from column x on; it must fit.
func (r *row) put(x int, text []byte, st style, cols int) {
	r.extend(x, cols)
	end := x + len(text)
	r.split(x)
	r.split(end)
	dst := r.cells[x:end]
	for i, c := range text {
		d := &dst[i]
		d.r, d.mark, d.style = rune(c), 0, st
	}
	r.used = max(r.used, end)
}

// set writes one character of one or two columns at x; it must fit.
func (r *row) set(x, width int, c cell, cols int) {
	r.extend(x, cols)
	r.split(x)
	r.split(x + width)
	r.cells[x] = c
	if width == 2 {
		r.cells[x].attr |= wide
		second := cell{r: ' ', style: c.style}
		second.attr |= spacer
		r.cells[x+1] = second
	}
	r.used = max(r.used, x+width)
}

// erase makes the cells from x up to end like fill. Whether the row goes on in
// the next one is forgotten with its last cell.
func (r *row) erase(x, end, cols int, fill cell) {
	if x >= end {
		return
	}
	r.split(x)
	r.split(end)
	if end == cols {
		r.wrapped = false
		if r.fill != fill {
			r.extend(x, cols)
		}
		r.used, r.fill = min(r.used, x), fill
		return
	}
	if x >= r.used && r.fill == fill {
		return
	}
	r.extend(x, cols)
	for i := x; i < end; i++ {
		r.cells[i] = fill
	}
	r.used = max(r.used, end)
}

// insert moves the cells from x on by n to the right, where they fall off.
func (r *row) insert(x, n, cols int, fill cell) {
	n = min(n, cols-x)
	r.split(x)
	r.wrapped = false
	r.extend(cols, cols)
	r.split(cols - n)
	copy(r.cells[x+n:], r.cells[x:cols-n])
	for i := x; i < x+n; i++ {
		r.cells[i] = fill
	}
}

// remove takes n cells at x out; what is right of them moves there.
func (r *row) remove(x, n, cols int, fill cell) {
	n = min(n, cols-x)
	r.split(x)
	r.split(x + n)
	r.wrapped = false
	r.extend(cols, cols)
	copy(r.cells[x:], r.cells[x+n:cols])
	r.used, r.fill = cols-n, fill
}

// resize gives the row cols columns instead of was.
func (r *row) resize(was, cols int) {
	r.wrapped = false
	if cols < was {
		r.split(cols)
		r.used = min(r.used, cols)
		if r.cells != nil {
			r.cells = append([]cell(nil), r.cells[:cols]...)
		}
		return
	}
	if r.fill != blank(0) {
		r.extend(was, was)
		r.fill = blank(0)
	}
	if r.cells != nil {
		r.cells = append(r.cells, make([]cell, cols-was)...)
	}
}

// length is the number of cells up to the last one that is not blank in the
// default style.
func (r *row) length(cols int) int {
	n := r.used
	if r.fill != blank(0) {
		return cols
	}
	for n > 0 && r.cells[n-1] == blank(0) {
		n--
	}
	return n
}

// same is how many cells from x on, before end, are single ASCII characters in
// one style.
func (r *row) same(x, end int) int {
	end = min(end, r.used)
	if x >= end {
		return 0
	}
	cells := r.cells[x:end]
	st := cells[0].style
	if st.attr&(wide|spacer) != 0 {
		return 0
	}
	for i := range cells {
		if c := &cells[i]; c.r >= 0x80 || c.mark != 0 || c.style != st {
			return i
		}
	}
	return len(cells)
}
