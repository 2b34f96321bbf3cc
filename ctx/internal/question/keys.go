package question

import "strings"

// Key is what a key means to a question.
type Key int

const (
	None   Key = iota // nothing
	Yes               // y
	No                // n, Enter, Ctrl+D
	View              // v
	Cancel            // Ctrl+C
	// While all is shown:
	Down // Space, Enter, j
	Up   // b, k
	Back // q
)

// keys tells keys that were pressed from what only holds their bytes: pastes, and
// sequences of the terminal.
type keys struct {
	in       int
	sequence string // its parameters, or the end of a paste so far
}

// Where a byte stands.
const (
	ground = iota
	escaped
	control // behind ESC [
	single  // behind ESC O
	pasted
)

// take is the keys of what came in one piece.
func (k *keys) take(chunk []byte) (pressed []byte) {
	for _, c := range chunk {
		switch k.in {
		case ground:
			if c == 0x1b {
				k.in = escaped
			} else {
				pressed = append(pressed, c)
			}
		case escaped:
			k.in, k.sequence = ground, ""
			switch c {
			case '[':
				k.in = control
			case 'O':
				k.in = single
			}
		case single:
			k.in = ground
		case control:
			switch {
			case c < 0x40 && len(k.sequence) < 32:
				k.sequence += string(rune(c))
			case c == '~' && k.sequence == "200":
				k.in, k.sequence = pasted, ""
			default:
				k.in = ground
			}
		case pasted:
			const end = "\x1b[201~"
			k.sequence += string(rune(c))
			k.sequence = k.sequence[max(0, len(k.sequence)-len(end)):]
			if strings.HasSuffix(k.sequence, end) {
				k.in = ground
			}
		}
	}
	if k.in == escaped { // the key Escape
		k.in = ground
	}
	return pressed
}

// asked is what a byte means where the question stands: nothing is a yes but y, and
// that only if no other key came with it, as in a text.
func asked(c byte, alone bool) Key {
	switch c {
	case 'y', 'Y':
		if alone {
			return Yes
		}
	case 'n', 'N', '\r', '\n', 0x04:
		return No
	case 'v', 'V':
		return View
	case 0x03:
		return Cancel
	}
	return None
}

// viewed is what it means while all is shown.
func viewed(c byte) Key {
	switch c {
	case ' ', '\r', '\n', 'j', 'f':
		return Down
	case 'k', 'b':
		return Up
	case 'q', 'v', 'V':
		return Back
	case 0x03:
		return Cancel
	}
	return None
}
