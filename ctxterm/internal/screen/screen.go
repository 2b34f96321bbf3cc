// Package screen is a terminal that nobody sees: it draws on a grid of cells
// what a program writes, so that whoever comes to look, or has fallen behind,
// gets the whole picture at once. It knows what xterm-256color promises, and
// answers the program's questions in place of a terminal.
//
// Sequences are taken apart by the state table of
// github.com/charmbracelet/x/ansi/parser; what they do is here. Any bytes may
// come: parameters, texts and tables are bounded by the constants of package
// libctx, no operation costs more than a look at every cell, and those that a
// few bytes can ask for again and again cost a row or a column.
//
// Not there, and ignored: left and right margins, rectangles, protected cells,
// 132 columns, double-width lines, pictures, the clipboard. Widths are those of
// wcwidth, character by character. A new size moves no text to other lines.
package screen

import (
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/termwire"
	"github.com/charmbracelet/x/ansi/parser"
)

// Options of a Screen.
type Options struct {
	// Scrollback is how many lines are kept that have left the main screen at
	// its top, at most libctx.MaxTermScrollback, and MaxTermScrollbackBytes of
	// them.
	Scrollback int
	// Reply gets the answers to the program's queries, in order, each once and
	// in one piece. It is called from Write and may not keep the slice. It can
	// be nil.
	Reply func([]byte)
}

// Screen is an emulated terminal. It is not safe for concurrent use.
type Screen struct {
	cols, rows int
	reply      func([]byte)

	main, alternate *grid // alternate is nil unless in use
	grid            *grid // the one of them that shows
	spare           *grid // for the next alternate screen, nil if there is none yet
	cur             cursor
	top, bottom     int // margins
	tabs            []bool
	modes           modes
	single          int // of G2 or G3 for the next character, else 0
	last            rune
	lastX, lastY    int // where last, the last character written, is; last is 0 after anything else
	title           string
	titles          []string // kept by the program, for later
	colors          colors
	titled          bool // the program has set a title
	coloured        bool // the program has set or set back a colour of the palette
	history         history

	marks, links table
	crowded      int // links to leave out before the next sweep
	widths       *widths

	state    parser.State
	params   params
	prefix   byte // '<', '=', '>' or '?' before the parameters
	inter    byte // the intermediate byte
	odd      bool // more of those than any sequence has
	text     []byte
	overlong bool // more text than is kept
	bell     bool // the string was ended by BEL
	utf8     decoder
}

// New makes an empty terminal. Its size must be valid.
func New(size termwire.Size, o Options) *Screen {
	s := &Screen{cols: size.Cols, rows: size.Rows, reply: o.Reply}
	s.history.lines = min(o.Scrollback, libctx.MaxTermScrollback)
	s.widths = new(widths)
	s.main = newGrid(s.rows)
	s.marks, s.links = newTable(markSweep), newTable(libctx.MaxTermLinks)
	s.reset()
	return s
}

// reset is RIS. Title and scrollback stay.
func (s *Screen) reset() {
	s.showMain()
	s.main.clear()
	s.cur, s.modes = home, defaultModes
	s.top, s.bottom = 0, s.rows-1
	s.resetTabs()
	s.single, s.last = 0, 0
	s.colors = colors{}
}

// softReset is DECSTR.
func (s *Screen) softReset() {
	s.top, s.bottom = 0, s.rows-1
	s.modes.insert, s.modes.autowrap, s.modes.hidden = false, true, false
	s.modes.appCursor, s.modes.appKeypad = false, false
	x, y, link := s.cur.x, s.cur.y, s.cur.pen.link
	s.cur, s.grid.saved = home, home
	s.cur.x, s.cur.y, s.cur.pen.link = x, y, link
	s.single = 0
}

// Size is that of the grid.
func (s *Screen) Size() termwire.Size { return termwire.Size{Cols: s.cols, Rows: s.rows} }

// Alternate says whether the alternate screen shows.
func (s *Screen) Alternate() bool { return s.grid != s.main }

// Title is what the program set, made inert, at most libctx.MaxTermTitle bytes.
func (s *Screen) Title() string { return s.title }

// Cursor is the column and the row of the cursor, from 0.
func (s *Screen) Cursor() (x, y int) { return s.cur.x, s.cur.y }

// Ground says whether what was written last is complete: no sequence and no
// character is unfinished. Only then do Redraw and Above make sense to a
// terminal that gets what follows.
func (s *Screen) Ground() bool { return s.state == parser.GroundState && s.utf8.need == 0 }

// Text is what the rows show, without the blanks at their ends.
func (s *Screen) Text() []string {
	text := make([]string, s.rows)
	for y, r := range s.grid.rows {
		var b strings.Builder
		for x := range s.cols {
			if c := r.at(x); c.attr&spacer == 0 {
				b.WriteRune(c.r)
				b.WriteString(s.marks.texts[c.mark])
			}
		}
		text[y] = strings.TrimRight(b.String(), " ")
	}
	return text
}
