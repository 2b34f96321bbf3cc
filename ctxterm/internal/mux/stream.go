package mux

import (
	"encoding/base64"

	"cortexfs.org/libctx/termwire"
)

// blockBytes is the size of a block, unless a single frame is larger.
const blockBytes = 64 << 10

// stream is the frames that all clients get, encoded once. It is a chain of
// blocks, and each client has a place in it: a block lives as long as some client
// has not passed it. Whole frames are in one block, so that a client which is
// given what a block holds ends between two frames.
type stream struct {
	tail *block
	end  int64 // bytes since the beginning
}

// block holds frames. Bytes below len(data) never change again; its length and
// next do, under the lock of the Mux.
type block struct {
	data []byte
	next *block
}

// place is where a client is in the stream; the zero place is nowhere.
type place struct {
	in  *block
	off int
	pos int64 // bytes since the beginning of the stream
}

func newStream() stream { return stream{tail: &block{data: make([]byte, 0, blockBytes)}} }

// here is the present end.
func (s *stream) here() place { return place{s.tail, len(s.tail.data), s.end} }

// reserve makes room for a frame of n bytes and reports whether that took a new
// block.
func (s *stream) reserve(n int) (grown bool) {
	if cap(s.tail.data)-len(s.tail.data) >= n {
		return false
	}
	next := &block{data: make([]byte, 0, max(blockBytes, n))}
	s.tail.next, s.tail = next, next
	return true
}

// output appends an output frame.
func (s *stream) output(seq uint64, data []byte) (grown bool) {
	const around = 64 // more than the frame is longer than its data
	grown = s.reserve(base64.StdEncoding.EncodedLen(len(data)) + around)
	before := len(s.tail.data)
	s.tail.data = termwire.AppendOutput(s.tail.data, seq, data)
	s.end += int64(len(s.tail.data) - before)
	return grown
}

// frame appends any other frame.
func (s *stream) frame(line []byte) (grown bool) {
	grown = s.reserve(len(line))
	s.tail.data = append(s.tail.data, line...)
	s.end += int64(len(line))
	return grown
}

// take returns what there is from p on in one block, at most to the position
// limit, and moves p behind it.
func (p *place) take(limit int64) []byte {
	if p.off == len(p.in.data) && p.in.next != nil {
		p.in, p.off = p.in.next, 0
	}
	n := int(min(int64(len(p.in.data)-p.off), limit-p.pos))
	b := p.in.data[p.off : p.off+n : p.off+n]
	p.off, p.pos = p.off+n, p.pos+int64(n)
	return b
}
