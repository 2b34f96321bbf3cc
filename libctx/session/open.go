package session

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
)

// Session is a session open for writing; it owns its lock until Close. Its
// methods may be called from any goroutine.
type Session struct {
	place  Place
	name   libctx.Session
	limits limits
	now    func() time.Time

	mu      sync.Mutex
	locks   *locks
	ledger  *os.File // nil until the first Commit of a new session
	st      *state
	stale   fileStat // of the ledger when the index was written
	shown   projected
	recent  branch // what Conversation read last
	how     Recovery
	settled []SettledCall
	broken  error
	closed  bool

	events    atomic.Pointer[os.File] // nil like ledger
	eventsEnd atomic.Int64
	eventsCRC uint32 // under mu
}

// Open opens a session for writing. There is one owner at a time: while another
// has it, in this process or any other, the error is errdefs.Busy.
//
// A new session leaves nothing in the tree before its first Commit. In one that
// exists a last line without its end is cut off, runs that a dead host left open
// are settled (see Settled), and the event log is made to agree with the ledger.
// Nothing is changed when Open refuses: errdefs.IO names the file and line of
// damage (*Damage), errdefs.Invalid a ledger of a newer version,
// errdefs.NoSpace one over its limits.
//
// The caller closes the Session.
func (p Place) Open(name libctx.Session) (*Session, error) { return p.Recover(name, Recovery{}) }

// Recovery is what the opener of a session knows of the runs that it finds open.
type Recovery struct {
	// Ended is how some of them ended.
	Ended []Ended
	// Replayable reports whether a call may be executed a second time: it is asked
	// about the calls of model agents that have no result. One that may is carried
	// on instead of settled (see Carried), once. It is called while the session is
	// opened, and does not touch it.
	Replayable func(OpenCall) bool
}

// Recover is Open for a host that goes on with what a dead one left.
func (p Place) Recover(name libctx.Session, how Recovery) (*Session, error) {
	if err := p.check(name); err != nil {
		return nil, err
	}
	locks, err := p.lock(name)
	if err != nil {
		return nil, err
	}
	s := &Session{place: p, name: name, limits: standard, now: now, locks: locks, st: newState(), how: how}
	if err := s.load(); err != nil {
		s.release()
		return nil, p.at(name, err)
	}
	if s.broken != nil { // what was settled is durable, but not in the log: the next Open mends it
		s.release()
		return nil, s.broken
	}
	return s, nil
}

func now() time.Time { return fault.Now() }

// load brings a session that exists into memory and into order.
func (s *Session) load() error {
	var x *index
	var events *os.File
	err := s.place.in(s.place.rel(s.name), func(d *atomicfile.Dir) (err error) {
		if s.ledger, err = openExisting(d, ledgerFile); err != nil {
			return err
		}
		x = readIndex(d)
		events, _, err = d.OpenAppend(eventsFile, filePerm)
		return err
	})
	if events != nil {
		s.events.Store(events)
	}
	if errdefs.Is(err, errdefs.NotFound) && s.ledger == nil {
		return nil
	}
	if err != nil {
		return err
	}
	fi, err := s.ledger.Stat()
	if err != nil {
		return err
	}
	if fi.Size() > s.limits.ledger+s.limits.record {
		return errdefs.New(errdefs.NoSpace, "%s holds %d bytes, the limit is %d", ledgerFile, fi.Size(), s.limits.ledger)
	}
	end, err := lastLineEnd(s.ledger, fi.Size())
	if err != nil {
		return err
	}
	if x, err = trusted(s.ledger, end, x); err != nil {
		return err
	}
	if x != nil {
		s.stale = x.ledger
	}
	log, err := s.openLog(x)
	if err != nil {
		return err
	}
	st := x.begin()
	if err := scan(s.ledger, st, end, log.watch(st)); err != nil {
		return err
	}
	if end < fi.Size() {
		if err := s.locks.exclusive(func() error { return cut(s.ledger, end) }); err != nil {
			return err
		}
		fault.Point("session.open.cut")
	}
	s.st = st
	if err := log.mend(s.ledger, st.size); err != nil {
		return err
	}
	fault.Point("session.open.mended")
	s.eventsCRC = log.crc
	s.eventsEnd.Store(log.end)
	s.sweep()
	return s.settle()
}

// sweep removes half-written projections of a dead owner. We own the session,
// so nobody else replaces files in it.
func (s *Session) sweep() {
	s.place.in(s.place.rel(s.name), func(d *atomicfile.Dir) error {
		d.Sweep()
		if context, err := d.Sub("context"); err == nil {
			context.Sweep()
			context.Close()
		}
		return nil
	})
}

// cut shortens a file durably.
func cut(f *os.File, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	return fdatasync(f)
}

// release closes what the session holds. The caller has mu, or is alone.
func (s *Session) release() {
	s.closed = true
	if s.ledger != nil {
		s.ledger.Close()
	}
	if f := s.events.Load(); f != nil {
		f.Close()
	}
	s.locks.close()
}

// Close writes the index and gives the session up. It is safe to call it twice.
// A Session that is broken closes the same way, without the index.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	var err error
	if s.broken == nil {
		err = s.writeIndex()
	}
	s.release()
	return err
}

// Broken is why nothing can be committed any more, nil while something can: a
// batch that was refused for what is in it leaves the Session as it was.
func (s *Session) Broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usable()
}

// usable is the error of every call after one that failed.
func (s *Session) usable() error {
	switch {
	case s.closed:
		return errdefs.New(errdefs.Unavailable, "session %s is closed", s.name)
	case s.broken != nil:
		return s.broken
	}
	return nil
}

// Tip is the entry at the end of the active branch, "" if the branch is empty.
func (s *Session) Tip() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return entryID(s.st.tip)
}

// NextEntryID is the id that the next entry has to have.
func (s *Session) NextEntryID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return entryID(uint32(len(s.st.offs)) + 1)
}

// Info describes the session.
func (s *Session) Info() Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.st.info(s.name)
}

// Settled lists the calls that Open gave an indeterminate result, in order.
func (s *Session) Settled() []SettledCall { return s.settled }

// Client finds the run that a client id started or was accepted into, and the
// payload digest committed beside that frame. Damage found on the way is errdefs.IO.
func (s *Session) Client(id libctx.ClientID) (run libctx.Run, payload string, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return "", "", false, err
	}
	return s.client(id, s.st.size)
}

// client looks the id up in the first end bytes of the ledger.
func (s *Session) client(id libctx.ClientID, end int64) (libctx.Run, string, bool, error) {
	for _, off := range s.st.clients.find(id) {
		if off >= end {
			continue
		}
		text, err := lineAt(s.ledger, off, end, libctx.MaxRecord)
		var b *brief
		if err == nil {
			b, err = decodeBrief(text)
		}
		if err != nil {
			return "", "", false, errdefs.New(errdefs.IO, "%s at offset %d: %w", ledgerFile, off, err)
		}
		if (b.starts() || b.accepts()) && b.Frame.ClientID == id {
			return b.Run, b.Payload, true, nil
		}
	}
	return "", "", false, nil
}
