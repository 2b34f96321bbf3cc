package session

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
)

// Damage is a line of a ledger that is not what it has to be. It is wrapped in
// an errdefs.IO error.
type Damage struct {
	File   string
	Line   int64 // from 1
	Offset int64 // of its first byte
	Err    error
}

func (d *Damage) Error() string { return fmt.Sprintf("%s line %d: %v", d.File, d.Line, d.Err) }

// Unwrap returns what is wrong with the line.
func (d *Damage) Unwrap() error { return d.Err }

// damaged makes the error of a line. A ledger of a newer version is not
// damaged: it is refused.
func damaged(l line, err error) error {
	kind := errdefs.IO
	var unknown *UnknownTypeError
	var newer newerFormat
	if errors.As(err, &unknown) || errors.As(err, &newer) {
		kind = errdefs.Invalid
	}
	return errdefs.New(kind, "%w", &Damage{File: ledgerFile, Line: l.n, Offset: l.off, Err: err})
}

// loadLedger derives the state of the first size bytes of a ledger, which end
// in a whole line. With an index that belongs to the file it reads only what
// came after.
func loadLedger(f *os.File, size int64, x *index) (*state, error) {
	x, err := trusted(f, size, x)
	if err != nil {
		return nil, err
	}
	st := x.begin()
	return st, scan(f, st, size, nil)
}

// trusted returns the index if it belongs to the ledger, else nil.
func trusted(f *os.File, size int64, x *index) (*index, error) {
	if x == nil {
		return nil, nil
	}
	ok, err := x.covers(f, size)
	if err != nil || !ok {
		return nil, err
	}
	return x, nil
}

// begin is the state that a scan goes on from: that of the index, which is the
// scan's from then on, or an empty one.
func (x *index) begin() *state {
	if x == nil {
		return newState()
	}
	return x.state
}

// prefix copies what the fold of a later part of the ledger begins from.
func (st *state) prefix() *state {
	return &state{seq: st.seq, size: st.size, fold: st.fold.Clone()}
}

// scan applies the records between the end of the state and size. Before each
// is applied, watch sees it, if there is one.
func scan(f io.ReaderAt, st *state, size int64, watch func(text []byte, b *brief) error) error {
	lines := newLineReader(f, st.size, size, st.seq+1)
	for {
		l, err := lines.read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errdefs.New(errdefs.IO, "read %s at offset %d: %w", ledgerFile, st.size, err)
		}
		if l.long() {
			return damaged(l, fmt.Errorf("is longer than the limit of %d bytes", libctx.MaxRecord))
		}
		b, err := decodeBrief(l.text)
		if err == nil {
			err = st.fits(b)
		}
		if err == nil && watch != nil {
			err = watch(l.text, b)
		}
		if err == nil {
			err = st.take(l.text, b)
		}
		if err != nil {
			return damaged(l, err)
		}
	}
}

// take applies one line and its bytes.
func (st *state) take(text []byte, b *brief) error {
	if err := st.apply(b, len(text)); err != nil {
		return err
	}
	st.crc = crc32.Update(st.crc, castagnoli, text)
	return nil
}

// covers reports whether the index describes a prefix of the ledger: the file
// is exactly as it was, or its first bytes have the right checksum.
func (x *index) covers(f *os.File, size int64) (bool, error) {
	if x.state.size > size {
		return false, nil
	}
	now, err := statOf(int(f.Fd()))
	if err != nil {
		return false, errdefs.New(errdefs.IO, "stat %s: %w", ledgerFile, err)
	}
	if now == x.ledger {
		return true, nil
	}
	crc, err := checksum(f, x.state.size)
	return crc == x.state.crc, err
}

// checksum is the crc32c of the first n bytes of a file.
func checksum(f io.ReaderAt, n int64) (uint32, error) {
	h := crc32.New(castagnoli)
	if _, err := io.CopyBuffer(h, io.NewSectionReader(f, 0, n), make([]byte, 1<<20)); err != nil {
		return 0, errdefs.New(errdefs.IO, "read: %w", err)
	}
	return h.Sum32(), nil
}

// readIndex reads the index of a session directory; nil if there is none that
// can be used.
func readIndex(d *atomicfile.Dir) *index {
	f, err := d.Open(indexFile)
	if err != nil {
		return nil
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || fi.Size() > maxIndex {
		return nil
	}
	b := make([]byte, fi.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil
	}
	x, err := decodeIndex(b)
	if err != nil {
		return nil
	}
	return x
}

// writeIndex writes the index if the ledger changed since the last one. A
// session of which nothing is on disk has none.
func (s *Session) writeIndex() error {
	if s.ledger == nil || s.st.seq == 0 {
		return nil
	}
	x := &index{eventsCRC: s.eventsCRC, state: s.st}
	var err error
	if x.ledger, err = statOf(int(s.ledger.Fd())); err != nil {
		return errdefs.New(errdefs.IO, "stat %s: %w", ledgerFile, err)
	}
	if x.events, err = statOf(int(s.events.Load().Fd())); err != nil {
		return errdefs.New(errdefs.IO, "stat %s: %w", eventsFile, err)
	}
	if x.ledger == s.stale || x.ledger.size != s.st.size || x.events.size != s.eventsEnd.Load() {
		return nil
	}
	err = s.place.in(s.place.rel(s.name), func(d *atomicfile.Dir) error {
		sub, err := d.MkdirAll("context", dirPerm)
		if err != nil {
			return err
		}
		defer sub.Close()
		fault.Point("session.index.write")
		return sub.ReplaceLazy("ledger.idx", x.encode(), filePerm)
	})
	if err != nil {
		return s.place.at(s.name, err)
	}
	fault.Point("session.index.written")
	s.stale = x.ledger
	return nil
}
