// Package filter takes out of a program's output what the terminals of clients
// may not see: questions, which every one of them would answer though the
// emulator inside answers them once, texts for the clipboard, and what acts on a
// person's machine more than on the picture. Everything else passes byte for
// byte, however it is cut. It is pure.
//
// Taken out are
//
//   - questions: ENQ, DECID, and of the control sequences DSR, DA1, DA2, DA3,
//     XTVERSION, DECRQM, DECREQTPARM, DECRQPSR, DECRQTSR, DECRQUPSS, DECRQDE,
//     DECRQCRA, DECRQLP, XTSMGRAPHICS, XTQMODKEYS, XTQFMTKEYS, XTREPORTCOLORS,
//     XTREPORTSGR, XTTITLEPOS, the window reports and the question for the
//     keyboard flags of kitty; DECRQSS, XTGETTCAP and the remote control of
//     kitty; questions for colours, fonts, pointers and allowed features (OSC
//     4, 5, 10 to 19, 21, 22, 39, 49, 50, 60, 61, 99, 176, 701 to 720, 7770,
//     7771); reports and uploads of iTerm2; files of kitty;
//   - the clipboard: OSC 52 and 5522, Copy of iTerm2; Clipboard lets the setting
//     OSC 52 pass;
//   - what acts: the printer (MC), the window and the stack of its titles
//     (XTWINOPS), a locked keyboard, keys in the form of Windows (mode 9001), keys
//     that type what they are told (DECUDK), capabilities, fonts, letters and
//     macros of the program's own, profiles and files of iTerm2, files that kitty
//     would read;
//   - passthrough strings of tmux that hold any of these, as a whole.
//
// Where only a part of a sequence asks, that part goes: OSC 4, 5, 10 to 19 and
// 21 are written again with the colours they set; CSI ? h without mode 2048,
// which reports at once, and the other two modes. Graphics of kitty pass if they do not ask, and are told
// to stay quiet (q=2), since each would be answered. Of a control sequence that
// is taken out the control characters inside it stay, as they act by themselves.
//
// Terminals differ in how they read broken sequences, so the rules are those of
// the more careful reading: C0 controls, DEL and letters beyond ASCII do not end
// a control sequence; what introduces a sequence does so everywhere, also as a
// C1 control, alone or in UTF-8, but not inside another character, unless ESC %
// @ has turned UTF-8 off. What is still open when a C1 control begins another
// sequence is left out, since some terminals do not know C1 and would read on.
// If something is taken out that had cut an open sequence short, CAN does so in
// its place.
package filter

import (
	"encoding/binary"
	"math/bits"
)

// Filter is the filter of one program's output; the zero value is ready and
// lets no clipboard pass. Not for concurrent use.
type Filter struct {
	// Clipboard lets OSC 52 set the clipboards of clients; it can not read them.
	Clipboard bool

	state  state
	held   []byte // bytes of the sequence that is not decided, at most libctx.MaxTermHeld
	intro  int    // how many of them introduce it
	number int    // of an OSC; -1 while there is no digit
	osc    bool   // the string is an OSC: BEL ends it
	cut    state  // state ESC came in, while state is escaped
	odd    bool   // a control sequence holds letters beyond ASCII
	open   bool   // what went out last is cut short by the sequence in held
	inside bool   // GNU screen is reading a string that it will pass on
	nested bool   // it already was when the DCS in held began
	depth  int    // passthrough strings around this one

	scratch []byte // for content and parameters

	latin bool // UTF-8 is off
	lead  bool // 0xC2 is kept back: with the next byte it may be a C1 control
	more  int  // bytes the present character still needs
	lo    byte // bounds of its next byte
	hi    byte
	last  byte // its first byte
}

// Append appends to dst what clients may see of the next bytes of the program's
// output. An unfinished sequence is kept back only as long as it is undecided;
// one that still is after libctx.MaxTermHeld bytes is taken out.
func (f *Filter) Append(dst, program []byte) []byte {
	for len(program) > 0 {
		n := 0
		if f.more == 0 && !f.lead {
			switch f.state {
			case ground:
				n = f.plain(program)
				dst = append(dst, program[:n]...)
			case pass:
				n = inert(program)
				dst = append(dst, program[:n]...)
			case skip:
				n = inert(program)
			}
		}
		if program = program[n:]; len(program) > 0 {
			dst = f.step(dst, program[0])
			program = program[1:]
		}
	}
	return dst
}

// Ground reports whether what went out ends between two characters and outside
// of every sequence, with nothing kept back: something else may be put there.
func (f *Filter) Ground() bool { return f.state == ground && f.more == 0 && !f.lead }

// plain is how many bytes at the beginning of p surely pass: text, and whole
// control sequences that do not ask.
func (f *Filter) plain(p []byte) int {
	i := 0
	for {
		i += text(p[i:])
		if i >= len(p) {
			return i
		}
		n := 0
		switch b := p[i]; {
		case b == esc:
			n = control(p[i:])
		case b >= 0xC3 && !f.latin:
			n = character(p[i:])
		}
		if n == 0 {
			return i
		}
		i += n
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// zeros has the high bit of every byte of x that is 0, and of some above it.
func zeros(x uint64) uint64 { return (x - ones) &^ x & highs }

// text is how many bytes at the beginning of p are ASCII other than ESC and ENQ.
func text(p []byte) int {
	i := 0
	for ; i+8 <= len(p); i += 8 {
		x := binary.LittleEndian.Uint64(p[i:])
		if stop := x&highs | zeros(x^ones*esc) | zeros(x^ones*enq); stop != 0 {
			return i + bits.TrailingZeros64(stop)/8
		}
	}
	for ; i < len(p); i++ {
		if b := p[i]; b >= 0x80 || b == esc || b == enq {
			break
		}
	}
	return i
}

// inert is how many bytes at the beginning of p are ASCII that does not end a
// string.
func inert(p []byte) int {
	for i, b := range p {
		if b < 0x20 || b >= 0x80 {
			return i
		}
	}
	return len(p)
}

// control is the length of the control sequence that p begins with, 0 if it is
// unfinished, unusual or one that asks.
func control(p []byte) int {
	if len(p) < 3 || p[1] != '[' {
		return 0
	}
	for i, b := range p[2:] {
		switch {
		case b < 0x20 || b >= 0x7F:
			return 0
		case b >= 0x40:
			if barred(p[2:2+i], b) || unwanted(p[2:2+i], b) {
				return 0
			}
			return 3 + i
		}
	}
	return 0
}

// character is the length of the characters beyond ASCII that p begins with; the
// last one may be missing. It looks at two and three bytes only: longer ones go
// the slow way.
func character(p []byte) int {
	i := 0
	for {
		switch rest := p[i:]; {
		case len(rest) >= 3 && rest[0]&0xF0 == 0xE0 && rest[1]&0xC0 == 0x80 && rest[2]&0xC0 == 0x80 &&
			(rest[0] != 0xE0 || rest[1] >= 0xA0) && (rest[0] != 0xED || rest[1] < 0xA0):
			i += 3
		case len(rest) >= 2 && rest[0] >= 0xC3 && rest[0] < 0xE0 && rest[1]&0xC0 == 0x80:
			i += 2
		default:
			return i
		}
	}
}
