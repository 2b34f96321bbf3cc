// Package capture keeps the head and the tail of an output of any length in
// bounded memory.
package capture

import (
	"fmt"

	"cortexfs.org/libctx/wire"
)

// Buffer is an io.Writer that keeps the first two thirds of its bound and, of
// what follows, the last third. Writing never fails. It is for one goroutine.
type Buffer struct {
	max  int
	head []byte
	tail []byte // ring, once it is full
	next int    // where the ring goes on
	seen int64
}

// New keeps at most max bytes, max at least 3.
func New(max int) *Buffer { return &Buffer{max: max} }

// Write takes everything.
func (b *Buffer) Write(p []byte) (int, error) {
	n := len(p)
	b.seen += int64(n)
	if room := b.max*2/3 - len(b.head); room > 0 {
		k := min(room, len(p))
		b.head = append(b.head, p[:k]...)
		p = p[k:]
	}
	size := b.max - b.max*2/3
	if len(p) > size {
		p = p[len(p)-size:]
	}
	if grow := min(size-len(b.tail), len(p)); grow > 0 {
		b.tail = append(b.tail, p[:grow]...)
		p = p[grow:]
	}
	for len(p) > 0 {
		k := copy(b.tail[b.next:], p)
		b.next = (b.next + k) % size
		p = p[k:]
	}
	return n, nil
}

// Len is the number of bytes written so far, kept or not.
func (b *Buffer) Len() int64 { return b.seen }

// Truncated reports whether bytes were left out.
func (b *Buffer) Truncated() bool { return b.seen > int64(len(b.head)+len(b.tail)) }

// Text is what was kept as valid text: invalid bytes are replaced, and a line
// between head and tail says how much is missing.
func (b *Buffer) Text() string {
	tail := append(append([]byte(nil), b.tail[b.next:]...), b.tail[:b.next]...)
	if !b.Truncated() {
		return wire.Clean(append(append([]byte(nil), b.head...), tail...))
	}
	missing := b.seen - int64(len(b.head)+len(b.tail))
	return wire.Clean(b.head) + fmt.Sprintf("\n[… %d bytes left out …]\n", missing) + wire.Clean(tail)
}
