package chat

import "cortexfs.org/libctx"

// shelf keeps the latest results of tools for /show: at most libctx.MaxShelf
// of them and libctx.MaxShelfBytes bytes. They are numbered from 1 on.
type shelf struct {
	items []shelved
	last  int // number of the last one
	bytes int
}

type shelved struct {
	name, text string
	short      bool // what is kept is not all
}

// put keeps a result and returns its number.
func (s *shelf) put(name, text string, short bool) int {
	s.items = append(s.items, shelved{name, text, short})
	s.bytes += len(text)
	s.last++
	for len(s.items) > 1 && (len(s.items) > libctx.MaxShelf || s.bytes > libctx.MaxShelfBytes) {
		s.bytes -= len(s.items[0].text)
		s.items = s.items[1:]
	}
	return s.last
}

// get is result n, 0 for the last one.
func (s *shelf) get(n int) (shelved, bool) {
	if n == 0 {
		n = s.last
	}
	i := n - 1 - (s.last - len(s.items))
	if i < 0 || i >= len(s.items) {
		return shelved{}, false
	}
	return s.items[i], true
}
