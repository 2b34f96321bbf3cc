package screen

import (
	"unicode/utf8"

	"cortexfs.org/libctx"
	"github.com/charmbracelet/x/ansi/parser"
)

// transitions is the library's table, for a terminal that reads UTF-8: there a byte from
// 0x80 on is part of a character and no control.
var transitions = func() parser.TransitionTable {
	t := parser.GenerateTransitionTable()
	for state := parser.GroundState; state < parser.Utf8State; state++ {
		action := parser.IgnoreAction
		if state == parser.OscStringState || state == parser.DcsStringState {
			action = parser.PutAction
		}
		t.AddRange(0x80, 0xFF, state, action, state)
	}
	t.AddOne(0x1B, parser.DcsEntryState, parser.ClearAction, parser.EscapeState)
	t.AddRange(0x08, 0x0D, parser.DcsEntryState, parser.IgnoreAction, parser.DcsEntryState)
	return t
}()

// params are the parameters of a sequence, each at most maxParam, -1 where
// none was given. Further ones are dropped.
type params struct {
	v     [32]int
	colon uint32 // bit i: a colon stands before parameter i
	n     int
}

const maxParam = 65535

// get is parameter i, or def if it was not given.
func (p *params) get(i, def int) int {
	if i >= p.n || p.v[i] < 0 {
		return def
	}
	return p.v[i]
}

// count is parameter i of a sequence that does something so many times.
func (p *params) count(i int) int { return max(p.get(i, 1), 1) }

func (p *params) sub(i int) bool { return i < p.n && p.colon&(1<<i) != 0 }

func (p *params) add(c byte) {
	if p.n == 0 {
		p.n, p.v[0] = 1, -1
	}
	if c == ';' || c == ':' {
		if p.n < len(p.v) {
			p.v[p.n] = -1
			if c == ':' {
				p.colon |= 1 << p.n
			}
		}
		p.n++
		return
	}
	if p.n <= len(p.v) {
		v := &p.v[p.n-1]
		*v = min(max(*v, 0)*10+int(c-'0'), maxParam)
	}
}

// Write draws what a program has written: any bytes, cut anywhere.
func (s *Screen) Write(b []byte) {
	for len(b) > 0 {
		if s.state != parser.GroundState {
			b = b[s.sequence(b):]
			continue
		}
		c := b[0]
		switch {
		case s.utf8.need > 0:
			if !s.continued(c) {
				s.print(utf8.RuneError)
				continue
			}
		case c >= 0x20 && c < 0x7F:
			n := 1
			for n < len(b) && b[n]-0x20 < 0x5F {
				n++
			}
			s.ascii(b[:n])
			b = b[n:]
			continue
		case c == 0x1B:
			s.clear()
			s.state = parser.EscapeState
		case c < 0x20:
			s.control(c)
		case c >= 0x80:
			if r, n := utf8.DecodeRune(b); n > 1 {
				s.character(r)
				b = b[n:]
				continue
			}
			if !s.utf8.begin(c) {
				s.print(utf8.RuneError)
			}
		}
		b = b[1:]
	}
}

// decoder is a character of which not all bytes have come.
type decoder struct {
	r         rune
	need      int
	low, high byte // what the next byte may be
}

// begin starts a character; false: none starts with c.
func (d *decoder) begin(c byte) bool {
	d.low, d.high = 0x80, 0xBF
	switch {
	case c >= 0xC2 && c <= 0xDF:
		d.r, d.need = rune(c&0x1F), 1
	case c >= 0xE0 && c <= 0xEF:
		d.r, d.need = rune(c&0x0F), 2
		if c == 0xE0 {
			d.low = 0xA0
		} else if c == 0xED {
			d.high = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		d.r, d.need = rune(c&0x07), 3
		if c == 0xF0 {
			d.low = 0x90
		} else if c == 0xF4 {
			d.high = 0x8F
		}
	default:
		return false
	}
	return true
}

// continued takes the next byte of a character; false: c is not part of it,
// and the character is over.
func (s *Screen) continued(c byte) bool {
	d := &s.utf8
	if c < d.low || c > d.high {
		d.need = 0
		return false
	}
	d.low, d.high = 0x80, 0xBF
	d.r = d.r<<6 | rune(c&0x3F)
	if d.need--; d.need == 0 {
		s.character(d.r)
	}
	return true
}

// character takes a character that is not ASCII. The controls among them are
// those of ESC and the letter below.
func (s *Screen) character(r rune) {
	if r >= 0xA0 {
		s.print(r)
		return
	}
	s.clear()
	s.state = parser.EscapeState
	s.sequence([]byte{byte(r) - 0x40})
}

// sequence reads the rest of a sequence, as far as it is there, and returns how
// many bytes it took, at least one.
func (s *Screen) sequence(b []byte) int {
	for i, c := range b {
		state, action := transitions.Transition(s.state, c)
		was := s.state
		s.state = state
		switch action {
		case parser.ClearAction:
			s.clear()
		case parser.PrefixAction:
			s.prefix = c
		case parser.CollectAction:
			s.odd = s.odd || s.inter != 0
			s.inter = c
		case parser.ParamAction:
			s.params.add(c)
		case parser.ExecuteAction:
			if c < 0x20 {
				s.control(c)
			}
		case parser.StartAction:
			s.text, s.overlong = s.text[:0], false
			if state == parser.DcsStringState {
				s.text = append(s.text, c) // the letter that says which
			}
		case parser.PutAction:
			s.put(was, c)
		case parser.DispatchAction:
			s.dispatch(was, c)
		}
		if state == parser.EscapeState && was != parser.EscapeState {
			s.clear()
		}
		if state == parser.GroundState {
			return i + 1
		}
	}
	return len(b)
}

// put keeps a byte of a string that may mean something.
func (s *Screen) put(state parser.State, c byte) {
	if state != parser.OscStringState && state != parser.DcsStringState {
		return
	}
	if len(s.text) == libctx.MaxTermString {
		s.overlong = true
		return
	}
	s.text = append(s.text, c)
}

func (s *Screen) dispatch(state parser.State, c byte) {
	if c == 'b' && (state == parser.CsiEntryState || state == parser.CsiParamState) && s.prefix == 0 && s.inter == 0 {
		s.repeat(s.params.count(0))
		return
	}
	s.last = 0
	switch state {
	case parser.EscapeState, parser.EscapeIntermediateState:
		if !s.odd {
			s.escape(c)
		}
	case parser.CsiEntryState, parser.CsiParamState, parser.CsiIntermediateState:
		s.params.n = min(s.params.n, len(s.params.v))
		if !s.odd {
			s.csi(c)
		}
	case parser.OscStringState:
		if s.bell = c == 7; !s.overlong {
			s.osc(string(s.text))
		}
	case parser.DcsStringState:
		if !s.overlong && !s.odd {
			s.dcs(string(s.text))
		}
	}
}

// clear forgets what was collected of a sequence.
func (s *Screen) clear() {
	s.params.n, s.params.colon = 0, 0
	s.prefix, s.inter, s.odd = 0, 0, false
}

// control carries out a C0 control.
func (s *Screen) control(c byte) {
	s.last = 0
	switch c {
	case '\b':
		s.toColumn(s.cur.x - 1)
	case '\t':
		s.tab(1)
	case '\n', '\v', '\f':
		s.index()
		if s.modes.newline {
			s.cur.x = 0
		}
	case '\r':
		s.cur.x, s.cur.wrap = 0, false
	case 0x0E:
		s.cur.shift = 1
	case 0x0F:
		s.cur.shift = 0
	}
}
