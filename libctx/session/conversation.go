package session

import (
	"errors"
	"io"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// Conversation returns the newest messages of the active branch, oldest first:
// as many as fit into about max bytes of records. An assistant message and the
// results of its calls come together or not at all. Only the records returned,
// and the first that did not fit, are read. A record that is not what it was is
// errdefs.IO with its place.
func (s *Session) Conversation(max int) ([]Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	return conversation(s.ledger, s.st, max)
}

func conversation(f io.ReaderAt, st *state, max int) ([]Entry, error) {
	var out []Entry // newest first
	whole := 0      // entries of out that are whole groups
	for n := st.tip; n != 0 && max > 0; n = st.parent(n) {
		e, size, err := entryAt(f, st, n, max)
		if errors.Is(err, errLong) {
			break
		}
		if err != nil {
			return nil, err
		}
		if max -= size; max < 0 {
			break
		}
		if e.Kind != KindMessage {
			continue
		}
		out = append(out, *e)
		if e.Role != RoleTool {
			whole = len(out)
		}
	}
	out = out[:whole]
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out, nil
}

// entry reads the n-th entry.
func (s *Session) entry(n uint32) (*Entry, error) {
	e, _, err := entryAt(s.ledger, s.st, n, libctx.MaxRecord)
	return e, err
}

// entryAt reads the n-th entry and says how long its record is; one of more
// than max bytes is errLong.
func entryAt(f io.ReaderAt, st *state, n uint32, max int) (*Entry, int, error) {
	off := int64(st.offs[n-1])
	text, err := lineAt(f, off, st.size, max)
	if errors.Is(err, errLong) {
		return nil, 0, err
	}
	var r Record
	if err == nil {
		r, err = DecodeRecord(text)
	}
	e, ok := r.(*Entry)
	switch {
	case err != nil:
		return nil, 0, errdefs.New(errdefs.IO, "%s at offset %d: %w", ledgerFile, off, err)
	case !ok || e.ID != entryID(n):
		return nil, 0, errdefs.New(errdefs.IO, "%s at offset %d: is not entry %s", ledgerFile, off, entryID(n))
	}
	return e, len(text), nil
}
