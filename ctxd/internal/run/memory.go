package run

import (
	"bytes"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// memory is the ledger of a session of scope temp: the same records and the same
// frames as a durable one, kept in memory and gone with its connection.
type memory struct {
	mu      sync.Mutex
	name    libctx.Session
	seq     int64
	bytes   int // of all records
	fold    session.Fold
	entries []session.Entry // one branch: nothing moves the head of a temp session
	clients map[libctx.ClientID]memoryRun
	inputs  map[libctx.ClientID]int // those that wait, and the room kept for each
	owed    int                     // all of that room, in bytes
	used    map[libctx.Run]used
	events  []byte // lines, as a durable session's events.jsonl
	info    session.Info
}

// used is what a run has used so far.
type used struct {
	session.Tokens
	cost                int64
	uncertain, unpriced bool
}

type memoryRun struct {
	run     libctx.Run
	payload string
}

func newMemory(name libctx.Session) *memory {
	return &memory{
		name: name, clients: map[libctx.ClientID]memoryRun{}, inputs: map[libctx.ClientID]int{}, used: map[libctx.Run]used{},
		info: session.Info{Session: name, State: session.StateIdle},
	}
}

// Commit keeps all of the records or none. Too much is errdefs.NoSpace; short
// records, which end what was begun, may use a reserve, and accepted inputs have
// room of their own.
func (m *memory) Commit(records ...session.Record) ([]session.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.mark()
	var all []session.Event
	for _, r := range records {
		events, err := m.add(r)
		if err != nil {
			m.rollback(was)
			return nil, err
		}
		all = append(all, events...)
	}
	if m.bytes+m.owed > libctx.MaxTempSession {
		m.rollback(was)
		return nil, m.full()
	}
	for _, r := range records {
		m.remember(r)
	}
	return all, nil
}

// add keeps one record.
func (m *memory) add(r session.Record) ([]session.Event, error) {
	line, err := m.encode(r)
	if err != nil {
		return nil, err
	}
	owed := m.owed
	switch due := m.owe(r, len(line)); {
	case due:
	case m.owed == owed && len(line) <= maxShort: // ends something, or is small enough not to matter
	case m.room(len(line)) != nil:
		return nil, m.full()
	}
	events, err := m.fold.Next(line)
	if err != nil {
		return nil, err
	}
	if e, ok := r.(*session.Entry); ok {
		m.entries = append(m.entries, *e)
	}
	m.seq, m.bytes = m.seq+1, m.bytes+len(line)
	for _, e := range events {
		m.events = append(m.events, e.Line...)
	}
	return events, nil
}

// owe keeps room for the delivery of an input from its acceptance on. It reports
// whether the record is one that room was kept for.
func (m *memory) owe(r session.Record, size int) (due bool) {
	switch r := r.(type) {
	case *session.Entry:
		return r.Origin != ""
	case *session.Fact:
		switch f := r.Frame.(type) {
		case *wire.Accepted:
			owed := 2*size + 1024 // its entry, and the fact that it is delivered
			m.inputs[f.ClientID], m.owed = owed, m.owed+owed
		case *wire.Delivered:
			m.owed -= m.inputs[f.ClientID]
			delete(m.inputs, f.ClientID)
			return true
		}
	}
	return false
}

// memoryMark is a state that a refused batch goes back to.
type memoryMark struct {
	seq             int64
	bytes, owed     int
	entries, events int
	fold            session.Fold
	inputs          map[libctx.ClientID]int
	used            map[libctx.Run]used
}

func (m *memory) mark() memoryMark {
	return memoryMark{
		seq: m.seq, bytes: m.bytes, owed: m.owed, entries: len(m.entries), events: len(m.events), fold: m.fold.Clone(),
		inputs: maps.Clone(m.inputs), used: maps.Clone(m.used),
	}
}

func (m *memory) rollback(to memoryMark) {
	m.seq, m.bytes, m.owed, m.fold = to.seq, to.bytes, to.owed, to.fold
	m.entries, m.events = m.entries[:to.entries], m.events[:to.events]
	m.inputs, m.used = to.inputs, to.used
}

// encode fills in what Commit of a durable session fills in.
func (m *memory) encode(r session.Record) ([]byte, error) {
	h := r.Header()
	h.Seq, h.TS = m.seq+1, time.Now().UTC().Format(time.RFC3339)
	switch r := r.(type) {
	case *session.Entry:
		h.Type = "entry"
		r.ID, r.Parent = m.nextID(), m.tip()
	case *session.Head:
		h.Type = "head"
	case *session.Fact:
		h.Type = "fact"
	case *session.Usage:
		h.Type = "usage"
		m.use(r)
	case *session.UsageUncertain:
		h.Type = "usage_uncertain"
		u := m.used[r.Run]
		u.uncertain = true
		m.used[r.Run] = u
	case *session.Checkpoint:
		h.Type = "checkpoint"
		u := m.used[r.Run]
		r.Usage, r.Cost, r.TokensAtLeast, r.CostAtLeast = u.Tokens, u.cost, u.uncertain, u.uncertain || u.unpriced
		delete(m.used, r.Run)
	}
	line, err := json.Marshal(r, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "record: %w", err)
	}
	return append(line, '\n'), nil
}

// use adds to what a run has used.
func (m *memory) use(r *session.Usage) {
	u := m.used[r.Run]
	u.Input, u.CacheRead, u.CacheWrite, u.Output = u.Input+r.Input, u.CacheRead+r.CacheRead, u.CacheWrite+r.CacheWrite, u.Output+r.Output
	if u.unpriced = u.unpriced || r.Cost == nil; r.Cost != nil {
		u.cost += *r.Cost
	}
	m.used[r.Run] = u
}

// remember notes what a kept record says of the session.
func (m *memory) remember(r session.Record) {
	switch r := r.(type) {
	case *session.Fact:
		switch f := r.Frame.(type) {
		case *wire.Start:
			m.clients[f.ClientID] = memoryRun{r.Run, r.Payload}
			m.info.Workspace, m.info.Cwd, m.info.State = f.Workspace, f.Cwd, session.StateActive
		case *wire.Accepted:
			m.clients[f.ClientID] = memoryRun{r.Run, r.Payload}
		}
	case *session.Checkpoint:
		switch r.Outcome {
		case session.Completed:
			m.info.State = session.StateDone
		case session.Cancelled:
			m.info.State = session.StateCancelled
		default:
			m.info.State = session.StateError
		}
	}
}

func (m *memory) Client(id libctx.ClientID) (libctx.Run, string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.clients[id]
	return r.run, r.payload, ok, nil
}

func (m *memory) FindRun(run libctx.Run) (int64, error) {
	return m.find(func(h wire.Head) bool { return h.Run == run }, false)
}

func (m *memory) FindEvent(after libctx.Event) (int64, error) {
	return m.find(func(h wire.Head) bool { return h.ID == after }, true)
}

// find is the offset of the first event that fits, or just behind it.
func (m *memory) find(fits func(wire.Head) bool, behind bool) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	offset := 0
	for line := range bytes.Lines(m.events) {
		var h wire.Head
		if err := wire.Object(line, &h); err != nil {
			return 0, err
		}
		if fits(h) {
			if behind {
				offset += len(line)
			}
			return int64(offset), nil
		}
		offset += len(line)
	}
	return 0, errdefs.New(errdefs.NotFound, "no such event or run in session %s", m.name)
}

func (m *memory) ReadEvents(offset int64, max int) ([][]byte, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines [][]byte
	for line := range bytes.Lines(m.events[offset:]) {
		lines = append(lines, bytes.Clone(line))
		offset += int64(len(line))
		if max -= len(line); max <= 0 {
			break
		}
	}
	return lines, offset, nil
}

func (m *memory) EventsEnd() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(len(m.events))
}

// Conversation is everything there is: the whole session is bounded.
func (m *memory) Conversation(int) ([]session.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]session.Entry(nil), m.entries...), nil
}

// Carried is nothing: the session ends with its host.
func (m *memory) Carried() ([]session.OpenCall, error) { return nil, nil }

func (m *memory) Tip() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tip()
}

func (m *memory) tip() string {
	if len(m.entries) == 0 {
		return ""
	}
	return m.entries[len(m.entries)-1].ID
}

func (m *memory) NextEntryID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nextID()
}

func (m *memory) nextID() string { return "e" + strconv.Itoa(len(m.entries)+1) }

func (m *memory) Info() session.Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.info
}

// Room is always there: Commit says when there is none.
func (m *memory) Room() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.room(0)
}

// maxShort is how long a record may be that goes into the reserve.
const maxShort = 8 << 10

// room says whether n bytes leave the reserve whole.
func (m *memory) room(n int) error {
	if m.bytes+m.owed+n > libctx.MaxTempSession-libctx.LedgerReserve {
		return m.full()
	}
	return nil
}

func (m *memory) full() error {
	return errdefs.New(errdefs.NoSpace, "a session of scope temp holds at most %d bytes; go on in another session", libctx.MaxTempSession)
}

// Broken is never: memory does not fail.
func (m *memory) Broken() error { return nil }

func (m *memory) Close() error { return nil }
