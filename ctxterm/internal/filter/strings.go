package filter

import (
	"bytes"

	"cortexfs.org/libctx"
)

// maxHeld is how much of one sequence is held.
const maxHeld = libctx.MaxTermHeld

// maxDepth is how many passthrough strings in one another are looked into.
const maxDepth = 3

// introducers are the states that begin after ESC and a letter.
var introducers = [128]state{'P': dcs, 'X': pass, ']': selector, '^': pass, '_': apc}

// introduce begins a sequence whose introducer, ESC and letter or a C1 control,
// is held.
func (f *Filter) introduce(dst []byte, s state, letter byte) []byte {
	f.state, f.intro, f.odd = s, len(f.held), false
	f.number, f.osc = -1, letter == ']'
	if s == dcs {
		f.nested, f.inside = f.inside, true
	}
	if s == pass {
		return f.through(dst)
	}
	return dst
}

// through lets the string in held and its rest pass.
func (f *Filter) through(dst []byte) []byte {
	dst = f.emit(dst, "")
	f.state, f.open = pass, false
	return dst
}

// remove takes out the string in held, and its rest.
func (f *Filter) remove(dst []byte) []byte {
	if f.dcs() {
		f.inside = f.nested
	}
	dst = f.discard(dst)
	f.state = skip
	return dst
}

func (f *Filter) dcs() bool { return f.state >= dcs && f.state <= tmux }

// str takes a character of a string that is held.
func (f *Filter) str(dst []byte, u unit) []byte {
	if u.b == bel && f.osc {
		return f.terminate(dst, f.state, "\a")
	}
	dst = f.keep(dst, u)
	visible := u.kind == ascii && u.b >= 0x20 && u.b != del
	switch f.state {
	case selector:
		switch {
		case visible && u.b >= '0' && u.b <= '9':
			f.number = min(max(f.number, 0)*10+int(u.b-'0'), maxNumber+1)
		case f.number < 0 && (u.b == ' ' || u.b == '+'), u.kind == ascii && !visible, u.kind == c1:
			// Some who read numbers go over these, for others they end here.
			if class(f.number) != passes {
				return f.remove(dst)
			}
		default:
			return f.numbered(dst)
		}
	case key:
		if visible && (u.b == '=' || u.b == ':') {
			return f.word(dst)
		}
	case clip:
		if data := f.content(); visible && u.b != ';' && bytes.Count(data, []byte(";")) > 1 {
			if u.b == '?' {
				return f.remove(dst)
			}
			return f.through(dst)
		}
	case dcs, tmuxWord:
		if visible {
			return f.device(dst)
		}
	case apc:
		switch {
		case u.kind == ascii && u.b == 'G':
			f.state = graphics
		case visible || u.kind == high || u.kind == part:
			return f.through(dst)
		}
	case graphics:
		if visible && u.b == ';' {
			return f.keyed(dst)
		}
	}
	return dst
}

// finish decides about a string that is held to its end, which is "" if another
// sequence cuts it short.
func (f *Filter) finish(dst []byte, end string) []byte {
	switch f.state {
	case selector:
		if c := class(f.number); c == never || c == clipboard {
			return f.discard(dst)
		}
	case body:
		return f.colours(dst, end)
	case key:
		if forbidden(f.content()) {
			return f.discard(dst)
		}
	case graphics:
		if dst = f.keyed(dst); f.state == skip {
			return dst
		}
	case tmux:
		if !f.harmless() {
			return f.discard(dst)
		}
	}
	return f.emit(dst, end)
}

// content is what of the string in held its reader sees, without what stands
// before it.
func (f *Filter) content() []byte {
	f.scratch = printable(f.scratch[:0], f.held[f.intro:])
	return f.scratch
}

// printable appends the printable ASCII of b to dst, and the bytes in also.
func printable(dst, b []byte, also ...byte) []byte {
	for _, c := range b {
		if c >= 0x20 && c < del || bytes.IndexByte(also, c) >= 0 {
			dst = append(dst, c)
		}
	}
	return dst
}

// parameters is what of the control sequence in held counts; with letters,
// letters beyond ASCII are what an 8-bit terminal reads them as.
func (f *Filter) parameters(letters bool) []byte {
	f.scratch = f.scratch[:0]
	before := byte(0)
	for _, b := range f.held[f.intro:] {
		switch {
		case b >= 0x20 && b < del:
			f.scratch = append(f.scratch, b)
		case !letters || b < 0x80:
		case f.latin && b >= 0xA0, before == 0xC2 && b >= 0xA0 && b < 0xC0:
			f.scratch = append(f.scratch, b&0x7F)
		case before == 0xC3 && b < 0xC0:
			f.scratch = append(f.scratch, b&0x7F|0x40)
		}
		before = b
	}
	return f.scratch
}

// device takes a character of the head of a DCS.
func (f *Filter) device(dst []byte) []byte {
	head := f.content()
	final := head[len(head)-1]
	if f.state == dcs && final < 0x40 {
		return dst
	}
	const word = "tmux;"
	switch {
	case string(head) == word:
		f.state = tmux
		return dst
	case len(head) < len(word) && string(head) == word[:len(head)]:
		f.state = tmuxWord
		return dst
	case f.state == dcs && (final == '@' || final == 'q' && bytes.ContainsAny(head, "$+")):
		return f.remove(dst)
	case f.state == dcs && (final == '|' && !bytes.ContainsAny(head, " !\"#$%&'>") || final == 'p' && bytes.ContainsAny(head, "+") || final == '{' || final == 'z' || final == 's' && bytes.ContainsAny(head, "=")):
		return f.remove(dst) // keys that type what they are told (DECUDK), capabilities, letters, macros
	}
	return f.through(dst)
}

// harmless reports whether nothing would be taken out of the passthrough string
// in held: neither of what tmux passes on, nor of what others see, who know no
// such string. It has to be a whole number of sequences, since its rest could be
// in the next one.
func (f *Filter) harmless() bool {
	if f.depth == maxDepth {
		return false
	}
	_, inner, _ := bytes.Cut(f.held, []byte(";"))
	passed := make([]byte, 0, len(inner))
	for i := 0; i < len(inner); i++ {
		if inner[i] == esc && i+1 < len(inner) {
			i++
		}
		passed = append(passed, inner[i])
	}
	for _, text := range [][]byte{passed, inner} {
		g := Filter{Clipboard: f.Clipboard, depth: f.depth + 1, latin: f.latin}
		if out := g.Append(nil, text); !g.Ground() || !bytes.Equal(out, text) {
			return false
		}
	}
	return true
}

// keyed decides about kitty's graphics by their keys, which end with a semicolon
// or are all there is. Those that pass are told to stay quiet.
func (f *Filter) keyed(dst []byte) []byte {
	text := f.content()[1:] // after G
	keys, semicolon := bytes.CutSuffix(text, []byte(";"))
	quiet, asked := 0, false // asked, or reads a file where the client is
	rest := []byte("G")
	for pair := range bytes.SplitSeq(keys, []byte(",")) {
		switch {
		case bytes.HasPrefix(pair, []byte("a=q")):
			asked = true
		case bytes.HasPrefix(pair, []byte("t=")) && string(pair) != "t=d":
			asked = true
		case string(pair) == "q=2":
			quiet++
		case bytes.HasPrefix(pair, []byte("q=")):
			quiet += 2
		case len(pair) > 0:
			rest = append(append(rest, pair...), ',')
		}
	}
	if asked {
		return f.remove(dst)
	}
	if quiet != 1 {
		f.held = append(append(f.held[:f.intro], rest...), "q=2"...)
		if semicolon {
			f.held = append(f.held, ';')
		}
	}
	if semicolon {
		return f.through(dst)
	}
	return dst
}
