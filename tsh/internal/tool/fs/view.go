package fs

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"cortexfs.org/tsh/internal/tool"
)

// view picks the lines [first, end) out of a text that passes by in pieces, as
// many as fit in max bytes; of a line of more than width characters it keeps the
// head and a mark. It counts all lines. A line is what ends in LF, or what
// follows the last LF; its bytes, a CR too, stay as they are.
type view struct {
	first, end int
	numbers    bool
	max, width int

	out     []byte
	lines   int    // LFs seen
	open    bool   // the last line seen so far has no LF yet
	line    []byte // head of the line that passes, if it is to be shown
	chars   int    // characters in line
	over    int    // bytes of it that are not in line
	copied  int    // lines in out
	clipped int    // lines in out that are only heads
	long    int    // number of the first of them
	full    bool   // max was reached
}

// take sees the next piece of the text, which ends between characters.
func (v *view) take(p []byte) {
	for len(p) > 0 {
		line := v.lines + 1
		if v.full || line >= v.end {
			v.count(p)
			return
		}
		if line < v.first && v.lines+bytes.Count(p, lf) < v.first-1 {
			v.count(p)
			return
		}
		n, ended := bytes.IndexByte(p, '\n')+1, true
		if n == 0 {
			n, ended = len(p), false
		}
		if line >= v.first {
			v.gather(bytes.TrimSuffix(p[:n], lf))
			if ended {
				v.emit(line, lf)
			}
		}
		if ended {
			v.lines++
		}
		v.open = !ended
		p = p[n:]
	}
}

// finish sees the end of the text.
func (v *view) finish() {
	if line := v.lines + 1; v.open && !v.full && line >= v.first && line < v.end {
		v.emit(line, nil)
	}
}

var lf = []byte("\n")

func (v *view) count(p []byte) {
	v.lines += bytes.Count(p, lf)
	v.open = p[len(p)-1] != '\n'
}

// gather takes the next piece of a line to show.
func (v *view) gather(piece []byte) {
	head := 0
	if v.chars+len(piece) <= v.width {
		v.chars += utf8.RuneCount(piece)
		head = len(piece)
	} else {
		for head < len(piece) && v.chars < v.width {
			_, n := utf8.DecodeRune(piece[head:])
			head += n
			v.chars++
		}
	}
	v.line = append(v.line, piece[:head]...)
	v.over += len(piece) - head
}

// emit shows the gathered line if it fits.
func (v *view) emit(number int, ending []byte) {
	kept := len(v.out)
	if v.numbers {
		v.out = append(strconv.AppendInt(pad(v.out, number), int64(number), 10), '\t')
	}
	v.out = append(v.out, v.line...)
	if v.over > 0 {
		v.out = append(strconv.AppendInt(append(v.out, "…["...), int64(v.over), 10), " bytes more]"...)
	}
	v.out = append(v.out, ending...)
	if len(v.out) > v.max {
		v.out, v.full = v.out[:kept], true
	} else {
		v.copied++
		if v.over > 0 {
			if v.clipped++; v.clipped == 1 {
				v.long = number
			}
		}
	}
	v.line, v.chars, v.over = v.line[:0], 0, 0
}

// pad aligns line numbers to six columns.
func pad(b []byte, n int) []byte {
	for w := 100_000; w > n; w /= 10 {
		b = append(b, ' ')
	}
	return b
}

// total is the number of lines of the text, once all of it has passed.
func (v *view) total() int {
	if v.open {
		return v.lines + 1
	}
	return v.lines
}

// check accepts every text that has the first line.
func (v *view) check(string) error { return nil }

func (v *view) text() []byte { return v.out }

// note says what of the text is shown and how to go on.
func (v *view) note(out *tool.Output) {
	total, last := v.total(), v.first+v.copied-1
	if v.clipped > 0 {
		out.Notef("%d of these lines are longer than %d characters: their heads are shown; line %d goes on with start=%d column=%d",
			v.clipped, v.width, v.long, v.long, v.width+1)
	}
	switch {
	case total == 0:
		out.Notef("empty file")
	case last < total:
		out.Notef("lines %d-%d of %d; next: start=%d", v.first, last, total, last+1)
	default:
		out.Notef("lines %d-%d of %d", v.first, last, total)
	}
	if v.full || v.clipped > 0 {
		out.Truncated()
	}
}
