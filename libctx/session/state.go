package session

import (
	"hash/crc32"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// timeLayout is how ts is written: RFC 3339, milliseconds, always Z.
const timeLayout = "2006-01-02T15:04:05.000Z"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Words of the state file.
const (
	StateIdle      = "idle"
	StateActive    = "active"
	StateDone      = "done"
	StateError     = "error"
	StateCancelled = "cancelled"
)

// state is everything that follows from the records of a ledger, in the order
// of the ledger. Its memory is 12 bytes an entry and 16 a client id.
type state struct {
	seq  int64  // records so far
	size int64  // bytes so far
	crc  uint32 // crc32c of those bytes

	offs  []uint64 // offset of each entry's record; entry n is at n-1
	links []uint32 // parent of each entry, and flags
	tip   uint32

	// unstarted is a user entry whose start frame has not come: the end of a
	// batch was lost with the power. The next open for writing moves the head
	// back over it.
	unstarted uint32

	clients clientTable
	fold    Fold

	created, updated      string // ts of the first and last record
	word                  string // state word
	workspace, cwd, scope string // of the latest start that named them
	client                libctx.ClientID
	turns                 int64
	spent                 spent
}

// Flags in links beside the parent's number.
const (
	linkText   = 1 << 31 // assistant message with text
	linkTool   = 1 << 30 // tool message
	linkParent = linkTool - 1
)

func newState() *state { return &state{word: StateIdle, scope: "private"} }

// mark is a point that rollback returns to.
type mark struct {
	light   state
	entries int
}

func (st *state) mark() mark {
	m := mark{light: *st, entries: len(st.offs)}
	m.light.fold = st.fold.Clone()
	st.clients.mark()
	return m
}

func (st *state) rollback(m mark) {
	clients, offs, links := st.clients, st.offs, st.links
	*st = m.light
	st.offs, st.links = offs[:m.entries], links[:m.entries]
	clients.rollback()
	st.clients = clients
}

// parent is the parent of an entry, 0 for a root.
func (st *state) parent(n uint32) uint32 { return st.links[n-1] & linkParent }

// latest is the newest assistant message with text on the active branch, 0 if
// there is none.
func (st *state) latest() uint32 {
	n := st.tip
	for n != 0 && st.links[n-1]&linkText == 0 {
		n = st.parent(n)
	}
	return n
}

// active is the open driven run.
func (st *state) active() libctx.Run {
	for _, r := range st.fold.runs {
		if !r.tsh {
			return r.run
		}
	}
	return ""
}

// newerFormat says that a newer version wrote the ledger.
type newerFormat struct{ error }

// apply moves the state over the next record, whose line (LF included) is n
// bytes. A record that does not fit leaves the state as it was.
func (st *state) apply(b *brief, n int) error {
	if err := st.fits(b); err != nil {
		return err
	}
	st.move(b, n)
	return nil
}

// move is apply without the checks.
func (st *state) move(b *brief, n int) {
	st.seq, st.updated = b.Seq, b.TS
	if st.created == "" {
		st.created = b.TS
	}
	at := st.size
	st.size += int64(n)
	before := len(st.fold.runs)
	switch b.Type {
	case "head":
		st.tip = b.id
		if b.id != st.unstarted {
			st.unstarted = 0
		}
	case "entry":
		st.entry(b, at)
	case "usage", "usage_uncertain":
		st.spent.add(b)
	case "checkpoint":
		if r := st.fold.find(b.Run); r != nil && !r.tsh {
			st.word = endWord(b.Outcome)
		}
	case "fact":
		switch {
		case b.starts():
			st.start(b, at)
		case b.accepts():
			st.clients.add(b.Frame.ClientID, at)
		}
	}
	st.fold.advance(b)
	if len(st.fold.runs) > before {
		if r := &st.fold.runs[len(st.fold.runs)-1]; !r.tsh {
			st.unstarted, st.word = 0, StateActive
		}
	}
}

// fits checks a record against those before it.
func (st *state) fits(b *brief) error {
	bad := func(format string, args ...any) error { return errdefs.New(errdefs.Invalid, format, args...) }
	switch {
	case b.Type == "session" && b.Format > libctx.LedgerFormat:
		return newerFormat{bad("ledger format %d is newer than this version, which knows %d", b.Format, libctx.LedgerFormat)}
	case b.Seq != st.seq+1:
		return bad("seq is %d, not %d", b.Seq, st.seq+1)
	case st.seq == 0 && b.Type != "session":
		return bad("the first record is of type %q, not session", b.Type)
	case st.seq > 0 && b.Type == "session":
		return bad("a second session record")
	case b.Type == "entry" && int(b.id) <= len(st.offs):
		return bad("entry e%d is there already", b.id)
	case b.Type == "entry" && int(b.id) != len(st.offs)+1:
		return bad("entry e%d comes before e%d", b.id, len(st.offs)+1)
	case b.Type == "entry" && int(b.parent) > len(st.offs):
		return bad("parent e%d of entry e%d is not there", b.parent, b.id)
	case b.Type == "head" && int(b.id) > len(st.offs):
		return bad("entry e%d is not there", b.id)
	}
	return nil
}

func (st *state) entry(b *brief, at int64) {
	link := b.parent
	if b.Kind == KindMessage {
		for _, p := range b.Content {
			if b.Role == RoleAssistant && p.Type == "text" {
				link |= linkText
			}
		}
		if b.Role == RoleTool {
			link |= linkTool
		}
		if b.Role == RoleUser && b.ClientID != "" && st.fold.find(b.Run) == nil {
			st.unstarted = b.id
		}
	}
	st.offs = append(st.offs, uint64(at))
	st.links = append(st.links, link)
	if b.parent == st.tip {
		st.tip = b.id
	}
}

func (st *state) start(b *brief, at int64) {
	f := &b.Frame
	if f.ClientID != "" {
		st.clients.add(f.ClientID, at)
	}
	if f.Workspace != "" {
		st.workspace = f.Workspace
	}
	if f.Op == "tsh" {
		return
	}
	st.turns++
	st.client = f.ClientID
	if f.Cwd != "" {
		st.cwd = f.Cwd
	}
	if f.Scope != "" {
		st.scope = f.Scope
	}
}

func endWord(outcome string) string {
	switch outcome {
	case Completed:
		return StateDone
	case Cancelled:
		return StateCancelled
	}
	return StateError
}

// Info is what the state says of the session.
func (st *state) info(name libctx.Session) Info {
	return Info{
		Session: name, State: st.word, Active: st.active(),
		Workspace: st.workspace, Cwd: st.cwd, Scope: st.scope,
		Created: parseTime(st.created), Updated: parseTime(st.updated),
		Turns: st.turns, Tokens: st.spent.tokens, Cost: st.spent.cost,
		TokensAtLeast: st.spent.uncertain, CostAtLeast: st.spent.uncertain || st.spent.unpriced,
		Records: st.seq, Bytes: st.size,
	}
}

// parseTime reads a ts; a ledger whose clock was odd still opens, so what can
// not be read is the zero time.
func parseTime(ts string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, ts)
	if err != nil {
		return time.Time{}
	}
	return t
}
