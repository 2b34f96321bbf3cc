package session

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"

	"cortexfs.org/libctx/errdefs"
)

// eventLog is an event log beside the ledger it belongs to, while a session is
// opened. What an index vouches for is kept; the rest is derived and compared,
// and where the log differs or ends it is cut and written again. While the
// ledger is still being read for the first time nothing is changed.
type eventLog struct {
	f    *os.File
	size int64         // of the file
	base *state        // of the ledger where the comparison begins
	old  *bufio.Reader // what the file holds behind end
	end  int64         // of what agrees or was written
	crc  uint32        // of the bytes before end

	differs bool   // the file is not what it ought to be behind end
	writing bool   // the file was cut at end
	buf     []byte // written, not yet flushed

	first struct { // end and crc where the comparison began
		end int64
		crc uint32
	}
	behind bool // the ledger is scanned from a later place than base
}

// openLog finds where the comparison has to begin: at the end of what the index
// knows, or at the first record.
func (s *Session) openLog(x *index) (*eventLog, error) {
	g := &eventLog{f: s.events.Load(), base: newState(), behind: x != nil}
	now, err := statOf(int(g.f.Fd()))
	if err != nil {
		return nil, errdefs.New(errdefs.IO, "stat %s: %w", eventsFile, err)
	}
	g.size = now.size
	if x != nil && x.events.size <= now.size {
		same := x.events == now
		if !same {
			crc, err := checksum(g.f, x.events.size)
			if err != nil {
				return nil, err
			}
			same = crc == x.eventsCRC
		}
		if same {
			g.base, g.behind = x.state.prefix(), false
			g.end, g.crc = x.events.size, x.eventsCRC
		}
	}
	g.first.end, g.first.crc = g.end, g.crc
	g.rewind()
	return g, nil
}

// rewind goes back to where the comparison began.
func (g *eventLog) rewind() {
	g.end, g.crc, g.differs = g.first.end, g.first.crc, false
	g.old = bufio.NewReaderSize(io.NewSectionReader(g.f, g.end, g.size-g.end), 64<<10)
}

// watch compares the log while the ledger is scanned into st; nil if the scan
// begins behind the place where the comparison has to.
func (g *eventLog) watch(st *state) func([]byte, *brief) error {
	if g.behind {
		g.differs = true
		return nil
	}
	return func(text []byte, b *brief) error {
		if g.differs {
			return nil
		}
		events, err := st.fold.frames(text, b)
		if err != nil {
			return err
		}
		for _, e := range events {
			if !g.agrees(e.Line) {
				g.differs = true
				return nil
			}
		}
		return nil
	}
}

// agrees reads the next line of the log, and reports whether it is this one.
func (g *eventLog) agrees(line []byte) bool {
	have := make([]byte, len(line))
	if _, err := io.ReadFull(g.old, have); err != nil || !bytes.Equal(have, line) {
		return false
	}
	g.end += int64(len(line))
	g.crc = update(g.crc, line)
	return true
}

// mend makes the log what the first size bytes of the ledger, which have been
// scanned, say it is.
func (g *eventLog) mend(ledger *os.File, size int64) error {
	if !g.differs {
		if g.size > g.end {
			return g.cut()
		}
		return nil
	}
	g.rewind()
	lines := newLineReader(ledger, g.base.size, size, g.base.seq+1)
	for {
		l, err := lines.read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errdefs.New(errdefs.IO, "read %s: %w", ledgerFile, err)
		}
		events, err := g.base.fold.Next(l.text)
		if err != nil {
			return damaged(l, err)
		}
		for _, e := range events {
			if err := g.put(e.Line); err != nil {
				return err
			}
		}
	}
	if !g.writing && g.size > g.end {
		return g.cut()
	}
	return g.flush()
}

// put says that line comes next, and writes it if it is not there.
func (g *eventLog) put(line []byte) error {
	if !g.writing && g.agrees(line) {
		return nil
	}
	if !g.writing {
		if err := g.cut(); err != nil {
			return err
		}
		g.writing = true
	}
	g.end += int64(len(line))
	g.crc = update(g.crc, line)
	if g.buf = append(g.buf, line...); len(g.buf) < 1<<20 {
		return nil
	}
	return g.flush()
}

// cut takes away what is behind end.
func (g *eventLog) cut() error {
	if err := g.f.Truncate(g.end); err != nil {
		return errdefs.New(errdefs.KindOf(err), "%s: %w", eventsFile, err)
	}
	return nil
}

func (g *eventLog) flush() error {
	if len(g.buf) == 0 {
		return nil
	}
	_, err := g.f.Write(g.buf)
	g.buf = g.buf[:0]
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "write %s: %w", eventsFile, err)
	}
	return nil
}
