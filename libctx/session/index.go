package session

import (
	"encoding/binary"
	"hash/crc32"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// indexMagic names the file and its version; another version is no index.
const indexMagic = "ctxidx\x00\x07"

// maxIndex is the size of the largest index a ledger within its limits can
// have, generously: 28 bytes a record and the open runs.
const maxIndex = 28*libctx.MaxLedgerRecords + 4<<20

// spareEntries is how many entries fit behind those of an index before their
// columns are copied to grow.
const spareEntries = 1024

// fileStat is what tells an unchanged file from a changed one.
type fileStat struct {
	ino          uint64
	size         int64
	mtime, ctime int64 // nanoseconds
}

func statOf(fd int) (fileStat, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fileStat{}, err
	}
	return fileStat{ino: st.Ino, size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano()}, nil
}

// index is the content of context/ledger.idx: the state after a prefix of the
// ledger, the event log that belongs to it, and the two files as they were.
type index struct {
	ledger fileStat
	events fileStat
	// eventsCRC is the crc32c of the first events.size bytes of the event log.
	eventsCRC uint32
	state     *state
}

func (x *index) encode() []byte {
	st := x.state
	clients := st.clients.all()
	w := indexWriter{b: make([]byte, 0, 4096+12*len(st.offs)+16*len(clients))}
	w.b = append(w.b, indexMagic...)
	w.stat(x.ledger)
	w.stat(x.events)
	w.u32(x.eventsCRC)
	w.i64(st.seq)
	w.i64(st.size)
	w.u32(st.crc)
	w.u32(st.tip)
	w.u32(st.unstarted)
	for _, s := range []string{st.created, st.updated, st.word, st.workspace, st.cwd, st.scope, string(st.client)} {
		w.str(s)
	}
	w.i64(st.turns)
	w.spent(st.spent)
	w.u32(uint32(len(st.fold.runs)))
	for _, r := range st.fold.runs {
		w.str(string(r.run))
		w.flag(r.tsh)
		w.i64(int64(r.events))
		w.spent(r.spent)
		w.u32(uint32(len(r.calls)))
		for _, c := range r.calls {
			w.call(c)
		}
		w.u32(uint32(len(r.inputs)))
		for _, in := range r.inputs {
			w.str(string(in.client))
			w.i64(in.size)
			w.flag(in.entered)
		}
		w.str(r.workspace)
		w.str(r.cwd)
	}
	w.u32(uint32(len(st.fold.carried)))
	for _, c := range st.fold.carried {
		w.str(string(c.run))
		w.call(c.call)
		w.str(c.workspace)
		w.str(c.cwd)
	}
	w.u32(uint32(len(st.offs)))
	for _, off := range st.offs {
		w.i64(int64(off))
	}
	for _, link := range st.links {
		w.u32(link)
	}
	w.u32(uint32(len(clients)))
	for _, c := range clients {
		w.i64(int64(c.hash))
		w.i64(c.off)
	}
	w.u32(crc32.Checksum(w.b, castagnoli))
	return w.b
}

// decodeIndex reads an index and checks everything in it that can be checked
// without the ledger. An error means: there is no index.
func decodeIndex(b []byte) (*index, error) {
	bad := errdefs.New(errdefs.Invalid, "ledger.idx is not an index of this version")
	if len(b) < len(indexMagic)+4 || string(b[:len(indexMagic)]) != indexMagic {
		return nil, bad
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[len(body):]) {
		return nil, bad
	}
	r := indexReader{b: body[len(indexMagic):]}
	st := newState()
	x := &index{ledger: r.stat(), events: r.stat(), eventsCRC: r.u32(), state: st}
	st.seq, st.size, st.crc = r.i64(), r.i64(), r.u32()
	st.tip, st.unstarted = r.u32(), r.u32()
	st.created, st.updated, st.word = r.str(), r.str(), r.str()
	st.workspace, st.cwd, st.scope = r.str(), r.str(), r.str()
	st.client = libctx.ClientID(r.str())
	st.turns, st.spent = r.i64(), r.spent()
	for range r.count(8) {
		run := openRun{run: libctx.Run(r.str()), tsh: r.flag(), events: int(r.i64()), spent: r.spent()}
		for range r.count(16) {
			run.calls = append(run.calls, r.call())
		}
		for range r.count(16) {
			run.inputs = append(run.inputs, pendingInput{client: libctx.ClientID(r.str()), size: r.i64(), entered: r.flag()})
		}
		run.workspace, run.cwd = r.str(), r.str()
		st.fold.runs = append(st.fold.runs, run)
	}
	for range r.count(28) {
		st.fold.carried = append(st.fold.carried, carriedCall{libctx.Run(r.str()), r.call(), r.str(), r.str()})
	}
	n := r.count(12)
	// Room for some more: the first entry of a long session is not to copy them all.
	st.offs, st.links = make([]uint64, n, n+spareEntries), make([]uint32, n, n+spareEntries)
	column := r.take(8 * n)
	for i := 0; len(column) >= 8; i, column = i+1, column[8:] {
		st.offs[i] = binary.LittleEndian.Uint64(column)
	}
	column = r.take(4 * n)
	for i := 0; len(column) >= 4; i, column = i+1, column[4:] {
		st.links[i] = binary.LittleEndian.Uint32(column)
	}
	st.clients.sorted = make([]clientRef, r.count(16))
	column = r.take(16 * len(st.clients.sorted))
	for i := 0; len(column) >= 16; i, column = i+1, column[16:] {
		st.clients.sorted[i] = clientRef{hash: binary.LittleEndian.Uint64(column), off: int64(binary.LittleEndian.Uint64(column[8:]))}
	}
	if r.failed || len(r.b) != 0 || !x.sound() {
		return nil, bad
	}
	return x, nil
}

// sound checks the numbers of an index against one another, so that nothing
// derived from it can reach outside the ledger or loop.
func (x *index) sound() bool {
	st := x.state
	n := uint32(len(st.offs))
	if st.seq < 1 || st.seq > libctx.MaxLedgerRecords || st.size < st.seq || st.size > libctx.MaxLedger ||
		st.size != x.ledger.size || x.events.size < 0 || int64(n) > st.seq || st.tip > n || st.unstarted > n {
		return false
	}
	last := int64(-1)
	for i, off := range st.offs {
		if int64(off) <= last || int64(off) >= st.size || st.links[i]&linkParent > uint32(i) {
			return false
		}
		last = int64(off)
	}
	var hash uint64
	for _, c := range st.clients.sorted {
		if c.off < 0 || c.off >= st.size || c.hash < hash {
			return false
		}
		hash = c.hash
	}
	for _, c := range st.fold.carried {
		if c.call.entry < 1 || c.call.entry > n {
			return false
		}
	}
	for _, r := range st.fold.runs {
		if r.events < 0 || int64(r.events) > 1<<32 {
			return false
		}
		for _, in := range r.inputs {
			if in.size < 1 || in.size > libctx.MaxRecord {
				return false
			}
		}
		for _, c := range r.calls {
			if c.entry > n {
				return false
			}
		}
	}
	return true
}

// indexWriter and indexReader are the primitive types of the file: little
// endian, strings with a length in front.
type indexWriter struct{ b []byte }

func (w *indexWriter) u32(v uint32) { w.b = binary.LittleEndian.AppendUint32(w.b, v) }
func (w *indexWriter) i64(v int64)  { w.b = binary.LittleEndian.AppendUint64(w.b, uint64(v)) }
func (w *indexWriter) str(s string) { w.u32(uint32(len(s))); w.b = append(w.b, s...) }
func (w *indexWriter) flag(v bool) {
	if v {
		w.u32(1)
	} else {
		w.u32(0)
	}
}
func (w *indexWriter) call(c openCall) {
	w.str(string(c.Call))
	w.str(string(c.Name))
	w.u32(c.entry)
	w.flag(c.begun)
	w.flag(c.asked)
	w.flag(c.answered)
}
func (w *indexWriter) stat(s fileStat) {
	w.i64(int64(s.ino))
	w.i64(s.size)
	w.i64(s.mtime)
	w.i64(s.ctime)
}
func (w *indexWriter) spent(s spent) {
	w.i64(s.tokens.Input)
	w.i64(s.tokens.CacheRead)
	w.i64(s.tokens.CacheWrite)
	w.i64(s.tokens.Output)
	w.i64(s.cost)
	w.flag(s.uncertain)
	w.flag(s.unpriced)
}

type indexReader struct {
	b      []byte
	failed bool
}

func (r *indexReader) take(n int) []byte {
	if r.failed || n < 0 || n > len(r.b) {
		r.failed = true
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *indexReader) u32() uint32 {
	if v := r.take(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

func (r *indexReader) i64() int64 {
	if v := r.take(8); v != nil {
		return int64(binary.LittleEndian.Uint64(v))
	}
	return 0
}

func (r *indexReader) str() string { return string(r.take(int(r.u32()))) }
func (r *indexReader) flag() bool {
	v := r.u32()
	r.failed = r.failed || v > 1
	return v == 1
}

// count reads a number of items of at least size bytes each; a number that the
// rest of the file can not hold is a failure, not an allocation.
func (r *indexReader) count(size int) int {
	n := int(r.u32())
	if r.failed || n > len(r.b)/size {
		r.failed = true
		return 0
	}
	return n
}

func (r *indexReader) call() openCall {
	return openCall{
		Call: libctx.Call(r.str()), Name: libctx.Tool(r.str()), entry: r.u32(),
		begun: r.flag(), asked: r.flag(), answered: r.flag(),
	}
}

func (r *indexReader) stat() fileStat {
	return fileStat{ino: uint64(r.i64()), size: r.i64(), mtime: r.i64(), ctime: r.i64()}
}

func (r *indexReader) spent() spent {
	return spent{
		tokens: Tokens{Input: r.i64(), CacheRead: r.i64(), CacheWrite: r.i64(), Output: r.i64()},
		cost:   r.i64(), uncertain: r.flag(), unpriced: r.flag(),
	}
}
