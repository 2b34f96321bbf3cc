package mux

import (
	"testing"

	"cortexfs.org/libctx/termwire"
)

// TestMarksAreBounded: what means nothing any more makes room, and what still
// means something stays.
func TestMarksAreBounded(t *testing.T) {
	m := &Mux{}
	stays := &Client{wish: 1}
	m.mark(mark{client: stays, wish: 1})
	for i := range 20 * maxMarks {
		gone := &Client{wish: 2, gone: i%2 == 0}
		m.mark(mark{client: gone, wish: 1})                           // wants another one by now, or is gone
		m.mark(mark{size: termwire.Size{Cols: 80 + i%100, Rows: 24}}) // followed by another size at once
	}
	if n := len(m.pending.marks); n > maxMarks+2 {
		t.Errorf("%d marks", n)
	}
	if first := m.pending.marks[0]; first.client != stays {
		t.Errorf("the first is %+v", first)
	}
	if last := m.pending.marks[len(m.pending.marks)-1]; last.size.Cols != 80+(20*maxMarks-1)%100 {
		t.Errorf("the last is %+v", last)
	}
}
