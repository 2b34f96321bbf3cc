package screen

import (
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// widths holds how many columns characters take, in pages of 256 that are made
// when they are needed.
type widths [(utf8.MaxRune + 1) >> 8]*[256]int8

// of is the number of columns a character takes: 0, 1 or 2. It does not depend
// on what stands around it, as with wcwidth, which most programs go by.
func (w *widths) of(r rune) int {
	if r < 0x300 {
		return 1
	}
	page := w[r>>8]
	if page == nil {
		page = new([256]int8)
		for i := range page {
			page[i] = columns(r&^0xFF + rune(i))
		}
		w[r>>8] = page
	}
	return int(page[r&0xFF])
}

// columns is what the library says, but where wcwidth has it otherwise:
// letters of Hangul that follow others take no place of their own, and each
// half of a flag takes one.
func columns(r rune) int8 {
	switch {
	case r >= 0x1160 && r <= 0x11FF, r >= 0xD7B0 && r <= 0xD7FF:
		return 0
	case r >= 0x1F1E6 && r <= 0x1F1FF:
		return 1
	}
	return int8(displaywidth.Rune(r))
}
