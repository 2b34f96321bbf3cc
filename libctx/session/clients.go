package session

import (
	"hash/fnv"
	"sort"

	"cortexfs.org/libctx"
)

// clientTable finds the start record of a client id. It holds hashes, 16 bytes
// an id; who looks up reads the record and compares. Offsets of the ids an
// index brought are sorted by hash; newer ones are in a map.
type clientTable struct {
	sorted []clientRef
	fresh  map[uint64][]int64
	added  []uint64 // hashes added since mark, in order
}

type clientRef struct {
	hash uint64
	off  int64
}

func clientHash(id libctx.ClientID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id)) // a hash never fails to write
	return h.Sum64()
}

func (t *clientTable) add(id libctx.ClientID, off int64) {
	if t.fresh == nil {
		t.fresh = make(map[uint64][]int64)
	}
	h := clientHash(id)
	t.fresh[h] = append(t.fresh[h], off)
	t.added = append(t.added, h)
}

// mark begins a batch that rollback can undo.
func (t *clientTable) mark() { t.added = t.added[:0] }

func (t *clientTable) rollback() {
	for _, h := range t.added {
		t.fresh[h] = t.fresh[h][:len(t.fresh[h])-1]
	}
	t.added = t.added[:0]
}

// find returns the offsets of records that may carry the id.
func (t *clientTable) find(id libctx.ClientID) []int64 {
	h := clientHash(id)
	offs := append([]int64(nil), t.fresh[h]...)
	i := sort.Search(len(t.sorted), func(i int) bool { return t.sorted[i].hash >= h })
	for ; i < len(t.sorted) && t.sorted[i].hash == h; i++ {
		offs = append(offs, t.sorted[i].off)
	}
	return offs
}

// all lists the whole table, sorted.
func (t *clientTable) all() []clientRef {
	out := append([]clientRef(nil), t.sorted...)
	for h, offs := range t.fresh {
		for _, off := range offs {
			out = append(out, clientRef{h, off})
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].hash != out[j].hash {
			return out[i].hash < out[j].hash
		}
		return out[i].off < out[j].off
	})
	return out
}
