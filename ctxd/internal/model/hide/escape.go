package hide

import "strconv"

// decoder reads one character of a text that is not empty: what it stands for,
// and its length; 0 if the text ends inside of it. What is no ASCII is some byte
// that is none.
type decoder func(s string) (c byte, n int)

// escapes are the readers of texts in which such a character begins an escape.
var escapes = map[byte]decoder{'%': inURL, '\\': inJSON}

const noASCII = 0xff

func inURL(s string) (byte, int) {
	if s[0] != '%' {
		return s[0], 1
	}
	return coded(s, 1, 2)
}

func inJSON(s string) (byte, int) {
	switch {
	case s[0] != '\\':
		return s[0], 1
	case len(s) == 1:
		return 0, 0
	case s[1] == 'u':
		return coded(s, 2, 4)
	case s[1] == '"' || s[1] == '\\' || s[1] == '/':
		return s[1], 2
	}
	return noASCII, 2
}

// coded is the character of so many hexadecimal digits after the first bytes of
// an escape. What is none stands for its first byte.
func coded(s string, first, digits int) (byte, int) {
	end := min(len(s), first+digits)
	if end > first {
		n, err := strconv.ParseUint(s[first:end], 16, 32)
		switch {
		case err != nil:
			return s[0], 1
		case end < first+digits:
			return 0, 0
		case n > 0x7f:
			return noASCII, first + digits
		}
		return byte(n), first + digits
	}
	return 0, 0
}
