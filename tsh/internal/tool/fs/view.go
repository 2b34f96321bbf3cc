package fs

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"cortexfs.org/tsh/internal/tool"
)

// view picks the lines [first, end) out of a text that passes by in pieces, as
// many whole ones as fit in max bytes; of a first line that does not fit, the
// head. It counts all lines. A line is what ends in LF, or what follows the last
// LF; its bytes, a CR too, stay as they are.
type view struct {
	first, end int
	numbers    bool
	max        int

	out     []byte
	lines   int  // LFs seen
	open    bool // the last line seen so far has no LF yet
	begin   int  // where in out the line being copied begins
	copied  int  // whole lines in out
	full    bool // max was reached
	clipped bool // out is the head of line first
}

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
			v.copy(line, p[:n], ended)
		}
		if ended {
			v.lines++
		}
		v.open = !ended
		p = p[n:]
	}
}

var lf = []byte("\n")

func (v *view) count(p []byte) {
	v.lines += bytes.Count(p, lf)
	v.open = p[len(p)-1] != '\n'
}

// copy takes the next piece of a line into out.
func (v *view) copy(line int, piece []byte, ended bool) {
	if v.numbers && !v.open {
		v.out = append(strconv.AppendInt(pad(v.out, line), int64(line), 10), '\t')
	}
	room := v.max - len(v.out)
	if len(piece) <= room {
		v.out = append(v.out, piece...)
		if ended {
			v.begin = len(v.out)
			v.copied++
		}
		return
	}
	v.full = true
	if v.copied > 0 {
		v.out = v.out[:v.begin]
		return
	}
	v.clipped = true
	v.out = append(v.out, piece[:boundary(piece[:max(room, 0)])]...)
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

// note says what of the text is shown and how to go on.
func (v *view) note(out *tool.Output) {
	total := v.total()
	shown := v.copied
	if !v.full && len(v.out) > v.begin {
		shown++ // the last line has no LF
	}
	last := v.first + shown - 1
	switch {
	case total == 0:
		out.Notef("empty file")
		return
	case v.clipped && v.first < total:
		out.Notef("line %d of %d, cut after %d bytes; next: start=%d", v.first, total, len(v.out), v.first+1)
	case v.clipped:
		out.Notef("line %d of %d, cut after %d bytes", v.first, total, len(v.out))
	case last < total:
		out.Notef("lines %d-%d of %d; next: start=%d", v.first, last, total, last+1)
	case v.first > 1:
		out.Notef("lines %d-%d of %d", v.first, last, total)
	}
	if v.full {
		out.Truncated()
	}
}

// boundary is the length of the longest head of p that does not end inside a
// character. Bytes that can not become one count as whole.
func boundary(p []byte) int {
	for i := 1; i <= min(utf8.UTFMax-1, len(p)); i++ {
		if tail := p[len(p)-i:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return len(p)
			}
			return len(p) - i
		}
	}
	return len(p)
}

// notText is where p stops being text, or -1: at a NUL or at the first bytes
// that are not UTF-8.
func notText(p []byte) int {
	nul := bytes.IndexByte(p, 0)
	if nul < 0 && utf8.Valid(p) {
		return -1
	}
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRune(p[i:])
		if r == 0 || r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return nul
}
