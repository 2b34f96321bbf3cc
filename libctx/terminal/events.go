package terminal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// EventFile is the name of an event file: 0 is the newest, which is appended to;
// rotation renames n to n+1, from the oldest on, and drops what passes
// libctx.TermEventFiles.
func EventFile(n int) string {
	if n == 0 {
		return "events.jsonl"
	}
	return "events." + strconv.Itoa(n) + ".jsonl"
}

// Damage is a line of an event file that can not be read. It is errdefs.IO.
type Damage struct {
	File string
	Line int // from 1
	Why  error
}

func (d *Damage) Error() string { return fmt.Sprintf("%s: line %d: %v", d.File, d.Line, d.Why) }
func (d *Damage) Unwrap() error { return d.Why }

// Events reads what was recorded of a terminal, oldest first, from all its event
// files, as they were when it was opened and while they grow. It changes
// nothing, takes bounded memory and is for one goroutine.
type Events struct {
	files []*os.File // oldest first
	names []string
	lines *wire.Lines // of files[0]
	line  int
	last  uint64
}

// Events opens the event files; a terminal that never recorded anything has
// none. The caller closes the result.
func (p Place) Events() (*Events, error) {
	var e *Events
	err := p.within(func(d *atomicfile.Dir) (err error) {
		e, err = OpenEvents(d)
		return err
	})
	return e, err
}

// OpenEvents is Place.Events in an open resource directory.
func OpenEvents(d *atomicfile.Dir) (*Events, error) {
	for range openTries {
		e, err := openEvents(d)
		if err != nil || e.newest(d) {
			return e, err
		}
		e.Close()
	}
	return openEvents(d)
}

// openTries is how often the files are opened again because one was rotated
// meanwhile: two rotations would put one file before an older one.
const openTries = 8

// newest reports whether the file that was opened first still is the newest.
func (e *Events) newest(d *atomicfile.Dir) bool {
	f, err := d.Open(EventFile(0))
	if err != nil {
		return len(e.files) == 0 || e.names[len(e.names)-1] != EventFile(0)
	}
	defer f.Close()
	return len(e.files) > 0 && same(f, e.files[len(e.files)-1])
}

func openEvents(d *atomicfile.Dir) (*Events, error) {
	e := &Events{}
	// Newest first: a rotation meanwhile shows a file twice, and hides none.
	for n := range libctx.TermEventFiles {
		f, err := d.Open(EventFile(n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			e.Close()
			return nil, err
		}
		if len(e.files) > 0 && same(f, e.files[0]) {
			f.Close()
			continue
		}
		e.files = append([]*os.File{f}, e.files...)
		e.names = append([]string{EventFile(n)}, e.names...)
	}
	return e, nil
}

// Close closes the files.
func (e *Events) Close() error {
	for _, f := range e.files {
		f.Close()
	}
	e.files = nil
	return nil
}

// Next is the next event, or io.EOF. A line that can not be read, or does not
// come after the one before, is a *Damage; Next goes on behind it. The last line
// of a file may be torn, by a process that died or is just writing it: that is
// no damage.
func (e *Events) Next() (Event, error) {
	for len(e.files) > 0 {
		if e.lines == nil {
			e.lines, e.line = wire.NewLines(e.files[0], libctx.MaxTermEvent), 0
		}
		text, err := e.lines.Next()
		e.line++
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, wire.ErrTorn):
			e.skip()
			continue
		case err != nil: // the rest of this file can not be told into lines
			damage := e.damage(err)
			e.skip()
			return Event{}, damage
		}
		event, err := ParseEvent(text)
		if err != nil {
			return Event{}, e.damage(err)
		}
		if event.Seq <= e.last {
			return Event{}, e.damage(fmt.Errorf("event %d after event %d", event.Seq, e.last))
		}
		e.last = event.Seq
		return event, nil
	}
	return Event{}, io.EOF
}

func (e *Events) damage(why error) error {
	return errdefs.New(errdefs.IO, "%w", &Damage{File: e.names[0], Line: e.line, Why: why})
}

// skip goes on to the next file.
func (e *Events) skip() {
	e.files[0].Close()
	e.files, e.names, e.lines = e.files[1:], e.names[1:], nil
}
