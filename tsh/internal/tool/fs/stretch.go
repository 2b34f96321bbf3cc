package fs

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool"
	"cortexfs.org/tsh/internal/tool/object"
)

// stretch picks the characters from column on out of one line of a text that
// passes by in pieces, as many as fit in max bytes, and the LF behind them if
// they are the last. It counts all lines, and all characters of that one. What
// stretches that follow one another show is the line, byte for byte.
type stretch struct {
	line, column int // both from 1
	numbers      bool
	max          int

	out   []byte
	lines int  // LFs seen
	open  bool // the last line seen so far has no LF yet
	chars int  // characters of the line seen
	shown int  // of them in out
	full  bool // max was reached
}

// take sees the next piece of the text, which ends between characters.
func (s *stretch) take(p []byte) {
	for len(p) > 0 {
		piece, rest, ended := bytes.Cut(p, lf)
		if s.lines+1 == s.line {
			s.gather(piece)
			if ended && !s.full && s.shown > 0 {
				s.out = append(s.out, '\n')
			}
		}
		if ended {
			s.lines++
		}
		s.open = !ended
		p = rest
	}
}

// gather sees the next piece of the line.
func (s *stretch) gather(piece []byte) {
	n := utf8.RuneCount(piece)
	skip := min(max(s.column-1-s.chars, 0), n)
	s.chars += n
	for range skip {
		_, size := utf8.DecodeRune(piece)
		piece = piece[size:]
	}
	if s.full || len(piece) == 0 {
		return
	}
	if s.numbers && s.shown == 0 {
		s.out = append(strconv.AppendInt(pad(nil, s.line), int64(s.line), 10), '\t')
	}
	if room := s.max - len(s.out) - len(lf); len(piece) > room {
		piece, s.full = piece[:object.Boundary(piece[:room])], true
	}
	s.out = append(s.out, piece...)
	s.shown += utf8.RuneCount(piece)
}

// finish sees the end of the text.
func (s *stretch) finish() {}

// total is the number of lines of the text, once all of it has passed.
func (s *stretch) total() int {
	if s.open {
		return s.lines + 1
	}
	return s.lines
}

// check refuses a column that the line does not have.
func (s *stretch) check(p string) error {
	if s.shown > 0 {
		return nil
	}
	return errdefs.New(errdefs.Invalid, "%s: column %d is past the end of line %d, which has %d characters",
		object.Show(p), s.column, s.line, s.chars)
}

func (s *stretch) text() []byte { return s.out }

// note says what of the line is shown and how to go on.
func (s *stretch) note(out *tool.Output) {
	next := ""
	switch {
	case s.full:
		next = "; next: start=" + strconv.Itoa(s.line) + " column=" + strconv.Itoa(s.column+s.shown)
		out.Truncated()
	case s.line < s.total():
		next = "; next: start=" + strconv.Itoa(s.line+1)
	}
	out.Notef("line %d of %d, characters %d-%d of %d%s", s.line, s.total(), s.column, s.column+s.shown-1, s.chars, next)
}
