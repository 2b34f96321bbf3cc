package session

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
)

// Reader reads a session as it was when it was opened. It never changes a byte
// and takes no lock that a writer would wait for. It is for one goroutine.
type Reader struct {
	name   libctx.Session
	f      *os.File
	size   int64 // whole lines
	torn   int64 // bytes behind them
	st     *state
	damage []*Damage
	more   int64 // damage that is not in the list
	lines  *lineReader
}

// maxDamage bounds the damage a Reader lists one by one.
const maxDamage = 1000

// Line is one line of the ledger. Record is nil if and only if Err says why:
// errdefs.IO for damage, errdefs.Invalid for what a newer version wrote. Both
// may be set: the line can be read but does not fit its place.
type Line struct {
	N      int64 // from 1
	Offset int64 // of the first byte
	Text   []byte
	Record Record
	Err    error
}

// Read opens a session for reading; errdefs.NotFound if there is none,
// errdefs.NoSpace if it is far over the ledger's limit. Damage does not make it
// fail: see Damage. The caller closes the Reader.
func (p Place) Read(name libctx.Session) (*Reader, error) {
	if err := p.check(name); err != nil {
		return nil, err
	}
	r := &Reader{name: name}
	var x *index
	err := p.in(p.rel(name), func(d *atomicfile.Dir) (err error) {
		r.f, err = d.Open(ledgerFile)
		x = readIndex(d)
		return err
	})
	if err == nil {
		err = r.load(p, x)
	}
	if err != nil {
		r.Close()
		return nil, p.at(name, err)
	}
	return r, nil
}

func (r *Reader) load(p Place, x *index) error {
	var length int64
	err := p.measure(r.name, func() error {
		fi, err := r.f.Stat()
		if err == nil {
			length = fi.Size()
		}
		return err
	})
	if err != nil {
		return err
	}
	if length > libctx.MaxLedger+libctx.MaxRecord {
		return errdefs.New(errdefs.NoSpace, "%s holds %d bytes, the limit is %d", ledgerFile, length, libctx.MaxLedger)
	}
	if r.size, err = lastLineEnd(r.f, length); err != nil {
		return err
	}
	r.torn = length - r.size
	if r.st, err = loadLedger(r.f, r.size, x); err != nil {
		return r.survey()
	}
	return nil
}

// survey derives what it can from a ledger that does not load, and lists what
// is wrong with it.
func (r *Reader) survey() error {
	r.st = newState()
	lost := 0 // lines of which nothing is known; each may have been an entry
	lines := newLineReader(r.f, 0, r.size, 1)
	for {
		l, err := lines.read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var b *brief
		if l.long() {
			err = fmt.Errorf("is longer than the limit of %d bytes", libctx.MaxRecord)
		} else {
			b, err = decodeBrief(l.text)
		}
		if err == nil {
			err = r.st.mend(b, int(l.size), &lost)
		} else {
			lost++
			r.st.seq++
			r.st.size += l.size
		}
		switch {
		case err == nil:
		case len(r.damage) < maxDamage:
			r.damage = append(r.damage, &Damage{File: ledgerFile, Line: l.n, Offset: l.off, Err: err})
		default:
			r.more++
		}
	}
}

// missing is the offset of an entry that could not be read.
const missing = ^uint64(0)

// mend is apply for a ledger that is damaged: a record that does not fit is put
// where it makes most sense, and what did not fit is returned. An entry whose
// parent is lost goes on where the branch was; that a line of lost makes a gap
// in the entries is no news.
func (st *state) mend(b *brief, n int, lost *int) error {
	err := st.fits(b)
	there := func(id uint32) bool { return id == 0 || int(id) <= len(st.offs) && st.offs[id-1] != missing }
	switch b.Type {
	case "entry":
		gap := int(b.id) - 1 - len(st.offs)
		if gap < 0 || b.id > libctx.MaxLedgerRecords {
			*lost++
			st.seq, st.size = b.Seq, st.size+int64(n)
			return err
		}
		if gap > 0 && gap <= *lost && b.Seq == st.seq+1 {
			err = nil
			*lost -= gap
		}
		for range gap {
			st.offs, st.links = append(st.offs, missing), append(st.links, st.tip)
		}
		if !there(b.parent) {
			b.parent = st.tip
		}
	case "head":
		if !there(b.id) {
			b.id = st.tip
		}
	}
	st.move(b, n)
	return err
}

// Next returns the next line of the ledger, damaged or not, and io.EOF behind
// the last whole one. Text is valid until the next call.
func (r *Reader) Next() (Line, error) {
	if r.lines == nil {
		r.lines = newLineReader(r.f, 0, r.size, 1)
	}
	l, err := r.lines.read()
	if err != nil {
		return Line{}, err
	}
	out := Line{N: l.n, Offset: l.off, Text: l.text}
	if n := len(out.Text); n > 0 && out.Text[n-1] == '\n' {
		out.Text = out.Text[:n-1]
	}
	for _, d := range r.damage {
		if d.Line == l.n {
			out.Err = damaged(l, d.Err)
		}
	}
	if l.long() {
		return out, nil
	}
	if out.Record, err = DecodeRecord(l.text); err != nil && out.Err == nil {
		out.Err = damaged(l, err)
	}
	return out, nil
}

// Branch lists the active branch, oldest first. Damage of the ledger comes as
// an error at its place, and what is after it still follows.
func (r *Reader) Branch() iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		var path []uint32
		for n := r.st.tip; n != 0; n = r.st.parent(n) {
			if r.st.offs[n-1] != missing {
				path = append(path, n)
			}
		}
		damage := r.damage
		for i := len(path) - 1; i >= 0; i-- {
			off := int64(r.st.offs[path[i]-1])
			for len(damage) > 0 && damage[0].Offset <= off {
				if !yield(nil, r.report(damage[0])) {
					return
				}
				damage = damage[1:]
			}
			e, _, err := entryAt(r.f, r.st, path[i], libctx.MaxRecord)
			if !yield(e, err) {
				return
			}
		}
		for _, d := range damage {
			if !yield(nil, r.report(d)) {
				return
			}
		}
	}
}

func (r *Reader) report(d *Damage) error { return damaged(line{n: d.Line, off: d.Offset}, d.Err) }

// Damage lists what is wrong with the ledger, in order, at most 1000 places; a
// last error counts the others.
func (r *Reader) Damage() []error {
	var list []error
	for _, d := range r.damage {
		list = append(list, r.report(d))
	}
	if r.more > 0 {
		list = append(list, errdefs.New(errdefs.IO, "%s: %d more lines are damaged", ledgerFile, r.more))
	}
	return list
}

// Torn is the number of bytes behind the last whole line: a line that is being
// written, or one that a dead host did not finish. No Line shows them.
func (r *Reader) Torn() int64 { return r.torn }

// Latest is the text of the newest assistant message of the active branch that
// has any; "" if there is none.
func (r *Reader) Latest() (string, error) {
	n := r.st.latest()
	if n == 0 {
		return "", nil
	}
	e, _, err := entryAt(r.f, r.st, n, libctx.MaxRecord)
	if err != nil {
		return "", err
	}
	return e.Text(), nil
}

// Info describes the session. For a damaged ledger it is what could be read.
func (r *Reader) Info() Info {
	info := r.st.info(r.name)
	if list := r.Damage(); len(list) > 0 {
		info.Damage = list[0].Error()
	}
	return info
}

// Close closes the Reader. It is safe to call it twice.
func (r *Reader) Close() error {
	if r.f == nil {
		return nil
	}
	f := r.f
	r.f = nil
	return f.Close()
}
