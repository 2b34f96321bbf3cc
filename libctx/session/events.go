package session

import (
	"bufio"
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"os"

	"cortexfs.org/libctx/errdefs"
)

// mendEvents makes the event log agree with the ledger. What an index vouches
// for is kept; the rest is derived and compared, and where the log differs or
// ends it is cut and written again.
func (s *Session) mendEvents(x *index) error {
	f := s.events.Load()
	now, err := statOf(int(f.Fd()))
	if err != nil {
		return err
	}
	var base state
	if x != nil && x.events.size <= now.size {
		same := x.events == now
		if !same {
			crc, err := checksum(f, x.events.size)
			if err != nil {
				return err
			}
			same = crc == x.eventsCRC
		}
		if same {
			base = state{seq: x.state.seq, size: x.state.size, fold: x.state.fold.clone()}
			s.eventsCRC = x.eventsCRC
			s.eventsEnd.Store(x.events.size)
		}
	}
	m := mender{f: f, old: bufio.NewReaderSize(io.NewSectionReader(f, s.eventsEnd.Load(), now.size-s.eventsEnd.Load()), 64<<10),
		end: s.eventsEnd.Load(), crc: s.eventsCRC}
	lines := newLineReader(s.ledger, base.size, s.st.size, base.seq+1)
	for {
		l, err := lines.read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errdefs.New(errdefs.IO, "read %s: %w", ledgerFile, err)
		}
		events, err := base.fold.Next(l.text)
		if err != nil {
			return damaged(l, err)
		}
		for _, e := range events {
			if err := m.put(e.Line); err != nil {
				return err
			}
		}
	}
	if err := m.finish(now.size); err != nil {
		return err
	}
	s.eventsEnd.Store(m.end)
	s.eventsCRC = m.crc
	return nil
}

// mender walks an event log beside the frames that it ought to hold. It changes
// the file at the first difference and not before.
type mender struct {
	f       *os.File
	old     *bufio.Reader // what the file holds behind end
	end     int64         // of what agrees or was written
	crc     uint32        // of the bytes before end
	buf     []byte        // written, not yet flushed
	writing bool
}

// put says that line comes next.
func (m *mender) put(line []byte) error {
	if !m.writing {
		have := make([]byte, len(line))
		if _, err := io.ReadFull(m.old, have); err != nil || !bytes.Equal(have, line) {
			if err := m.f.Truncate(m.end); err != nil {
				return errdefs.New(errdefs.KindOf(err), "%s: %w", eventsFile, err)
			}
			m.writing = true
		}
	}
	m.end += int64(len(line))
	m.crc = crc32.Update(m.crc, castagnoli, line)
	if !m.writing {
		return nil
	}
	m.buf = append(m.buf, line...)
	if len(m.buf) < 1<<20 {
		return nil
	}
	return m.flush()
}

func (m *mender) flush() error {
	_, err := m.f.Write(m.buf)
	m.buf = m.buf[:0]
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "write %s: %w", eventsFile, err)
	}
	return nil
}

// finish says that nothing comes next; size is what the file held at first.
func (m *mender) finish(size int64) error {
	if m.writing {
		return m.flush()
	}
	if size > m.end {
		if err := m.f.Truncate(m.end); err != nil {
			return errdefs.New(errdefs.KindOf(err), "%s: %w", eventsFile, err)
		}
	}
	return nil
}
