package run

import (
	"context"
	"slices"
	"sync"
	"time"

	"cortexfs.org/ctxd/internal/approval"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/wire"
)

// idleSessions is how many sessions without work stay open, so that the next
// request to one costs no opening.
const idleSessions = 8

// Client is one connection as runs see it.
type Client interface {
	// Push takes a line if there is room and never waits.
	Push(line []byte) bool
	// Note takes a short line whatever waits already.
	Note(line []byte)
	// Write waits for room.
	Write(ctx context.Context, line []byte) error
	// Gone ends when the client is no longer there.
	Gone() context.Context
	// Hold keeps the connection open for one stream of frames until release.
	Hold() (release func(), err error)
	// Asked is the questions that are to be answered over the connection.
	Asked() *approval.Board
}

// Config of a Hub.
type Config struct {
	Agent  libctx.Agent
	Place  session.Place
	Worker Worker
	Log    *log.Logger
	// Approval is how long an answer to a question is waited for; 0, or more than
	// that: libctx.ApprovalTimeout.
	Approval time.Duration
	// Show, if set, says who beside clients is told of the frames of a run of a
	// durable session. Push of it never waits.
	Show func(libctx.Session) Shower
}

// Shower is told of the frames of one run, and of its end.
type Shower interface {
	Push(line []byte) bool
	Close()
}

// Hub is everything alive in one agent. Make it with New, end it with Shutdown.
type Hub struct {
	cfg   Config
	quiet chan struct{} // one slot: work ended

	mu      sync.Mutex
	closing bool
	lives   map[libctx.Session]*Live
	idle    []*Live           // lives without work, least recently used first
	temps   map[tempKey]*Live // sessions that live with a connection
	busy    int               // runs, waiting ones included

	runs      sync.WaitGroup
	followers sync.WaitGroup
	over      context.Context // ends followers once every run has settled
	end       context.CancelFunc
}

type tempKey struct {
	client  Client
	session libctx.Session
}

// New makes a hub without any open session.
func New(cfg Config) *Hub {
	over, end := context.WithCancel(context.Background())
	return &Hub{
		over:  over,
		end:   end,
		cfg:   cfg,
		quiet: make(chan struct{}, 1),
		lives: map[libctx.Session]*Live{},
		temps: map[tempKey]*Live{},
	}
}

// Quiet is signalled when a run ended, perhaps the last one.
func (h *Hub) Quiet() <-chan struct{} { return h.quiet }

// Busy reports whether any run is active or waiting.
func (h *Hub) Busy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.busy > 0
}

// acquire finds or makes the live form of a durable session; release it.
func (h *Hub) acquire(name libctx.Session) (*Live, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, errEnding
	}
	return h.lived(name), nil
}

// lived is acquire with mu held, in a hub that may be closing.
func (h *Hub) lived(name libctx.Session) *Live {
	l := h.lives[name]
	if l == nil {
		l = newLive(h, name, func(ended []session.Ended) (ledger, error) {
			return h.cfg.Place.Recover(name, session.Recovery{
				Ended:      ended,
				Replayable: func(c session.OpenCall) bool { return h.cfg.Worker.Replayable(name, c) },
			})
		})
		h.lives[name] = l
	}
	h.idle = slices.DeleteFunc(h.idle, func(o *Live) bool { return o == l })
	l.refs++
	return l
}

// acquireTemp is acquire for a session in memory that ends with its client.
func (h *Hub) acquireTemp(name libctx.Session, c Client) (*Live, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, errEnding
	}
	key := tempKey{c, name}
	l := h.temps[key]
	if l == nil {
		l = newLive(h, name, func([]session.Ended) (ledger, error) { return newMemory(name), nil })
		l.refs = 1 // the client's own, until it leaves
		l.loaded = &toolshell.Memory{}
		h.temps[key] = l
		context.AfterFunc(c.Gone(), func() {
			l.cancelAll(errdefs.New(errdefs.Cancelled, "its client left"))
			h.mu.Lock()
			delete(h.temps, key)
			h.mu.Unlock()
			l.release()
		})
	}
	l.refs++
	return l, nil
}

// engage takes a reference for work that is counted in wg: a run, or a
// follower. Once the hub is closing nothing is taken up any more.
func (h *Hub) engage(l *Live, wg *sync.WaitGroup) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return errEnding
	}
	l.refs++
	wg.Add(1)
	if wg == &h.runs {
		h.busy++
	}
	return nil
}

var errEnding = errdefs.New(errdefs.Busy, "the agent is ending; try again")

// delist undoes engage of a run that is over.
func (h *Hub) delist(l *Live) {
	l.release()
	h.mu.Lock()
	h.busy--
	h.mu.Unlock()
	select {
	case h.quiet <- struct{}{}:
	default:
	}
	h.runs.Done()
}

// disengage undoes engage of a follower.
func (h *Hub) disengage(l *Live) {
	l.release()
	h.followers.Done()
}

// release gives a reference back. A session without work stays open for a
// while, the least recently used is closed when there are many.
func (l *Live) release() {
	h := l.hub
	h.mu.Lock()
	l.refs--
	var shut *Live
	if l.refs == 0 && h.lives[l.name] != l {
		shut = l
	} else if l.refs == 0 {
		h.idle = append(h.idle, l)
		if len(h.idle) > idleSessions {
			shut = h.idle[0]
			h.idle = h.idle[1:]
			delete(h.lives, shut.name)
		}
	}
	if shut != nil {
		shut.close() // under h.mu, so that nobody opens the same session meanwhile
	}
	h.mu.Unlock()
}

// all lists every live session, those of connections included.
func (h *Hub) all() []*Live {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lives []*Live
	for _, l := range h.lives {
		lives = append(lives, l)
	}
	for _, l := range h.temps {
		lives = append(lives, l)
	}
	return lives
}

// Why every run of an agent ends: somebody asked for it, or its process has to end
// without having been asked by a client. The runs are then cancelled, or interrupted
// as those of a host that died are.
var (
	ErrStopped = errdefs.New(errdefs.Cancelled, "the agent was stopped")
	ErrHost    = errdefs.New(errdefs.Interrupted, "the host stopped")
)

// Drain ends every run for a reason, ErrStopped or ErrHost, and waits until all
// have settled. Later requests are refused with errdefs.Busy; Note still works. It
// may be called more than once; what ended a run first counts.
func (h *Hub) Drain(why error) {
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
	for _, l := range h.all() {
		l.cancelAll(why)
	}
	h.runs.Wait()
}

// DrainSession ends the runs that a durable session has at this moment, the
// waiting ones too, and waits until they have settled.
func (h *Hub) DrainSession(name libctx.Session, why error) {
	h.mu.Lock()
	l := h.lives[name]
	h.mu.Unlock()
	if l == nil {
		return
	}
	for _, r := range l.cancelAll(why) {
		<-r.over
	}
}

// Note commits a fact of a durable session that belongs to no run, and tells the
// clients that follow the session.
func (h *Hub) Note(name libctx.Session, f wire.Frame) error {
	h.mu.Lock()
	l := h.lived(name)
	h.mu.Unlock()
	defer l.release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return err
	}
	return l.write(&session.Fact{Event: session.NewEvent(), Frame: f})
}

// Shutdown is Drain, and closes every session.
func (h *Hub) Shutdown(why error) {
	h.Drain(why)
	h.end()
	h.followers.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, l := range h.lives {
		l.close()
		delete(h.lives, name)
	}
	h.idle = nil
}

// Cancel cancels the run that the request names and returns its id. A run that
// is over is errdefs.Already, an unknown one errdefs.NotFound.
func (h *Hub) Cancel(q *wire.Cancel) (libctx.Run, error) {
	for _, l := range h.all() {
		if q.Session != "" && l.name != q.Session {
			continue
		}
		if run, ok := l.cancel(q.ID, errdefs.New(errdefs.Cancelled, "cancelled")); ok {
			return run, nil
		}
	}
	for _, name := range h.whereToLook(q.Session) {
		known, err := h.knows(name, q.ID)
		if err != nil {
			return "", err
		}
		if known {
			return "", errdefs.New(errdefs.Already, "run %s has ended", q.ID)
		}
	}
	return "", errdefs.New(errdefs.NotFound, "no run %s", q.ID)
}

// whereToLook lists the sessions in which an ended run may be recorded.
func (h *Hub) whereToLook(named libctx.Session) []libctx.Session {
	if named != "" {
		return []libctx.Session{named}
	}
	var names []libctx.Session
	infos, err := h.cfg.Place.List()
	if err != nil {
		return nil
	}
	for _, i := range infos {
		names = append(names, i.Session)
	}
	return names
}

// knows reports whether the session has a run with this run or client id.
func (h *Hub) knows(name libctx.Session, id string) (bool, error) {
	l, err := h.acquire(name)
	if err != nil {
		return false, err
	}
	defer l.release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return false, err
	}
	if run, err := libctx.ParseRun(id); err == nil {
		_, err := l.store.FindRun(run)
		if err == nil || !errdefs.Is(err, errdefs.NotFound) {
			return err == nil, err
		}
	}
	_, _, ok, err := l.store.Client(libctx.ClientID(id))
	return ok, err
}

// Status describes one session. A session that does not exist is idle if it is
// the default one, else errdefs.NotFound.
func (h *Hub) Status(name libctx.Session) (wire.Status, error) {
	l, err := h.acquire(name)
	if err != nil {
		return wire.Status{}, err
	}
	defer l.release()
	return l.status()
}
