package session

import (
	"bytes"
	"io"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// EventsEnd is the offset behind the newest event.
func (s *Session) EventsEnd() int64 { return s.eventsEnd.Load() }

// FindEvent returns the offset just behind an event, from which ReadEvents
// goes on; errdefs.NotFound if there is no such event. The log is searched from
// its end, so that what is recent is found at once.
func (s *Session) FindEvent(after libctx.Event) (int64, error) {
	_, end, err := s.search(after)
	return end, err
}

// FindRun returns the offset of the first event of a run; errdefs.NotFound if
// there is none.
func (s *Session) FindRun(run libctx.Run) (int64, error) {
	off, _, err := s.search(libctx.MakeEvent(run, 1))
	return off, err
}

// search finds the line of an event and returns where it begins and ends.
func (s *Session) search(id libctx.Event) (from, end int64, err error) {
	f, size := s.events.Load(), s.eventsEnd.Load()
	if f == nil {
		return 0, 0, errdefs.New(errdefs.NotFound, "no event %s in session %s", id, s.name)
	}
	from, err = searchBack(f, size, id)
	if err != nil {
		return 0, 0, errdefs.New(errdefs.KindOf(err), "session %s: %w", s.name, err)
	}
	text, err := lineAt(f, from, size, libctx.MaxFrame)
	if err != nil {
		return 0, 0, errdefs.New(errdefs.IO, "%s at offset %d: %w", eventsFile, from, err)
	}
	return from, from + int64(len(text)), nil
}

// headSize is more than what stands in front of the run member of an event
// line, type and id.
const headSize = 512

// searchBack returns the offset of the line that begins with the event's type
// and id. The same bytes may stand inside of arguments too: only the head of a
// line counts.
func searchBack(f io.ReaderAt, size int64, id libctx.Event) (int64, error) {
	needle := []byte(`","id":"` + string(id) + `",`)
	buf := make([]byte, 1<<20+headSize)
	for end := size; end > 0; {
		from := max(0, end-1<<20)
		part := buf[:min(size, end+headSize)-from] // a head that ends in the later part is seen too
		if _, err := f.ReadAt(part, from); err != nil {
			return 0, errdefs.New(errdefs.IO, "read %s: %w", eventsFile, err)
		}
		for at := 0; ; at += len(needle) {
			i := bytes.Index(part[at:], needle)
			if i < 0 {
				break
			}
			at += i
			start, ok, err := headStart(f, from+int64(at))
			if err != nil {
				return 0, err
			}
			if ok {
				return start, nil
			}
		}
		end = from
	}
	return 0, errdefs.New(errdefs.NotFound, "no event %s", id)
}

// headStart looks whether a line begins with `{"type":"WORD` right in front of
// offset at, and where.
func headStart(f io.ReaderAt, at int64) (int64, bool, error) {
	from := max(0, at-headSize)
	buf := make([]byte, at-from)
	if _, err := f.ReadAt(buf, from); err != nil {
		return 0, false, errdefs.New(errdefs.IO, "read %s: %w", eventsFile, err)
	}
	start := bytes.LastIndexByte(buf, '\n') + 1
	if start == 0 && from > 0 {
		return 0, false, nil
	}
	word, ok := bytes.CutPrefix(buf[start:], []byte(`{"type":"`))
	return from + int64(start), ok && !bytes.ContainsAny(word, `"\`), nil
}

// ReadEvents returns about max bytes of whole event lines from an offset that
// FindEvent, FindRun or ReadEvents returned (0 is the first event), at least
// one line if there is any, and the offset behind them. At the end of the log
// next is offset. It may be called while Commit runs.
func (s *Session) ReadEvents(offset int64, max int) (lines [][]byte, next int64, err error) {
	f, size := s.events.Load(), s.eventsEnd.Load()
	if offset < 0 || offset > size {
		return nil, offset, errdefs.New(errdefs.Invalid, "offset %d is not in %s", offset, eventsFile)
	}
	if offset == size {
		return nil, offset, nil
	}
	buf := make([]byte, min(int64(max), size-offset))
	if _, err := f.ReadAt(buf, offset); err != nil {
		return nil, offset, errdefs.New(errdefs.IO, "read %s: %w", eventsFile, err)
	}
	whole := bytes.LastIndexByte(buf, '\n') + 1
	if whole == 0 {
		if buf, err = lineAt(f, offset, size, libctx.MaxFrame); err != nil {
			return nil, offset, errdefs.New(errdefs.IO, "%s at offset %d: %w", eventsFile, offset, err)
		}
		whole = len(buf)
	}
	for rest := buf[:whole]; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n') + 1
		lines = append(lines, rest[:i:i])
		rest = rest[i:]
	}
	return lines, offset + int64(whole), nil
}
