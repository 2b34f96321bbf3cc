package session

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// Conversation returns the newest messages of the active branch, oldest first:
// as many as fit into about max bytes of records. An assistant message and the
// results of its calls come together or not at all; a result that a later run
// made (see Carried) stands in that run. Only the records returned,
// and the first that did not fit, are read, and each once: the Session keeps
// what it read last, so the messages belong to it and are not to be changed. A
// record that is not what it was is errdefs.IO with its place.
func (s *Session) Conversation(max int) ([]Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	if err := s.recent.follow(s.ledger, s.st, max); err != nil {
		return nil, err
	}
	return s.recent.messages(), nil
}

// branch is a part of a branch, each entry the parent of the next; the numbers
// rise.
type branch []node

type node struct {
	n     uint32
	size  int // bytes of its record
	entry *Entry
}

// follow makes b the newest part of the active branch that fits into max bytes.
// Entries never change: those that b has are not read again.
func (b *branch) follow(f io.ReaderAt, st *state, max int) error {
	newest := make(branch, 0, len(*b)+16)
	for n := st.tip; n != 0 && max > 0; n = st.parent(n) {
		o, ok := b.find(n)
		if !ok {
			e, size, err := entryAt(f, st, n, max)
			if errors.Is(err, errLong) {
				break
			}
			if err != nil {
				return err
			}
			o = node{n, size, e}
		}
		if max -= o.size; max < 0 {
			break
		}
		newest = append(newest, o)
	}
	slices.Reverse(newest)
	*b = newest
	return nil
}

func (b *branch) find(n uint32) (node, bool) {
	i, ok := slices.BinarySearchFunc(*b, n, func(o node, n uint32) int { return cmp.Compare(o.n, n) })
	if !ok {
		return node{}, false
	}
	return (*b)[i], true
}

// messages are those of the branch without results that have lost their call:
// those at the front, and those that a later run made.
func (b branch) messages() []Entry {
	out := make([]Entry, 0, len(b))
	var caller libctx.Run // of the last message that can have calls
	for _, o := range b {
		e := o.entry
		switch {
		case e.Kind != KindMessage, e.Role == RoleTool && e.Run != caller && !called(out, e):
			continue
		case e.Role == RoleAssistant:
			caller = e.Run
		}
		out = append(out, *e)
	}
	return out
}

// called reports whether the call of a result is among the messages.
func called(messages []Entry, result *Entry) bool {
	for i := range messages {
		for _, p := range messages[i].Content {
			if p.Type == "tool_call" && slices.ContainsFunc(result.Content, func(r wire.Part) bool { return r.Call == p.Call }) {
				return true
			}
		}
	}
	return false
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
