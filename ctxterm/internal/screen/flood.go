package screen

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Flood is Write for much at once. Of text in lines it draws what is on the
// screen and above it in the end, and leaves out what would have scrolled away,
// to be found nowhere: the result is that of Write.
func (s *Screen) Flood(b []byte) {
	// Each line is a row at least; before they scroll they fill the screen.
	keep := 2 * s.rows
	if !s.Alternate() {
		keep += s.history.lines
	}
	if s.flows() {
		if start := lastLines(b[:plain(b)], keep); start > 0 {
			s.Write(append(pens(b[:start]), '\r'))
			b = b[start:]
		}
	}
	s.Write(b)
}

// flows says whether lines scroll through the whole screen, each a new row.
func (s *Screen) flows() bool {
	return s.Ground() && s.top == 0 && s.bottom == s.rows-1 && !s.modes.insert && s.single == 0
}

// lastLines is where the last n lines that end in CRLF, and what follows them,
// begin: behind another CRLF, else 0.
func lastLines(b []byte, n int) int {
	end := len(b)
	for ; n >= 0; n-- {
		i := bytes.LastIndexByte(b[:end], '\n')
		if i < 1 || b[i-1] != '\r' {
			return 0
		}
		end = i
	}
	return end + 1
}

// plain is how many bytes at the beginning of b are only text in lines and
// sequences that style it.
func plain(b []byte) int {
	for i := 0; ; {
		if i == len(b) {
			return i
		}
		switch c := b[i]; {
		case c >= '\a' && c <= '\n' || c == '\r': // BEL, BS, TAB, LF, CR
			i++
		case c == 0xC2 && i+1 < len(b) && b[i+1] >= 0xA0: // no C1 control
			i += 2
		case c == 0x1B && pen(b[i:]) > 0:
			i += pen(b[i:])
		default:
			n := prose(b[i:])
			if n == 0 {
				return i
			}
			i += n
		}
	}
}

// pens are the styling sequences in plain bytes, but those that others undo.
func pens(b []byte) (style []byte) {
	for {
		i := bytes.IndexByte(b, 0x1B)
		if i < 0 {
			return style
		}
		b = b[i:]
		n := pen(b)
		if n == len("\x1b[m") || n == len("\x1b[0m") && b[2] == '0' {
			style = style[:0]
		}
		style = append(style, b[:n]...)
		b = b[n:]
	}
}

// pen is the length of the SGR sequence that b begins with, else 0.
func pen(b []byte) int {
	if len(b) < 2 || b[1] != '[' {
		return 0
	}
	for i, c := range b[2:] {
		switch {
		case c == 'm':
			return i + 3
		case c < '0' || c > ';':
			return 0
		}
	}
	return 0
}

// prose is how many bytes at the beginning of b neither are controls nor begin
// one.
func prose(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		del, c2 := x^ones*0x7F, x^ones*0xC2
		stop := (x-ones*0x20)&^x | (del-ones)&^del | (c2-ones)&^c2
		if stop &= highs; stop != 0 {
			return i + bits.TrailingZeros64(stop)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 || c == 0x7F || c == 0xC2 {
			break
		}
	}
	return i
}
