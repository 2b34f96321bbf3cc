package screen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// Look is all that a person sees of a terminal without scrolling back, and what it
// does with keys and the mouse.
type Look struct {
	Lines       []string // with the sequences of their styles, without plain blanks at their ends, to the last that is not empty
	Row, Column int      // of the cursor
	Alternate   bool     // the alternate screen is shown
	Modes       string   // the private modes that are on, by their numbers
}

// watched are the modes that make a difference to a person.
var watched = []int{1, 5, 6, 7, 9, 25, 45, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2031, 2048}

// Of these only the last one counts: what is told of the mouse, and how.
var (
	mouse     = []int{9, 1000, 1002, 1003}
	encodings = []int{1005, 1006, 1015, 1016}
)

// modes keeps what the emulator says of its modes.
type modes struct {
	on        map[int]bool
	alternate bool
}

func (m *modes) follow(em *vt.Emulator) {
	m.on = map[int]bool{7: true, 25: true}
	em.SetCallbacks(vt.Callbacks{
		EnableMode: func(mode ansi.Mode) { m.set(mode, true) }, DisableMode: func(mode ansi.Mode) { m.set(mode, false) },
		AltScreen: func(on bool) { m.alternate = on },
	})
}

func (m *modes) set(mode ansi.Mode, on bool) {
	private, ok := mode.(ansi.DECMode)
	if !ok {
		return
	}
	n := private.Mode()
	if !on && slices.Contains(encodings, n) && !m.on[n] {
		return
	}
	for _, group := range [][]int{mouse, encodings} {
		if slices.Contains(group, n) {
			for _, other := range group {
				m.on[other] = false
			}
		}
	}
	m.on[n] = on
}

// Look is what is to be seen now.
func (s *Screen) Look() Look {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look()
}

func (s *Screen) look() Look {
	at := s.em.CursorPosition()
	l := Look{Row: at.Y, Column: at.X, Alternate: s.modes.alternate}
	last := 0
	for y := range s.em.Height() {
		var b strings.Builder
		end, style := 0, ""
		for x := range s.em.Width() {
			c := s.em.CellAt(x, y)
			if c == nil || c.Width == 0 {
				continue // behind a wide character
			}
			text, look := c.Content, strings.TrimPrefix(c.Style.String(), "\x1b[m")
			if text == "" {
				text = " "
			}
			if look != style {
				b.WriteString("\x1b[m" + look)
				style = look
			}
			if b.WriteString(text); text != " " || look != "" {
				end = b.Len()
			}
		}
		if l.Lines = append(l.Lines, b.String()[:end]); end > 0 {
			last = len(l.Lines)
		}
	}
	l.Lines = l.Lines[:last]
	var on []int
	for _, mode := range watched {
		if s.modes.on[mode] {
			on = append(on, mode)
		}
	}
	l.Modes = strings.Trim(fmt.Sprint(on), "[]")
	return l
}

// Difference is the first thing in which two looks differ, "" if they are equal.
func (l Look) Difference(other Look) string {
	for y := range max(len(l.Lines), len(other.Lines)) {
		if a, b := line(l.Lines, y), line(other.Lines, y); a != b {
			return fmt.Sprintf("line %d: %q, %q", y, a, b)
		}
	}
	l.Lines, other.Lines = nil, nil
	if a, b := fmt.Sprintf("%+v", l), fmt.Sprintf("%+v", other); a != b {
		return a + ", " + b
	}
	return ""
}

func line(all []string, y int) string {
	if y < len(all) {
		return all[y]
	}
	return ""
}

// Shows waits until the screen looks so.
func (s *Screen) Shows(want Look) {
	s.t.Helper()
	difference := ""
	s.awaitOr(func() string { return "the wanted picture: " + difference }, func() bool {
		difference = s.look().Difference(want)
		return difference == ""
	})
}

// Looks waits until the screen looks as wanted; what says it in words.
func (s *Screen) Looks(what string, wanted func(Look) bool) {
	s.t.Helper()
	var last Look
	s.awaitOr(func() string { return fmt.Sprintf("%s: %+v", what, last) }, func() bool {
		last = s.look()
		return wanted(last)
	})
}

// Like waits until the screen looks as another one does.
func (s *Screen) Like(other *Screen) {
	s.t.Helper()
	other.mu.Lock()
	other.likes = append(other.likes, s)
	other.mu.Unlock()
	difference := ""
	s.awaitOr(func() string { return "the same as on another screen: " + difference }, func() bool {
		for {
			heard := s.heard
			s.mu.Unlock() // two that wait for each other must not hold both locks
			want := other.Look()
			s.mu.Lock()
			if s.heard == heard {
				difference = s.look().Difference(want)
				return difference == ""
			}
		}
	})
}

// hear makes who waits for a likeness of s look again.
func (s *Screen) hear() {
	s.mu.Lock()
	likes := s.likes
	s.mu.Unlock()
	for _, l := range likes {
		l.mu.Lock()
		l.heard++
		l.changed.Broadcast()
		l.mu.Unlock()
	}
}
