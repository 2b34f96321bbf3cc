package filter

import (
	"slices"
	"strconv"
	"strings"
)

// What is done with an OSC, by its number.
const (
	passes    = iota
	never     // it is answered, whatever it says, or chooses the client's font
	clipboard // it sets the clipboard, or asks for it
	asksBody  // it is answered if a part of it says so
	asksKey   // it is answered if its first word says so
)

func class(number int) int {
	switch {
	case number == 52:
		return clipboard
	case number == 50, number == 60, number == 61, number == 5113, number == 5522, number > maxNumber:
		return never
	case number == 4, number == 5, number >= 10 && number <= 19,
		number == 21, number == 22, number == 39, number == 49, number == 99, number == 176,
		number >= 701 && number <= 720, number == 7770, number == 7771:
		return asksBody
	case number == 1337:
		return asksKey
	}
	return passes
}

// numbered decides about an OSC whose number has ended.
func (f *Filter) numbered(dst []byte) []byte {
	switch class(f.number) {
	case asksBody:
		f.state = body
	case asksKey:
		f.state = key
	case clipboard:
		if !f.Clipboard {
			return f.remove(dst)
		}
		f.state = clip
	case never:
		return f.remove(dst)
	default:
		return f.through(dst)
	}
	return dst
}

// word decides about OSC 1337 by its first word.
func (f *Filter) word(dst []byte) []byte {
	if forbidden(f.content()) {
		return f.remove(dst)
	}
	return f.through(dst)
}

// forbidden reports whether an OSC 1337 is answered, or copies what follows.
func forbidden(content []byte) bool {
	_, word, _ := strings.Cut(string(content), ";")
	word = strings.ToLower(word)
	if strings.HasPrefix(word, "requestattention") {
		return false
	}
	for _, prefix := range []string{
		"report", "request", "capabilities", "copy", "endcopy",
		"setprofile", "stealfocus", "setbackgroundimagefile", "openurl", "custom", "block", "button", // act on the client
	} {
		if strings.HasPrefix(word, prefix) {
			return true
		}
	}
	return false
}

// colours lets the OSC in held pass without the parts of it that ask. Numbers
// that set one thing only are taken out if any part asks.
func (f *Filter) colours(dst []byte, end string) []byte {
	content := string(f.content())
	parts := strings.Split(content, ";")[1:]
	if !slices.ContainsFunc(parts, isQuestion) {
		return f.emit(dst, end)
	}
	intro := string(f.held[:f.intro])
	var kept []string // whole sequences
	say := func(number int, parts []string) {
		if len(parts) > 0 {
			kept = append(kept, intro+strconv.Itoa(number)+";"+strings.Join(parts, ";"))
		}
	}
	switch {
	case f.number == 4 || f.number == 5: // pairs of index and colour
		var set []string
		for pair := range slices.Chunk(parts, 2) {
			if !slices.ContainsFunc(pair, isQuestion) {
				set = append(set, pair...)
			}
		}
		say(f.number, set)
	case f.number == 21: // keys with values
		say(f.number, slices.DeleteFunc(parts, isQuestion))
	case f.number >= 10 && f.number <= 19: // colours of this number and the next ones
		from := 0
		for i, part := range parts {
			if isQuestion(part) {
				say(f.number+from, parts[from:i])
				from = i + 1
			}
		}
		say(f.number+from, parts[min(from, len(parts)):])
	}
	if len(kept) == 0 || len(kept) > 1 && f.inside { // ST would end screen's string
		return f.discard(dst)
	}
	f.held = append(f.held[:0], strings.Join(kept, st)...)
	return f.emit(dst, end)
}

// isQuestion reports whether a part of an OSC asks: "?", "?font", "foreground=?",
// and in notifications "p=?" and "p=alive".
func isQuestion(part string) bool {
	part = strings.TrimLeft(part, " ")
	return strings.HasPrefix(part, "?") || strings.Contains(part, "=?") || strings.Contains(part, "p=alive")
}
