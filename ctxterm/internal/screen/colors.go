package screen

import (
	"math/bits"
	"strconv"
	"strings"
)

// colors are those a program has set, as direct colours, 0 where it has not:
// the palette, and those of text, background and cursor.
type colors struct {
	palette [256]color
	dynamic [3]color
}

// defaultDynamic are the answers where nothing was set: nobody may be looking,
// and different terminals may be, so they are the same always.
var defaultDynamic = [3]color{direct + 0xE5E5E5, direct, direct + 0xE5E5E5}

// defaultColor is entry n of xterm's palette.
func defaultColor(n int) color {
	switch {
	case n < 16:
		return direct + [...]color{
			0x000000, 0xCD0000, 0x00CD00, 0xCDCD00, 0x0000EE, 0xCD00CD, 0x00CDCD, 0xE5E5E5,
			0x7F7F7F, 0xFF0000, 0x00FF00, 0xFFFF00, 0x5C5CFF, 0xFF00FF, 0x00FFFF, 0xFFFFFF,
		}[n]
	case n < 232:
		level := [...]color{0, 95, 135, 175, 215, 255}
		n -= 16
		return direct + level[n/36]<<16 + level[n/6%6]<<8 + level[n%6]
	}
	return direct + color(8+10*(n-232))*0x010101
}

// palette is OSC 4: pairs of an entry and its colour, or a question mark.
func (s *Screen) palette(text string) {
	for text != "" {
		var entry, spec string
		entry, text, _ = strings.Cut(text, ";")
		spec, text, _ = strings.Cut(text, ";")
		n, err := strconv.Atoi(entry)
		if err != nil || n < 0 || n > 255 {
			continue
		}
		if spec == "?" {
			c := s.colors.palette[n]
			if c == 0 {
				c = defaultColor(n)
			}
			s.answerColor("4;"+strconv.Itoa(n), c)
		} else if c, ok := parseColor(spec); ok {
			s.colors.palette[n], s.coloured = c, true
		}
	}
}

// resetPalette is OSC 104: the entries named, or all.
func (s *Screen) resetPalette(text string) {
	s.coloured = true
	if text == "" {
		s.colors.palette = [256]color{}
		return
	}
	for entry := range strings.SplitSeq(text, ";") {
		if n, err := strconv.Atoi(entry); err == nil && n >= 0 && n < 256 {
			s.colors.palette[n] = 0
		}
	}
}

// dynamic is OSC 10 to 12: the colours of text, background and cursor, as many
// as follow each other.
func (s *Screen) dynamic(n int, text string) {
	for spec := range strings.SplitSeq(text, ";") {
		if n >= len(s.colors.dynamic) {
			return
		}
		if spec == "?" {
			c := s.colors.dynamic[n]
			if c == 0 {
				c = defaultDynamic[n]
			}
			s.answerColor(strconv.Itoa(10+n), c)
		} else if c, ok := parseColor(spec); ok {
			s.colors.dynamic[n], s.coloured = c, true
		}
		n++
	}
}

// parseColor reads rgb:R/G/B and #RGB, each part of one to four digits.
func parseColor(spec string) (color, bool) {
	var parts []string
	if rest, ok := strings.CutPrefix(spec, "rgb:"); ok {
		parts = strings.Split(rest, "/")
	} else if rest, ok := strings.CutPrefix(spec, "#"); ok && len(rest)%3 == 0 {
		n := len(rest) / 3
		parts = []string{rest[:n], rest[n : 2*n], rest[2*n:]}
	}
	if len(parts) != 3 {
		return 0, false
	}
	c := direct
	for i, part := range parts {
		v, err := strconv.ParseUint(part, 16, 16)
		if err != nil || len(part) > 4 {
			return 0, false
		}
		if spec[0] == '#' {
			v = v << 16 >> (4 * len(part)) >> 8 // the leading digits
		} else {
			v = v * 0xFF / (1<<(4*len(part)) - 1)
		}
		c |= color(v) << (16 - 8*i)
	}
	return c, true
}

// spec is a direct colour as rgb:RRRR/GGGG/BBBB.
func (c color) spec() string {
	b := []byte("rgb:")
	for i, shift := range []int{16, 8, 0} {
		if i > 0 {
			b = append(b, '/')
		}
		for range 2 {
			b = appendHex(b, byte(c>>shift))
		}
	}
	return string(b)
}

func appendHex(b []byte, v byte) []byte {
	const digits = "0123456789abcdef"
	return append(b, digits[bits.RotateLeft8(v, 4)&0xF], digits[v&0xF])
}
