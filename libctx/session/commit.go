package session

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
)

// limits bound a ledger; tests make them small.
type limits struct {
	record, ledger, reserve int64 // bytes
	records, reserveRecords int64
}

var standard = limits{
	record: libctx.MaxRecord, ledger: libctx.MaxLedger, reserve: libctx.LedgerReserve,
	records: libctx.MaxLedgerRecords, reserveRecords: libctx.LedgerReserveRecords,
}

// Commit appends records that belong together: one write, one fdatasync, and
// only then does it return. It fills in their Meta and what their types say it
// fills in, and returns the durable frames they imply, in order.
//
// Records that break the rules of the ledger (a run that is not open, a result
// without a call, a second checkpoint, text that is not UTF-8) are
// errdefs.Invalid; a client id that was used before is errdefs.Exists; a
// ledger or record over its limits is errdefs.NoSpace. Nothing was written then
// and the Session stays usable; results, their usage and checkpoints of up to
// 8 KiB a batch still fit into a reserve, and accepted inputs into room of their own.
//
// When storage fails, the file is cut back to what it was and the Session is
// broken: this and every later call returns the cause (errdefs.NoSpace,
// errdefs.IO, errdefs.Busy if somebody else changed the file). Close it and
// open the session again.
func (s *Session) Commit(records ...Record) ([]Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	return s.commit(records)
}

func (s *Session) commit(records []Record) ([]Event, error) {
	if len(records) == 0 {
		return nil, nil
	}
	if s.st.seq == 0 {
		records = append([]Record{&SessionStart{Format: libctx.LedgerFormat, Agent: s.place.Agent, Session: s.name}}, records...)
	}
	m := s.st.mark()
	b, err := s.prepare(records)
	if err != nil {
		s.st.rollback(m)
		return nil, err
	}
	if err := s.write(b.bytes, m.light.size); err != nil {
		s.st.rollback(m)
		s.broken = s.place.at(s.name, err)
		return nil, s.broken
	}
	s.log(b.events)
	fault.Point("session.events.written")
	if b.started || b.ended || b.lone {
		s.project(b.ended)
		fault.Point("session.project.done")
	}
	if b.ended && s.st.size-s.stale.size >= libctx.IndexEvery {
		_ = s.writeIndex() // derived: the next opening reads more, that is all
	}
	return b.events, nil
}

// write makes the batch durable behind the ledger's first size bytes.
func (s *Session) write(batch []byte, size int64) error {
	if size == 0 {
		if err := s.create(); err != nil {
			return err
		}
	}
	return s.locks.exclusive(func() error {
		fi, err := s.ledger.Stat()
		if err != nil {
			return err
		}
		if sys, ok := fi.Sys().(*syscall.Stat_t); ok && sys.Nlink == 0 {
			return errdefs.New(errdefs.IO, "%s was removed while the session was open", ledgerFile)
		}
		if fi.Size() != size {
			return errdefs.New(errdefs.Busy, "%s was changed by somebody else: it holds %d bytes, not %d", ledgerFile, fi.Size(), size)
		}
		fault.Point("session.commit.begin")
		if err := appendAll(s.ledger, batch, size, fault.At("session.commit.write")); err != nil {
			return err
		}
		fault.Point("session.commit.written")
		err = fault.Fail("session.commit.sync")
		if err == nil {
			err = fdatasync(s.ledger)
		}
		if err != nil {
			return undo(s.ledger, size, errdefs.KindOf(err), "sync", err)
		}
		fault.Point("session.commit.synced")
		return nil
	})
}

// appendAll writes everything or nothing. Tests can make it fail at a named site.
func appendAll(f *os.File, b []byte, size int64, at fault.Site) error {
	n, err := fault.Write(at, f, b)
	switch {
	case err != nil:
		return undo(f, size, errdefs.KindOf(err), "append", err)
	case n < len(b):
		return undo(f, size, errdefs.NoSpace, "append", io.ErrShortWrite)
	}
	return nil
}

// undo gives a file its old length after a failure. If even that fails, the
// next Open cuts what is torn.
func undo(f *os.File, size int64, kind errdefs.Kind, what string, err error) error {
	if cut := f.Truncate(size); cut != nil {
		return errdefs.New(kind, "%s: %w (and not undone: %w)", what, err, cut)
	}
	return errdefs.New(kind, "%s: %w", what, err)
}

func fdatasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}

// create makes the directory and the files of a new session; all their entries
// are durable before it returns.
func (s *Session) create() error {
	return s.place.make(s.place.rel(s.name), func(d *atomicfile.Dir) (err error) {
		if s.ledger == nil {
			if s.ledger, _, err = d.OpenAppend(ledgerFile, filePerm); err != nil {
				return err
			}
		}
		if s.events.Load() != nil {
			return nil
		}
		events, _, err := d.OpenAppend(eventsFile, filePerm)
		if err != nil {
			return err
		}
		s.events.Store(events)
		fault.Point("session.created")
		return events.Truncate(0) // an event log without a ledger is nobody's
	})
}

// log appends events to the event log. The ledger has them, so a failure takes
// nothing back; but what follows could not be replayed in order, so the Session
// ends with this commit and the next Open mends the log.
func (s *Session) log(events []Event) {
	var b []byte
	for _, e := range events {
		b = append(b, e.Line...)
	}
	if len(b) == 0 {
		return
	}
	end := s.eventsEnd.Load()
	if err := appendAll(s.events.Load(), b, end, fault.At("session.events.write")); err != nil {
		s.broken = s.place.at(s.name, fmt.Errorf("%s: %w", eventsFile, err))
		return
	}
	s.eventsCRC = update(s.eventsCRC, b)
	s.eventsEnd.Store(end + int64(len(b)))
}

// Room says whether a new run may begin: errdefs.NoSpace, with a way out, when
// the ledger has come to its reserve.
func (s *Session) Room() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.room()
}

// room checks that the reserve is whole.
func (s *Session) room() error {
	l := s.limits
	bytes, records := s.st.fold.owed()
	switch {
	case s.st.size+bytes > l.ledger-l.reserve:
		return s.full("%d bytes", l.ledger)
	case s.st.seq+records > l.records-l.reserveRecords:
		return s.full("%d records", l.records)
	}
	return nil
}

func (s *Session) full(what string, n int64) error {
	// Hints do not travel over a socket, so the way out is part of the message.
	return errdefs.New(errdefs.NoSpace, "session %s is full: its ledger is at the limit of %s; go on in another session",
		s.name, fmt.Sprintf(what, n))
}
