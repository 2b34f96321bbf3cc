package screen

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/inert"
)

// osc carries out an operating system command. Those on the clipboard are not
// among them.
func (s *Screen) osc(text string) {
	number, rest, _ := strings.Cut(text, ";")
	n, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	switch {
	case n == 0 || n == 2:
		s.title, s.titled = inertTitle(rest), true
	case n == 4:
		s.palette(rest)
	case n >= 10 && n <= 12:
		s.dynamic(n-10, rest)
	case n == 104:
		s.resetPalette(rest)
	case n >= 110 && n <= 112:
		s.colors.dynamic[n-110], s.coloured = 0, true
	case n == 8:
		s.hyperlink(rest)
	}
}

// inertTitle is a title that can do nothing, cut to libctx.MaxTermTitle bytes.
func inertTitle(text string) string {
	text = inert.Line(text)
	if len(text) <= libctx.MaxTermTitle {
		return text
	}
	end := libctx.MaxTermTitle
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// hyperlink is OSC 8: parameters, of which only the id counts, and an address.
func (s *Screen) hyperlink(text string) {
	settings, address, _ := strings.Cut(text, ";")
	if address == "" || len(address) > libctx.MaxTermLink || !graphic(address) {
		s.cur.pen.link = 0
		return
	}
	id := ""
	for setting := range strings.SplitSeq(settings, ":") {
		if strings.HasPrefix(setting, "id=") && len(setting) <= 256 && graphic(setting) {
			id = setting
		}
	}
	s.link(id + ";" + address)
}

// graphic says whether a text is printable ASCII without blanks.
func graphic(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// dcs carries out a device control string, which begins with its letter.
func (s *Screen) dcs(text string) {
	switch {
	case text[0] != 'q':
	case s.inter == '$':
		s.setting(text[1:])
	case s.inter == '+':
		s.answer("\x1bP0+r\x1b\\")
	}
}
