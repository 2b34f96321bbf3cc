package sandboxrun

import (
	"context"
	"slices"
	"sync"
	"time"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/sandbox"
)

// stage is where a spare, a sandbox that is prepared for a call to come, stands.
type stage int

const (
	preparing stage = iota // it is launched
	waiting                // its entry step waits for a request
	taken                  // it is one call's, and that call's business
	discarded              // nobody may have it; it is killed if there is anything to kill
)

// transitions are all there are. No stage is entered twice.
var transitions = map[stage][]stage{
	preparing: {waiting, discarded},
	waiting:   {taken, discarded},
}

// spare is one prepared sandbox. One goroutine keeps it, from its launch until
// somebody has taken it or nothing of it is left.
type spare struct {
	fixed   string // of the plan it is for
	ctx     context.Context
	end     context.CancelFunc
	settled chan struct{} // closed when it is no longer preparing
	launch  *launch       // set before it waits

	mu sync.Mutex
	at stage
}

// to enters a stage, and reports whether it may.
func (sp *spare) to(next stage) bool {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if !slices.Contains(transitions[sp.at], next) {
		return false
	}
	if sp.at == preparing {
		close(sp.settled)
	}
	sp.at = next
	if next != waiting {
		sp.end() // of the launch, and of the wait
	}
	return true
}

// spares decides when a sandbox is prepared. There is at most one: a launcher
// belongs to one agent, whose calls follow each other, and where they do not a
// launch ahead of its time would only be in the way of another.
type spares struct {
	launcher *Launcher
	idle     time.Duration // that one waits

	mu      sync.Mutex
	on      bool   // not before a first launch has succeeded
	next    *spare // preparing or waiting
	running int    // calls between take and leave
	last    string // what the last call's plan fixed
	missed  bool   // the last spare was not what was needed
}

// take begins a call. It is the call's sandbox if one was prepared that is what
// a launch would make now; the caller ends and closes it. One that is not is
// discarded. Every take needs a leave.
func (s *spares) take(ctx context.Context, fixed string) (*launch, bool) {
	s.mu.Lock()
	s.running++
	// Calls that take turns with calls of another kind would never meet their
	// spare. Two alike in a row show that this is over.
	if s.last == fixed {
		s.missed = false
	}
	s.last = fixed
	if s.next != nil && s.next.fixed != fixed {
		s.missed = true
		s.discard()
	}
	sp := s.next
	s.next = nil
	s.mu.Unlock()
	if sp == nil {
		return nil, false
	}
	select {
	case <-sp.settled:
	case <-ctx.Done():
		sp.to(discarded)
		return nil, false
	}
	if !sp.to(taken) {
		return nil, false
	}
	if sp.launch.init.Ended() || mountsChanged(sp.launch.mounts) { // killed by somebody else, or stale
		sp.launch.end()
		return nil, false
	}
	return sp.launch, true
}

// leave ends a call. After one that ran the next may follow soon: it is prepared
// for now and not while the call ran, since two sandboxes that come and go at
// once hold each other up in the kernel. After one that failed or was cancelled
// nothing is expected.
func (s *spares) leave(spec sandbox.Spec, fixed string, ran bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	switch {
	case !ran:
		s.discard()
	case s.next == nil && s.running <= 1 && !s.missed: // else a launch would be in the way of others
		s.prepare(spec, fixed)
	}
}

// discard gives up what is prepared. Called with mu held.
func (s *spares) discard() {
	if s.next != nil {
		s.next.to(discarded)
		s.next = nil
	}
}

// Prepare launches a sandbox for a call that is expected. That takes it if all
// of its spec but what a request carries is the same, and every object it names
// still is; otherwise, and after libctx.SandboxSpare, the sandbox is killed with
// nothing of a payload executed. There is one at a time: another that is
// prepared for something else goes. That none can be launched is no error here.
func (l *Launcher) Prepare(spec sandbox.Spec) {
	p, err := l.plan(spec, 0)
	if err != nil {
		return // the call says it
	}
	p.close()
	s := &l.spares
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil && s.next.fixed == p.fixed {
		return
	}
	s.discard()
	s.prepare(spec, p.fixed)
}

// prepare starts what keeps a new spare. Called with mu held and none there.
func (s *spares) prepare(spec sandbox.Spec, fixed string) {
	if !s.on {
		return
	}
	ctx, leave, err := s.launcher.enter(context.Background())
	if err != nil {
		return
	}
	sp := &spare{fixed: fixed, settled: make(chan struct{})}
	sp.ctx, sp.end = context.WithCancel(ctx)
	s.next = sp
	go func() {
		defer leave()
		s.keep(sp, spec)
	}()
}

// keep sees a spare through.
func (s *spares) keep(sp *spare, spec sandbox.Spec) {
	defer s.forget(sp)
	n, err := s.fill(sp, spec)
	if err != nil {
		sp.to(discarded)
		if sp.ctx.Err() == nil {
			s.launcher.log.Debug("no sandbox prepared", "why", err.Error()) // a call that needs one says it
		}
		return
	}
	sp.launch = n
	if sp.to(waiting) {
		fault.Point("sandbox.waiting")
		idle := time.NewTimer(s.idle)
		defer idle.Stop()
		select {
		case <-sp.ctx.Done(): // taken, discarded, or the launcher is closed
		case <-n.over: // somebody killed it
		case <-idle.C:
		}
		sp.to(discarded)
	}
	if sp.at == discarded { // it moves no more
		n.end()
	}
}

// fill launches the sandbox. What is fixed is looked up again, so that what a
// call later compares with is what was shown; mounts are watched from before.
func (s *spares) fill(sp *spare, spec sandbox.Spec) (ready *launch, err error) {
	mounts, err := watchMounts()
	if err != nil {
		return nil, err
	}
	defer func() {
		if ready == nil {
			mounts.Close()
		}
	}()
	p, err := s.launcher.plan(spec, 0)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if p.fixed != sp.fixed {
		return nil, errdefs.New(errdefs.Cancelled, "what it was to show has changed")
	}
	n, err := s.launcher.launch(sp.ctx, p, nil)
	if err != nil {
		return nil, err
	}
	if err := n.ready(sp.ctx); err != nil {
		n.end()
		return nil, err
	}
	n.mounts = mounts
	return n, nil
}

// forget makes room for the next one.
func (s *spares) forget(sp *spare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == sp {
		s.next = nil
	}
}
