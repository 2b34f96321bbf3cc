// Package journal writes down what happens in a terminal, in the event files of
// its resource directory (docs/reference/terminal.md).
//
// Events are handed over in memory and written by a goroutine, which gathers
// output for libctx.TermEventGather into records of at most
// libctx.MaxTermRecord, syncs every libctx.TermEventSync, and rotates the files.
// Handing over never waits, so it can be done under a lock that clients need.
// Who brings new output calls Wait before: it returns when less than
// libctx.MaxTermUnwritten is waiting for the disk. So a slow disk slows the
// program down, and no client.
//
// A disk that fails ends the recording, once and for good, and nothing else.
package journal

import (
	"math"
	"os"
	"sync"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/termwire"
	"github.com/go-json-experiment/json/jsontext"
)

// Journal is the record of one terminal. Its methods may be called from any
// goroutine; events are numbered in the order in which they were handed over.
type Journal struct {
	store  *store        // the writer's
	failed func(error)   // called once
	ended  chan struct{} // closed when the writer is
	work   chan struct{} // one slot: there is a first event, or Close
	full   chan struct{} // one slot: there is enough to write, or Close
	spare  batch         // the writer's
	lines  []byte        // the writer's
	dirty  time.Time     // the writer's: since when something is not synced

	mu      sync.Mutex
	room    sync.Cond // the writer has taken what waited, or has ended
	waiting batch
	closing bool
	err     error // why recording has ended
}

// batch is a number of events; their output stands in data, one after another.
type batch struct {
	events []event
	data   []byte
}

// event is an event whose Data is data[from:to] of its batch.
type event struct {
	terminal.Event
	from, to int
}

// Open opens the event files in a resource directory for writing at their end;
// an unfinished last line, of a process that died, is cut off, and numbers go on
// after the last event. The directory is used by its descriptor alone, and stays
// the caller's. If recording ends because the disk fails, failed is called, once
// and from another goroutine. Errors are errdefs.Denied if something in the
// place of an event file is not a regular file of this user, else by their cause.
// The caller calls Close.
func Open(dir *os.File, failed func(error)) (*Journal, error) {
	return open(dir, libctx.TermEventFile, libctx.TermEventFiles, failed)
}

func open(dir *os.File, fileBytes int64, files int, failed func(error)) (*Journal, error) {
	s, err := openStore(dir, fileBytes, files)
	if err != nil {
		return nil, err
	}
	return start(s, failed), nil
}

func start(s *store, failed func(error)) *Journal {
	j := &Journal{
		store: s, failed: failed, ended: make(chan struct{}),
		work: make(chan struct{}, 1), full: make(chan struct{}, 1),
	}
	j.room.L = &j.mu
	go j.write()
	return j
}

// Output records what clients were given to show. It copies data and does not
// wait.
func (j *Journal) Output(data []byte) {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over() {
		return
	}
	b := &j.waiting
	for len(data) > 0 {
		last := len(b.events) - 1
		if last < 0 || b.events[last].Type != terminal.EventOutput || b.events[last].to-b.events[last].from == libctx.MaxTermRecord ||
			now.Sub(b.events[last].Time) > libctx.TermEventGather {
			j.add(event{terminal.Event{Time: now, Type: terminal.EventOutput}, len(b.data), len(b.data)})
			last++
		}
		e := &b.events[last]
		n := min(len(data), libctx.MaxTermRecord-(e.to-e.from))
		b.data = append(b.data, data[:n]...)
		e.to += n
		data = data[n:]
	}
	if len(b.data) >= libctx.MaxTermRecord {
		signal(j.full)
	}
}

// Resize records a new size of the terminal.
func (j *Journal) Resize(size termwire.Size) {
	j.one(terminal.Event{Type: terminal.EventResize, Size: size})
}

// Exit records how the program ended.
func (j *Journal) Exit(code int) {
	j.one(terminal.Event{Type: terminal.EventExit, ExitCode: code})
}

// Policy records a decision of the tool shell, a JSON object without the members
// seq, ts and type. One that is none is errdefs.Invalid, a longer one than an
// event can be errdefs.TooBig.
func (j *Journal) Policy(decision jsontext.Value) error {
	e := terminal.Event{Seq: math.MaxUint64, Type: terminal.EventPolicy, Rest: decision.Clone()}
	if _, err := e.Append(nil); err != nil {
		return err
	}
	j.one(e)
	return nil
}

func (j *Journal) one(e terminal.Event) {
	e.Time = time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.over() {
		j.add(event{Event: e})
	}
}

// add hands an event over. Called with mu held.
func (j *Journal) add(e event) {
	if j.waiting.events = append(j.waiting.events, e); len(j.waiting.events) == 1 {
		signal(j.work)
	}
	if len(j.waiting.events) == maxEvents {
		signal(j.full)
	}
}

// maxEvents is how many events are gathered; more wait for no more output.
const maxEvents = 4096

// over reports whether nothing is recorded any more. Called with mu held.
func (j *Journal) over() bool { return j.closing || j.err != nil }

// Wait returns when the disk has caught up, or recording has ended.
func (j *Journal) Wait() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for !j.over() && (len(j.waiting.data) >= libctx.MaxTermUnwritten || len(j.waiting.events) >= maxEvents) {
		j.room.Wait()
	}
}

// Close writes what is waiting and returns when it is durable, with the error
// that ended recording if one did. What is handed over later is dropped.
func (j *Journal) Close() error {
	j.mu.Lock()
	j.closing = true
	j.room.Broadcast()
	signal(j.work)
	signal(j.full)
	j.mu.Unlock()
	<-j.ended
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

func signal(slot chan struct{}) {
	select {
	case slot <- struct{}{}:
	default:
	}
}
