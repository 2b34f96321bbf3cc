package screen

import (
	"fmt"
	"strconv"

	"cortexfs.org/libctx"
)

// answer gives the program what it asked for.
func (s *Screen) answer(format string, args ...any) {
	if s.reply != nil {
		s.reply(fmt.Appendf(nil, format, args...))
	}
}

// attributes is DA1: a VT220 with colours. Nothing else is claimed, least of
// all what some programs would then use.
func (s *Screen) attributes() { s.answer("\x1b[?62;22c") }

func (s *Screen) version() { s.answer("\x1bP>|ctxterm(%s)\x1b\\", libctx.Version) }

// shownRow is the cursor's row as the program counts it.
func (s *Screen) shownRow() int {
	if s.cur.origin {
		return s.cur.y - s.top + 1
	}
	return s.cur.y + 1
}

// status is DSR.
func (s *Screen) status(what int) {
	switch what {
	case 5:
		s.answer("\x1b[0n")
	case 6:
		s.answer("\x1b[%d;%dR", s.shownRow(), s.cur.x+1)
	}
}

// Pixels of a cell, which programs ask for to size pictures by.
const cellWidth, cellHeight = 8, 16

// maxTitles is how many titles a program can put by.
const maxTitles = 10

// window carries out those window operations that are harmless: sizes, and
// putting the title by. A title is never told: it can be any text.
func (s *Screen) window() {
	switch s.params.get(0, 0) {
	case 14:
		s.answer("\x1b[4;%d;%dt", s.rows*cellHeight, s.cols*cellWidth)
	case 16:
		s.answer("\x1b[6;%d;%dt", cellHeight, cellWidth)
	case 18:
		s.answer("\x1b[8;%d;%dt", s.rows, s.cols)
	case 22:
		if s.params.get(1, 0) != 1 && len(s.titles) < maxTitles {
			s.titles = append(s.titles, s.title)
		}
	case 23:
		if n := len(s.titles) - 1; n >= 0 && s.params.get(1, 0) != 1 {
			s.title, s.titles = s.titles[n], s.titles[:n]
		}
	}
}

// answerColor ends its answer as the question was ended.
func (s *Screen) answerColor(what string, c color) {
	end := "\x1b\\"
	if s.bell {
		end = "\a"
	}
	s.answer("\x1b]%s;%s%s", what, c.spec(), end)
}

// setting is DECRQSS: what a control sequence, named by its end, is set to.
func (s *Screen) setting(of string) {
	var b []byte
	switch of {
	case "m":
		b = appendStyle(nil, s.cur.pen)
	case "r":
		b = fmt.Appendf(nil, "%d;%d", s.top+1, s.bottom+1)
	case " q":
		b = strconv.AppendInt(nil, int64(s.modes.pointer), 10)
	case `"p`:
		b = []byte("62;1")
	default:
		s.answer("\x1bP0$r\x1b\\")
		return
	}
	s.answer("\x1bP1$r%s%s\x1b\\", b, of)
}
