// Package mux is one terminal with many clients. What the program prints goes
// through the filter and from there, at once and in one order, to the recorder,
// to the clients and to the screen.
//
// The goroutine that reads the pseudo-terminal (Write) waits for no client, and
// nobody else waits for the disk. Frames are encoded once into a chain of blocks in which each
// client has a place; a client that falls libctx.MaxTermBacklog behind loses its
// place, is told that it lagged, and gets the screen and a new place once it
// reads again. So memory does not depend on how many clients there are or what
// they do. The screen is kept by a goroutine of its own, the painter. While nobody
// needs the screen it takes its time, libctx.TermLazy or as long as a flood goes on,
// so that of that it has to draw only the end; it is behind by libctx.MaxTermPending at most. Only then, and
// for the moment in which an emitter's lines are put between the program's, does
// the program wait.
//
// A client of the terminal's size, and one without a size, gets the program's
// bytes. A client of another size is drawn: it gets screens that fit it, one at a
// time, at least libctx.TermRedraw apart.
//
// The size of the terminal is that of the smallest attached client, in each
// direction. A watcher never counts, and while nobody is attached the size stays.
package mux

import (
	"sync"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/termwire"
)

// Screen is the emulated terminal. One goroutine at a time uses it.
type Screen interface {
	Write(program []byte)
	// Flood is Write for much at once.
	Flood(program []byte)
	Resize(termwire.Size)
	// Redraw is what makes a terminal of the view's size show the screen; one of
	// the screen's own size can then go on with what the program writes.
	Redraw(view termwire.Size) []byte
	// Replay is Redraw with lines of the scrollback before.
	Replay(view termwire.Size, lines int) []byte
	Alternate() bool
	// Above is what inserts lines above the one the cursor is in, on the main
	// screen.
	Above(text []byte) []byte
}

// Filter takes out of the program's output what no client may see.
type Filter interface {
	Append(dst, program []byte) []byte
	Ground() bool
}

// Recorder keeps what happens. Its methods but Wait do not wait, and are called
// in the order of the events.
type Recorder interface {
	// Wait returns when there is room for new output.
	Wait()
	Output(data []byte)
	Resize(termwire.Size)
	Exit(code int)
}

// Program is the other side of the terminal.
type Program interface {
	// Resize sets the size the program sees.
	Resize(termwire.Size) error
	// TryWrite types what can be typed without waiting.
	TryWrite([]byte) (int, error)
	// Write types and waits.
	Write([]byte) (int, error)
}

// Config of a Mux. Screen, Filter and Recorder are used by the Mux alone until
// Close; the caller closes them.
type Config struct {
	ID       string // of the terminal; may be empty
	Size     termwire.Size
	Program  Program
	Filter   Filter
	Recorder Recorder
	// Screen makes the screen; its answers to the program's questions go to
	// reply.
	Screen func(size termwire.Size, reply func([]byte)) Screen
}

// Mux is one terminal. Its methods may be called from any goroutine, Write from
// one.
type Mux struct {
	cfg    Config
	screen Screen // the painter's
	keys   *keys

	mu      sync.Mutex
	size    termwire.Size
	seq     uint64 // bytes of output that clients see, so far
	version uint64 // counts changes of the screen
	ground  bool   // the output so far ends between two sequences
	out     stream
	clients map[*Client]struct{}
	asleep  []*Client // their writers wait for the stream
	wanting []*Client // they wait for ground, to get a screen and a place
	pending batch     // what the screen has not seen
	drawn   int       // clients that are
	dozing  bool      // the painter is to be woken by the alarm
	dozed   int       // bytes that were pending when the alarm last rang
	alarm   *time.Timer
	emitted emitted
	ended   bool // there will be no more output
	over    bool // and all of it is on the screen: clients that have it get exit
	code    int

	room    sync.Cond     // signalled when the painter took what was pending, or held is over
	work    chan struct{} // one slot: there is something for the painter
	settled chan struct{} // closed by the painter when ended has reached the screen
	quit    chan struct{}
	running sync.WaitGroup

	filtered []byte // of Write
}

// New makes a Mux and starts its goroutines. The caller calls Close.
func New(cfg Config) *Mux {
	m := &Mux{
		cfg: cfg, size: cfg.Size, ground: true, out: newStream(), clients: map[*Client]struct{}{},
		work: make(chan struct{}, 1), settled: make(chan struct{}), quit: make(chan struct{}),
		keys: newKeys(cfg.Program),
	}
	m.room.L = &m.mu
	m.alarm = time.AfterFunc(libctx.TermLazy, m.ring)
	cfg.Recorder.Resize(cfg.Size)
	m.screen = cfg.Screen(cfg.Size, m.keys.reply)
	m.running.Go(m.keys.write)
	m.running.Go(m.paint)
	return m
}

// Write takes the next output of the program. It waits only for the painter.
func (m *Mux) Write(program []byte) (int, error) {
	m.cfg.Recorder.Wait()
	m.filtered = m.cfg.Filter.Append(m.filtered[:0], program)
	ground := m.cfg.Filter.Ground()
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.pending.program) > 0 && len(m.pending.program)+len(program) > libctx.MaxTermPending {
		m.room.Wait()
	}
	m.pending.program = append(m.pending.program, program...)
	m.ground = ground
	m.version++
	switch {
	case m.drawn > 0, len(m.emitted.text) > 0, len(m.pending.program) > libctx.MaxTermPending*7/8,
		len(m.filtered) != len(program): // there may be a question
		m.kick()
	case !m.dozing:
		m.dozing, m.dozed = true, 0
		m.alarm.Reset(libctx.TermLazy)
	}
	m.publish(m.filtered)
	if ground {
		m.serveWanting()
	}
	for m.emitted.held && m.ground {
		m.room.Wait()
	}
	return len(program), nil
}

// publish gives data to the clients and the recorder. Called with mu held.
func (m *Mux) publish(data []byte) {
	if len(data) == 0 {
		return
	}
	m.seq += uint64(len(data))
	m.cfg.Recorder.Output(data)
	m.grown(m.out.output(m.seq, data))
}

// grown is told after every change of the stream. Called with mu held.
func (m *Mux) grown(block bool) {
	if block {
		for c := range m.clients {
			c.checkBacklog()
		}
	}
	still, few := m.asleep[:0], maxDirect
	for _, c := range m.asleep {
		if few > 0 && c.handOver() {
			still, few = append(still, c), few-1
			continue
		}
		c.listed = false
		c.rouse()
	}
	clear(m.asleep[len(still):])
	m.asleep = still
}

// changed says that the screen is behind. Called with mu held.
func (m *Mux) changed() {
	m.version++
	m.kick()
}

// floodBytes in libctx.TermLazy are a flood.
const floodBytes = 256 << 10

// ring is called by the alarm. It lets the painter sleep on in a flood.
func (m *Mux) ring() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.pending.program); n-m.dozed > floodBytes && !m.ended {
		m.dozed = n
		m.alarm.Reset(libctx.TermLazy)
		return
	}
	m.kick()
}

// kick wakes the painter.
func (m *Mux) kick() {
	select {
	case m.work <- struct{}{}:
	default:
	}
}

// End says that there will be no more output and how the program ended. When it
// returns, everything is on the screen and recorded, and each client gets what
// it has not got yet and then the exit frame.
func (m *Mux) End(code int) {
	m.mu.Lock()
	m.ended, m.ground, m.code = true, true, code
	m.serveWanting()
	m.kick()
	m.mu.Unlock()
	<-m.settled
	m.cfg.Recorder.Exit(code)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
	for c := range m.clients {
		c.rouse()
	}
}

// Close ends the goroutines of the Mux. Clients that are left are ended. The
// caller has made the Program's Write fail.
func (m *Mux) Close() {
	m.mu.Lock()
	for c := range m.clients {
		c.gone = true
		c.rouse()
	}
	m.ended = true // emitters wait no more
	m.room.Broadcast()
	m.mu.Unlock()
	m.alarm.Stop()
	close(m.quit)
	m.keys.close()
	m.running.Wait()
}
