package screen

// modes are what SM, DECSET and their like switch. The zero value of each is
// its default but for autowrap.
type modes struct {
	insert, newline               bool // IRM, LNM
	appCursor, appKeypad          bool // DECCKM, DECNKM
	reverse                       bool // DECSCNM
	autowrap                      bool // DECAWM
	blinking, hidden              bool // cursor
	focus, alternateScroll, paste bool
	sync                          bool // output is held back, for the program
	mouse                         int  // the mode that says what is reported, else 0
	coordinates                   int  // the mode that says how, else 0
	pointer                       int  // DECSCUSR
	otherKeys                     int  // modifyOtherKeys
}

var defaultModes = modes{autowrap: true}

// flag is a private mode that is just on or off.
func (m *modes) flag(n int) *bool {
	switch n {
	case 1:
		return &m.appCursor
	case 5:
		return &m.reverse
	case 7:
		return &m.autowrap
	case 12:
		return &m.blinking
	case 66:
		return &m.appKeypad
	case 1004:
		return &m.focus
	case 1007:
		return &m.alternateScroll
	case 2004:
		return &m.paste
	case 2026:
		return &m.sync
	}
	return nil
}

func mouseMode(n int) bool       { return n == 9 || n >= 1000 && n <= 1003 && n != 1001 }
func coordinatesMode(n int) bool { return n == 1005 || n == 1006 || n == 1015 || n == 1016 }

// setMode is SM and RM.
func (s *Screen) setMode(n int, on bool) {
	switch n {
	case 4:
		s.modes.insert = on
	case 20:
		s.modes.newline = on
	}
}

// setPrivate is DECSET and DECRST.
func (s *Screen) setPrivate(n int, on bool) {
	m := &s.modes
	switch {
	case m.flag(n) != nil:
		*m.flag(n) = on
		if n == 7 && !on {
			s.cur.wrap = false
		}
	case n == 6:
		s.cur.origin = on
		s.moveTo(0, 0)
	case n == 25:
		m.hidden = !on
	case mouseMode(n):
		m.mouse = number(n, on)
	case coordinatesMode(n):
		m.coordinates = number(n, on)
	case n == 1048 && on:
		s.save()
	case n == 1048:
		s.restore()
	case n == 47 || n == 1047 || n == 1049:
		s.switchScreen(on, n == 1049)
	}
}

func number(n int, on bool) int {
	if on {
		return n
	}
	return 0
}

// switchScreen goes to the alternate screen, which is empty then, or back.
// Mode 1049 saves the cursor first, and restores it afterwards.
func (s *Screen) switchScreen(alternate, cursor bool) {
	switch {
	case !alternate:
		s.showMain()
		if cursor {
			s.restore()
		}
	case !s.Alternate():
		if cursor {
			s.save()
		}
		if s.alternate = s.spare; s.alternate == nil {
			s.alternate = newGrid(s.rows)
		} else {
			s.alternate.clear()
		}
		s.grid, s.spare = s.alternate, nil
	}
}

func (s *Screen) showMain() {
	if s.alternate != nil {
		s.spare = s.alternate
	}
	s.grid, s.alternate = s.main, nil
}

// privateState is what DECRQM says of a private mode: 1 set, 2 reset, 0
// unknown.
func (s *Screen) privateState(n int) int {
	m := &s.modes
	switch {
	case m.flag(n) != nil:
		return state(*m.flag(n))
	case n == 6:
		return state(s.cur.origin)
	case n == 25:
		return state(!m.hidden)
	case mouseMode(n):
		return state(m.mouse == n)
	case coordinatesMode(n):
		return state(m.coordinates == n)
	case n == 47 || n == 1047 || n == 1049:
		return state(s.Alternate())
	}
	return 0
}

func state(on bool) int {
	if on {
		return 1
	}
	return 2
}

// keyboard is the state of kitty's keyboard protocol on one screen.
type keyboard struct {
	flags int
	stack []int // earlier flags, the oldest first
}

const (
	maxKeyboards = 16
	allKeyFlags  = 31
)

func (k *keyboard) push(flags int) {
	if len(k.stack) == maxKeyboards {
		k.stack = append(k.stack[:0], k.stack[1:]...)
	}
	k.stack = append(k.stack, k.flags)
	k.flags = flags & allKeyFlags
}

func (k *keyboard) pop(n int) {
	if n > len(k.stack) {
		*k = keyboard{}
		return
	}
	if n > 0 {
		k.flags = k.stack[len(k.stack)-n]
		k.stack = k.stack[:len(k.stack)-n]
	}
}

func (k *keyboard) set(flags, how int) {
	flags &= allKeyFlags
	switch how {
	case 1:
		k.flags = flags
	case 2:
		k.flags |= flags
	case 3:
		k.flags &^= flags
	}
}
