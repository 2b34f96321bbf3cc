package attach

import (
	"bytes"
	"strconv"
	"strings"
)

// stroke is one key, or one report, as a terminal sends it.
type stroke struct {
	raw []byte
	// char is the character the key stands for in the oldest way of sending keys,
	// whichever way it came; -1 for a key that has none, and for reports.
	char int
	// silent: no key was pressed: one was let go, or only a modifier was.
	silent bool
}

// maxStroke bounds a sequence that is waited for.
const maxStroke = 32

// next takes the first stroke off b. It reports false if b holds only the
// beginning of one that has to be waited for: of a sequence with numbers in it,
// which no human types.
func next(b []byte) (s stroke, ok bool) {
	switch {
	case len(b) >= 2 && b[0] == 0x1b && b[1] == '[':
		return sequence(b)
	case len(b) >= 3 && b[0] == 0x1b && b[1] == 'O': // function keys
		return stroke{raw: b[:3], char: -1}, true
	case len(b) >= 2 && b[0] == 0x1b && b[1] != 0x1b: // with Alt
		return stroke{raw: b[:2], char: -1}, true
	}
	return stroke{raw: b[:1], char: int(b[0])}, true
}

// sequence is next for what begins with ESC [.
func sequence(b []byte) (stroke, bool) {
	if len(b) >= 3 && b[2] == 'M' { // a mouse in the oldest way: three bytes of anything follow
		return stroke{raw: b[:min(len(b), 6)], char: -1}, true
	}
	for i := 2; i < len(b) && i < maxStroke; i++ {
		switch c := b[i]; {
		case c >= 0x40 && c <= 0x7e:
			return key(b[:i+1]), true
		case c < 0x20 || c > 0x3f: // not a sequence after all
			return stroke{raw: b[:i], char: -1}, true
		}
	}
	if len(b) > 2 && len(b) < maxStroke {
		return stroke{}, false
	}
	return stroke{raw: b[:min(len(b), maxStroke)], char: -1}, true
}

// Bits of the modifiers in a sequence, after 1 was taken off.
const (
	shift = 1
	ctrl  = 4
	locks = 64 | 128 // caps and num: they change no key that counts here
)

// key reads a whole sequence: ESC [ CODE ; MODIFIERS u of the newer keyboard
// protocol, ESC [ 27 ; MODIFIERS ; CODE ~ of xterm's modifyOtherKeys.
func key(raw []byte) stroke {
	s := stroke{raw: raw, char: -1}
	fields := strings.Split(string(raw[2:len(raw)-1]), ";")
	code, mods := "", ""
	switch {
	case raw[len(raw)-1] == 'u':
		code, mods = fields[0], "1"
		if len(fields) > 1 {
			mods = fields[1]
		}
	case raw[len(raw)-1] == '~' && len(fields) == 3 && fields[0] == "27":
		code, mods = fields[2], fields[1]
	default:
		return s
	}
	codes, held := numbers(code), numbers(mods)
	if len(codes) == 0 || codes[0] < 0 {
		return s
	}
	if len(held) > 1 && held[1] == 3 || codes[0] >= 57441 && codes[0] <= 57454 || codes[0] == 57358 || codes[0] == 57360 {
		s.silent = true
		return s
	}
	bits := 0
	if len(held) > 0 && held[0] > 0 {
		bits = (held[0] - 1) &^ locks
	}
	char := codes[0]
	if bits&shift != 0 && len(codes) > 1 && codes[1] > 0 {
		char = codes[1]
	}
	switch bits &^ shift {
	case 0:
		if bits&shift != 0 && char == '/' {
			char = '?' // where the terminal names the key and not the character
		}
		s.char = char
	case ctrl:
		s.char = control(char)
	}
	return s
}

// numbers are the parts of one field of a sequence, -1 for one that is missing.
func numbers(field string) []int {
	var all []int
	for part := range strings.SplitSeq(field, ":") {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = -1
		}
		all = append(all, n)
	}
	return all
}

// control is the control character that Ctrl makes of a key, -1 if none. The
// digits are where keyboards have what they stand for.
func control(char int) int {
	switch {
	case char >= 'a' && char <= 'z', char >= '@' && char <= '_':
		return char & 0x1f
	case char == ' ', char == '2':
		return 0
	case char >= '3' && char <= '7':
		return char - '3' + 0x1b
	case char == '/', char == '-':
		return 0x1f
	}
	return -1
}

// command is what a person wants of the client.
type command int

const (
	nothing command = iota
	leaving
	explain
	unknown // the key that begins commands was followed by one that is none
)

// scanner finds the client's own commands among what is typed.
type scanner struct {
	key     Key
	watch   bool   // nothing is for the program; q and Ctrl+C leave
	prefix  bool   // the key was pressed, its command comes next
	pending []byte // the beginning of a stroke
}

// scan looks at what was typed. It appends what is for the program to dst, and
// stops behind the first command: rest is what was typed after it.
func (s *scanner) scan(dst, typed []byte) (out []byte, c command, rest []byte) {
	b := typed
	if len(s.pending) > 0 {
		b = append(s.pending, typed...)
		s.pending = nil
	}
	for len(b) > 0 {
		if !s.watch && !s.prefix { // the plain way, quickly: no key of ours, no sequence
			n := bytes.IndexFunc(b, func(r rune) bool { return r == 0x1b || Key(r) == s.key })
			if n < 0 {
				n = len(b)
			}
			dst, b = append(dst, b[:n]...), b[n:]
			if len(b) == 0 {
				break
			}
		}
		stroke, ok := next(b)
		if !ok {
			s.pending = append([]byte(nil), b...)
			break
		}
		b = b[len(stroke.raw):]
		pass, c := s.stroke(stroke)
		if pass {
			dst = append(dst, stroke.raw...)
		}
		if c != nothing {
			return dst, c, b
		}
	}
	return dst, nothing, nil
}

// stroke decides about one: whether it is for the program, and what it asks for.
func (s *scanner) stroke(k stroke) (pass bool, c command) {
	ours := s.key != NoKey && k.char == int(s.key)
	switch {
	case k.silent: // a key let go that the program has seen pressed
		return !s.watch && !s.prefix, nothing
	case !s.prefix && ours:
		s.prefix = true
		return false, nothing
	case !s.prefix && s.watch && (k.char == 'q' || k.char == 3):
		return false, leaving
	case !s.prefix:
		return !s.watch, nothing
	}
	s.prefix = false
	switch {
	case ours:
		return !s.watch, nothing
	case k.char == 'd':
		return false, leaving
	case k.char == '?':
		return false, explain
	}
	return false, unknown
}
