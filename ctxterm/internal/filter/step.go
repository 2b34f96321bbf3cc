package filter

import "bytes"

// Control characters that mean something here.
const (
	enq   = 0x05
	bel   = 0x07
	can   = 0x18
	sub   = 0x1A
	esc   = 0x1B
	del   = 0x7F
	dcsC1 = 0x90
	sosC1 = 0x98
	decid = 0x9A
	csiC1 = 0x9B
	stC1  = 0x9C
	oscC1 = 0x9D
	pmC1  = 0x9E
	apcC1 = 0x9F

	st = "\x1b\\"
)

// state is where in a sequence the bytes so far end.
type state uint8

const (
	ground  state = iota
	pass          // in a string that is let through
	skip          // in a string that is taken out
	swallow       // in a control sequence that is taken out
	escaped       // after ESC in the state cut: ST, or a new sequence

	// From here on what was read is held.

	escape   // after ESC and intermediates
	csi      // in a control sequence
	selector // in the number of an OSC
	body     // in an OSC that is decided at its end
	key      // in the first word of OSC 1337
	clip     // before the data of OSC 52
	dcs      // before the final byte of a DCS
	tmuxWord // in the word that begins a passthrough string of tmux
	tmux     // in such a string
	apc      // before the first letter of an APC
	graphics // in the keys of kitty's graphics
)

// kind is what a step has read.
type kind uint8

const (
	ascii kind = iota
	c1         // a control between 0x80 and 0x9F
	high       // the last byte of a letter beyond ASCII, or a byte that is none
	part       // an earlier byte of such a letter
)

// unit is one character, or a byte of one.
type unit struct {
	kind kind
	b    byte // the byte; of ASCII and of C1 controls the character
	wide bool // 0xC2 stood before it
	gl   byte // what an 8-bit terminal reads it as, where that could be another character
}

func (u unit) append(dst []byte) []byte {
	if u.wide {
		dst = append(dst, 0xC2)
	}
	return append(dst, u.b)
}

// step takes the next byte of the output: it puts bytes together to characters.
func (f *Filter) step(dst []byte, b byte) []byte {
	if f.lead {
		f.lead = false
		switch {
		case b >= 0x80 && b < 0xA0:
			return f.take(dst, unit{kind: c1, b: b, wide: true})
		case b >= 0xA0 && b < 0xC0:
			return f.take(dst, unit{kind: high, b: b, wide: true, gl: b & 0x7F})
		}
		dst = f.take(dst, unit{kind: high, b: 0xC2})
	}
	if f.more > 0 && b >= f.lo && b <= f.hi {
		u := unit{kind: part, b: b}
		if f.more--; f.more == 0 {
			u.kind = high
			if f.last == 0xC3 {
				u.gl = b&0x7F | 0x40
			}
		}
		f.lo, f.hi = 0x80, 0xBF
		return f.take(dst, u)
	}
	f.more = 0
	switch {
	case b < 0x80:
		return f.take(dst, unit{kind: ascii, b: b})
	case b < 0xA0:
		return f.take(dst, unit{kind: c1, b: b})
	case f.latin:
		return f.take(dst, unit{kind: high, b: b, gl: b & 0x7F})
	case b == 0xC2:
		f.lead = true
		return dst
	case b > 0xC2 && b < 0xF5:
		f.begin(b)
		return f.take(dst, unit{kind: part, b: b})
	}
	return f.take(dst, unit{kind: high, b: b})
}

// begin sets what may follow the first byte of a character.
func (f *Filter) begin(b byte) {
	f.last, f.lo, f.hi = b, 0x80, 0xBF
	switch {
	case b < 0xE0:
		f.more = 1
	case b < 0xF0:
		f.more = 2
	default:
		f.more = 3
	}
	switch b {
	case 0xE0:
		f.lo = 0xA0
	case 0xED:
		f.hi = 0x9F
	case 0xF0:
		f.lo = 0x90
	case 0xF4:
		f.hi = 0x8F
	}
}

// take takes the next character of the output.
func (f *Filter) take(dst []byte, u unit) []byte {
	if u.kind == ascii && u.b == enq || u.kind == c1 && u.b == decid {
		return dst
	}
	if f.state == escaped {
		switch {
		case u.kind == ascii && u.b == '\\':
			return f.terminate(dst, f.cut, st)
		case f.cut == tmux:
			f.state = tmux
			f.held = append(f.held, esc)
			return f.keep(dst, u)
		}
		dst = f.cutShort(dst, f.cut)
		f.start(escape, esc)
	}
	switch {
	case u.kind == ascii && u.b == esc:
		if f.state == ground {
			f.start(escape, esc)
		} else {
			f.cut, f.state = f.state, escaped
		}
		return dst
	case f.state == tmux:
		return f.keep(dst, u)
	case u.kind == ascii && (u.b == can || u.b == sub) && f.state != ground:
		return f.terminate(dst, f.state, string(rune(u.b)))
	case u.kind == c1:
		return f.control(dst, u)
	}
	switch f.state {
	case ground:
		return u.append(dst)
	case pass, skip:
		if u.b == bel && f.osc {
			return f.terminate(dst, f.state, "\a")
		}
		if f.state == pass {
			dst = u.append(dst)
		}
		return dst
	case swallow:
		return f.swallowed(dst, u)
	case escape:
		return f.escape(dst, u)
	case csi:
		return f.sequence(dst, u)
	}
	return f.str(dst, u)
}

// start begins to hold a sequence.
func (f *Filter) start(s state, intro ...byte) {
	f.state, f.held, f.odd = s, append(f.held[:0], intro...), false
}

// control takes a C1 control.
func (f *Filter) control(dst []byte, u unit) []byte {
	var next state
	switch u.b {
	case csiC1:
		next = csi
	case dcsC1, sosC1, oscC1, pmC1, apcC1:
		next = introducers[u.b&0x7F|0x40]
	case stC1:
		if f.state == pass || f.state == skip || f.state > csi {
			return f.terminate(dst, f.state, string(u.append(nil)))
		}
		fallthrough
	default:
		switch {
		case f.state == ground || f.state == pass:
			return u.append(dst)
		case f.state == skip || f.state == swallow:
			return dst
		case f.state > csi:
			return f.str(dst, u)
		}
		return f.keep(dst, u)
	}
	switch {
	case f.state >= escape:
		dst = f.discard(dst)
	case f.state == pass:
		f.open = true
	}
	f.held = u.append(f.held[:0])
	return f.introduce(dst, next, u.b&0x7F|0x40)
}

// keep holds another character; a sequence that is too long is taken out.
func (f *Filter) keep(dst []byte, u unit) []byte {
	if f.held = u.append(f.held); len(f.held) <= maxHeld {
		return dst
	}
	switch f.state {
	case escape:
		f.state = ground
		return f.discard(dst)
	case csi:
		f.state = swallow
		return f.discard(dst)
	}
	return f.remove(dst)
}

// emit lets what is held through, with what ends it; with "" it is cut short.
func (f *Filter) emit(dst []byte, end string) []byte {
	dst = append(append(dst, f.held...), end...)
	f.held, f.open = f.held[:0], end == ""
	return dst
}

// discard takes out what is held. Control characters that act by themselves
// stay, and what it had cut short is cut short by CAN.
func (f *Filter) discard(dst []byte) []byte {
	from := f.held
	if f.state > csi && f.state != escaped {
		from = f.held[:f.intro]
	}
	dst = controls(dst, from)
	if f.held = f.held[:0]; f.open {
		dst, f.open = append(dst, can), false
	}
	return dst
}

// controls appends the C0 controls of a sequence other than ESC.
func controls(dst, held []byte) []byte {
	for _, b := range held {
		if b < 0x20 && b != esc {
			dst = append(dst, b)
		}
	}
	return dst
}

// terminate ends a sequence in the state s by ST, BEL, CAN or SUB.
func (f *Filter) terminate(dst []byte, s state, end string) []byte {
	f.state = s
	stops := end != "\a" && end[0] != can && end[0] != sub // it is ST
	screen := f.inside && stops
	switch {
	case s == pass:
		dst, f.open = append(dst, end...), false
	case s == skip && f.inside && stops:
		dst = append(dst, st...)
	case s == skip:
	case s == swallow:
		dst = append(dst, end...)
	case screen && !(f.dcs() && !f.nested):
		// Screen would pass on an open sequence, and then its rest.
		dst = append(f.discard(dst), st...)
	case s == escape || s == csi:
		dst = f.emit(dst, end)
	default:
		if stops {
			end = st // all terminals know this one
		}
		dst = f.finish(dst, end)
	}
	f.inside = f.inside && !stops
	f.state = ground
	return dst
}

// cutShort ends a sequence in the state s that another one interrupts.
func (f *Filter) cutShort(dst []byte, s state) []byte {
	f.state = s
	switch s {
	case pass:
		f.open = true
	case skip, swallow:
	case escape, csi:
		dst = f.emit(dst, "")
	default:
		dst = f.finish(dst, "")
	}
	return dst
}

// escape takes a character after ESC.
func (f *Filter) escape(dst []byte, u unit) []byte {
	switch {
	case u.gl == 'Z':
		f.state = ground
		return f.discard(dst)
	case u.gl == '[':
		f.state = swallow
		return f.discard(dst)
	case introducers[u.gl] != 0:
		f.introduce(dst, introducers[u.gl], u.gl)
		return f.remove(dst)
	case u.kind != ascii || u.b < '0' || u.b == del:
		return f.keep(dst, u)
	}
	inter := byte(0)
	for _, b := range f.held {
		if b >= 0x20 && b < '0' {
			inter = b
		}
	}
	if inter == 0 && u.b == '[' {
		f.held = append(f.held, u.b)
		return f.introduce(dst, csi, u.b)
	}
	if s := introducers[u.b]; inter == 0 && s != 0 {
		f.held = append(f.held, u.b)
		return f.introduce(dst, s, u.b)
	}
	f.state = ground
	switch {
	case inter == 0 && u.b == 'Z':
		return f.discard(dst)
	case inter == 0 && u.b == 'c': // RIS
		f.latin = false
	case inter == 0 && u.b == '\\':
		f.inside = false
	case bytes.IndexByte(f.held, '%') >= 0:
		f.latin = u.b == '@'
	}
	return f.emit(dst, string(rune(u.b)))
}

// sequence takes a character of a control sequence.
func (f *Filter) sequence(dst []byte, u unit) []byte {
	switch {
	case u.kind == ascii && (u.b < 0x40 || u.b == del):
		return f.keep(dst, u)
	case u.kind == ascii:
		return f.decide(dst, u.b)
	}
	f.odd = true
	if u.gl >= 0x40 && u.gl < del && asks(f.parameters(true), u.gl) {
		f.state = ground
		return f.discard(dst)
	}
	return f.keep(dst, u)
}

// decide decides about the control sequence in held, which final ends.
func (f *Filter) decide(dst []byte, final byte) []byte {
	f.state = csi
	params := f.parameters(false)
	switch {
	case barred(params, final):
		dst = f.discard(dst)
	case unwanted(params, final):
		modes := quietly(nil, params)
		if len(modes) == 0 {
			dst = f.discard(dst)
			break
		}
		dst = controls(dst, f.held)
		f.held = printable(f.held[:0], f.held[:f.intro], esc)
		f.held = append(f.held, modes...)
		dst = f.emit(dst, string(rune(final)))
	case f.odd && (asks(f.parameters(true), final) || unwanted(f.parameters(true), final)):
		dst = f.discard(dst)
	default:
		dst = f.emit(dst, string(rune(final)))
	}
	f.state = ground
	return dst
}

// swallowed takes a character of a control sequence that is taken out.
func (f *Filter) swallowed(dst []byte, u unit) []byte {
	switch {
	case u.kind != ascii || u.b == del:
	case u.b < 0x20:
		dst = append(dst, u.b)
	case u.b >= 0x40:
		f.state = ground
	}
	return dst
}
