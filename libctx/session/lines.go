package session

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// line is one physical line of a ledger or event log.
type line struct {
	n    int64  // from 1
	off  int64  // of its first byte
	text []byte // LF included; valid until the next call of next
	size int64  // bytes, LF included; more than len(text) if the line is over the limit
	torn bool   // the file ends before the LF
}

// long reports whether the line is over the record limit; its text is then only
// a beginning.
func (l line) long() bool { return l.size > int64(len(l.text)) }

// lineReader splits a part of a file into lines. Its memory is the longest
// line, at most the record limit.
type lineReader struct {
	r    *bufio.Reader
	at   line
	buf  []byte
	next int64
}

// newLineReader reads the bytes [from, end) of f; the first line has number n.
func newLineReader(f io.ReaderAt, from, end, n int64) *lineReader {
	size := min(max(end-from, 4096), 1<<20)
	return &lineReader{
		r:    bufio.NewReaderSize(io.NewSectionReader(f, from, end-from), int(size)),
		at:   line{n: n - 1, off: from},
		next: from,
	}
}

// read returns the next line, or io.EOF.
func (l *lineReader) read() (line, error) {
	l.buf = l.buf[:0]
	at := line{n: l.at.n + 1, off: l.next}
	for {
		part, err := l.r.ReadSlice('\n')
		at.size += int64(len(part))
		if err == nil && len(l.buf) == 0 {
			at.text = part
		} else if len(l.buf)+len(part) <= libctx.MaxRecord {
			l.buf = append(l.buf, part...)
			at.text = l.buf
		}
		switch {
		case err == nil:
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && at.size > 0:
			at.torn = true
		default:
			return line{}, err
		}
		l.next += at.size
		l.at = at
		return at, nil
	}
}

// lastLineEnd is the length of f without an unfinished last line: the offset
// behind the last LF below end, 0 if there is none.
func lastLineEnd(f io.ReaderAt, end int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for end > 0 {
		from := max(0, end-int64(len(buf)))
		part := buf[:end-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}

// errLong says that a line does not fit, not that it is wrong.
var errLong = errors.New("line is too long")

// lineAt reads the line at off, which ends before end. A line over max bytes is
// errLong; one without an LF is errdefs.IO.
func lineAt(f io.ReaderAt, off, end int64, max int) ([]byte, error) {
	buf := make([]byte, 0, min(int64(4<<10), end-off))
	for {
		if len(buf) > max {
			return nil, errLong
		}
		at := off + int64(len(buf))
		n := min(int64(cap(buf)-len(buf)), end-at)
		if n <= 0 {
			return nil, errdefs.New(errdefs.IO, "no whole line at offset %d", off)
		}
		part := buf[len(buf) : len(buf)+int(n)]
		if _, err := f.ReadAt(part, at); err != nil {
			return nil, err
		}
		if i := bytes.IndexByte(part, '\n'); i >= 0 {
			if len(buf)+i+1 > max {
				return nil, errLong
			}
			return buf[:len(buf)+i+1], nil
		}
		buf = buf[:len(buf)+int(n)]
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(int64(cap(buf))*4, end-off))
			copy(grown, buf)
			buf = grown
		}
	}
}
