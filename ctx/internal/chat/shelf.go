package chat

import (
	"slices"

	"cortexfs.org/libctx"
)

// shelf keeps the latest results of tools for /show: at most libctx.MaxShelf
// of them and libctx.MaxShelfBytes bytes.
type shelf struct {
	items []shelved
	bytes int
}

type shelved struct {
	number     int // of the call
	name, text string
	short      bool // what is kept is not all
}

// put keeps a result.
func (s *shelf) put(r shelved) {
	s.items = append(s.items, r)
	s.bytes += len(r.text)
	for len(s.items) > 1 && (len(s.items) > libctx.MaxShelf || s.bytes > libctx.MaxShelfBytes) {
		s.bytes -= len(s.items[0].text)
		s.items = s.items[1:]
	}
}

// get is the result of call n, 0 for the last one that came.
func (s *shelf) get(n int) (shelved, bool) {
	for _, r := range slices.Backward(s.items) {
		if n == 0 || r.number == n {
			return r, true
		}
	}
	return shelved{}, false
}
