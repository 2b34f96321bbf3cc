package run

import (
	"context"
	"slices"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/wire"
)

// ledger is what a live session needs of its store: *session.Session, or
// *memory for scope temp.
type ledger interface {
	Commit(records ...session.Record) ([]session.Event, error)
	Client(id libctx.ClientID) (run libctx.Run, payload string, ok bool, err error)
	FindEvent(after libctx.Event) (int64, error)
	FindRun(run libctx.Run) (int64, error)
	ReadEvents(offset int64, max int) ([][]byte, int64, error)
	EventsEnd() int64
	Conversation(max int) ([]session.Entry, error)
	Carried() ([]session.OpenCall, error)
	Tip() string
	NextEntryID() string
	Info() session.Info
	Room() error
	Broken() error
	Close() error
}

// Live is one session while somebody uses it.
type Live struct {
	hub    *Hub
	name   libctx.Session
	opener func([]session.Ended) (ledger, error)
	refs   int               // guarded by hub.mu
	loaded *toolshell.Memory // its loaded tools if it lives in memory, else nil

	mu      sync.Mutex
	store   ledger          // nil until needed, and again after storage failed
	gen     int             // counts openings; a run belongs to one
	why     error           // the last one that failed did
	ended   []session.Ended // runs whose end storage refused, for the next opening
	active  *Run            // the driven run
	queue   []*Run          // driven runs that wait, oldest first
	tools   []*Run          // tsh operations at work
	waiting []*Run          // tsh operations that wait for a slot
	subs    []*sub
}

func newLive(h *Hub, name libctx.Session, opener func([]session.Ended) (ledger, error)) *Live {
	return &Live{hub: h, name: name, opener: opener}
}

// open makes the store ready. Called with mu held.
func (l *Live) open() error {
	if l.store != nil {
		return nil
	}
	store, err := l.opener(l.ended)
	if err != nil {
		return err
	}
	l.store, l.ended = store, nil
	l.gen++
	return nil
}

// close ends the use of the store. Nobody holds a reference.
func (l *Live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}

// drop closes the store; runs that began on it can commit no more.
func (l *Live) drop() {
	if l.store == nil {
		return
	}
	if err := l.store.Close(); err != nil {
		l.hub.cfg.Log.Warn("closing a session", "session", l.name, "why", err.Error())
	}
	l.store = nil
}

// fail drops a store that failed. Its runs end now: of what they still do nothing
// would be recorded. Called with mu held and the store open.
func (l *Live) fail(why error) {
	l.why = why
	for _, r := range append(slices.Clone(l.tools), l.active) {
		if r != nil && l.owns(r) == nil {
			r.cancel(l.failed())
		}
	}
	l.drop()
}

// failed is what runs and readers of a store that failed are told.
func (l *Live) failed() error {
	return errdefs.New(errdefs.KindOf(l.why), "storage failed: %w", l.why)
}

// owns refuses a run whose store was dropped after a storage error.
func (l *Live) owns(r *Run) error {
	if l.store == nil || l.gen != r.gen {
		return l.failed()
	}
	return nil
}

// commit makes records durable and tells the clients. When storage failed the
// store is dropped, so that the next opening repairs and settles it; a batch
// that was refused for its content or size leaves it usable. A batch can be
// durable and yet be the last one of its store: what clients were told is then
// found again by the next opening, and by no reader before.
func (l *Live) commit(r *Run, make func(ledger) []session.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.owns(r); err != nil {
		return err
	}
	return l.record(r, make(l.store)...)
}

// record writes records of a run behind those it holds back, all as one batch.
// Called with mu held and the store open.
func (l *Live) record(r *Run, records ...session.Record) error {
	if err := l.write(slices.Concat(r.held, records)...); err != nil {
		return err
	}
	r.held, r.recorded = nil, true
	return nil
}

// write is one batch, with mu held and the store open.
func (l *Live) write(records ...session.Record) error {
	events, err := l.store.Commit(records...)
	if err != nil {
		l.hub.cfg.Log.Error("commit", "session", l.name, "why", err.Error())
		if l.store.Broken() != nil {
			l.fail(err)
		}
		return err
	}
	for _, e := range events {
		l.push(e)
	}
	if why := l.store.Broken(); why != nil {
		l.hub.cfg.Log.Error("after a commit", "session", l.name, "why", why.Error())
		l.fail(why)
	}
	return nil
}

// known answers a request whose client id was used before: the same payload
// gets the run's frames again, another is errdefs.Invalid. Called with mu held
// and the store open.
func (l *Live) known(r *Run, c Client) (found bool, err error) {
	differs := errdefs.New(errdefs.Invalid, "id %s was used for another request", r.Client)
	for _, list := range [][]*Run{{l.active}, l.queue, l.tools, l.waiting} {
		for _, o := range list {
			if o == nil || o.Client != r.Client {
				continue
			}
			if o.payload != r.payload {
				return true, differs
			}
			if !o.recorded { // nothing to replay yet
				err := l.watch(o.ID, c)
				if err == nil {
					l.noteQueued(c, o)
				}
				return true, err
			}
			return true, l.follow(c, 0, o.ID, false)
		}
	}
	run, payload, ok, err := l.store.Client(r.Client)
	switch {
	case err != nil || !ok:
		return false, err
	case payload != r.payload:
		return true, differs
	}
	return true, l.follow(c, 0, run, false)
}

// begin makes a run durable and starts its work; of a tsh operation the first
// records wait for its decision (see Record). Called with mu held and the store
// open. After an error nothing was started.
func (l *Live) begin(r *Run, work func(context.Context, *Run) error) error {
	r.gen = l.gen
	first := r.begin(l.store.NextEntryID(), l.store.Tip())
	if r.Op == "tsh" {
		r.held = first
	} else if err := l.record(r, first...); err != nil {
		r.advance(Settle)
		return err
	}
	fault.Point("run.begun")
	if err := l.owns(r); err != nil { // recorded, and nothing after it will be
		r.cancel(err)
	}
	r.advance(Begin)
	l.hub.cfg.Log.Info("run", "session", l.name, "run", r.ID, "op", r.Op)
	l.show(r)
	if r.Op == "send" {
		l.active = r
	} else {
		l.tools = append(l.tools, r)
	}
	go l.drive(r, work)
	return nil
}

// finish gives back what accepting a run took.
func (l *Live) finish(r *Run) {
	r.cancel(nil)
	l.hub.delist(l)
	close(r.over)
}

// drive does the work of one run and settles it.
func (l *Live) drive(r *Run, work func(context.Context, *Run) error) {
	err := work(r.ctx, r)
	l.hub.cfg.Log.Info("run ended", "session", l.name, "run", r.ID, "outcome", judge(context.Cause(r.ctx), err))
	l.mu.Lock()
	l.settle(r, err)
	if l.active == r {
		l.active = nil
	}
	l.tools = slices.DeleteFunc(l.tools, func(o *Run) bool { return o == r })
	l.advanceQueue()
	l.endFollowers()
	l.mu.Unlock()
	l.finish(r)
}

// settle writes the end of a run. Where storage refuses even that, clients get
// the same two frames without ids, and the next opening of the session records
// them. A run of which nothing was recorded leaves nothing there either.
func (l *Live) settle(r *Run, err error) {
	r.advance(Settle)
	fault.Point("run.settle")
	if failed := l.end(r, err); failed != nil {
		if err == nil || r.Cancelled() {
			err = failed
		}
		code, text := reason(err)
		l.sayEnd(r, err, "error")
		open := l.owns(r) == nil
		if r.recorded || !open { // of a batch that failed there may be more than nothing
			l.ended = append(l.ended, session.Ended{Run: r.ID, Code: code, Message: text})
		}
		if r.recorded && open {
			l.fail(failed) // with a run that never ends in it the session would be of no use
		}
	}
	fault.Point("run.settled")
	l.unwatch(r.ID)
}

// end writes the one checkpoint of a run behind what the run holds back, and
// behind what was said into it and not delivered, so that nothing is lost. A
// result for which there is no room gives way to one that says so.
func (l *Live) end(r *Run, err error) error {
	if failed := l.owns(r); failed != nil {
		return failed
	}
	r.inbox.closed = true
	last, failed := r.last(l.store, err)
	if failed == nil {
		failed = l.record(r, last...)
	}
	if failed == nil || l.owns(r) != nil || !r.shorten(failed) {
		return failed
	}
	if err == nil {
		err = failed
	}
	if last, failed = r.last(l.store, err); failed != nil {
		return failed
	}
	return l.record(r, last...)
}

// advanceQueue starts whatever may start now. Called with mu held.
func (l *Live) advanceQueue() {
	for l.active == nil && len(l.queue) > 0 {
		r := l.queue[0]
		l.queue = l.queue[1:]
		l.start(r, l.hub.cfg.Worker.Drive)
	}
	for len(l.tools) < libctx.MaxSessionTsh && len(l.waiting) > 0 {
		r := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.start(r, l.hub.cfg.Worker.Tool)
	}
}

// start begins a run that waited; one that can not begin ends with its error.
func (l *Live) start(r *Run, work func(context.Context, *Run) error) {
	err := l.open()
	if err == nil {
		err = l.begin(r, work)
	}
	if err != nil {
		l.abandon(r, err, "error")
	}
}

// abandon ends a run that never began: nothing of it is durable.
func (l *Live) abandon(r *Run, why error, status string) {
	l.sayEnd(r, why, status)
	l.unwatch(r.ID)
	go l.finish(r) // takes the hub's lock, which comes before ours
}

// sayEnd tells the clients of a run of its end with frames that have no ids. Of a
// run of which nothing is recorded they got no start frame, so that it is their
// own id by which they know it.
func (l *Live) sayEnd(r *Run, why error, status string) {
	var id libctx.ClientID
	if !r.recorded {
		id = r.Client
	}
	if why != nil {
		code, text := reason(why)
		l.say(r.ID, &wire.Error{Head: wire.Head{Type: "error"}, ClientID: id, Code: code, Message: text})
	}
	l.say(r.ID, &wire.Done{Head: wire.Head{Type: "done"}, ClientID: id, Status: status})
}

// cancel cancels the run with this run or client id, if it is not over.
func (l *Live) cancel(id string, why error) (libctx.Run, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.runs() {
		if string(r.ID) == id || string(r.Client) == id {
			l.stop(r, why)
			return r.ID, true
		}
	}
	return "", false
}

// cancelAll cancels every run of the session, and lists them.
func (l *Live) cancelAll(why error) []*Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.runs()
	for _, r := range all {
		l.stop(r, why)
	}
	return all
}

// runs lists the runs that are not over.
func (l *Live) runs() []*Run {
	var all []*Run
	if l.active != nil {
		all = append(all, l.active)
	}
	all = append(all, l.tools...)
	all = append(all, l.queue...)
	return append(all, l.waiting...)
}

// stop tells one run to end, and why. Called with mu held.
func (l *Live) stop(r *Run, why error) {
	state, err := r.advance(Cancel)
	if err != nil {
		return
	}
	r.cancel(why)
	if state == Ended { // it only waited
		is := func(o *Run) bool { return o == r }
		l.queue = slices.DeleteFunc(l.queue, is)
		l.waiting = slices.DeleteFunc(l.waiting, is)
		if errdefs.Is(why, errdefs.Interrupted) {
			l.abandon(r, why, "error")
		} else {
			l.abandon(r, nil, "cancelled")
		}
	}
}

// status describes the session.
func (l *Live) status() (wire.Status, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return wire.Status{}, err
	}
	if l.store.EventsEnd() == 0 && len(l.tools) == 0 && l.name != libctx.DefaultSession {
		return wire.Status{}, errdefs.New(errdefs.NotFound, "no session %s", l.name)
	}
	st := wire.Status{Session: l.name, State: l.store.Info().State, Queued: len(l.queue)}
	if st.State == "" {
		st.State = "idle"
	}
	if l.active != nil {
		st.State = "active"
		st.Head.Run = l.active.ID
	}
	return st, nil
}
