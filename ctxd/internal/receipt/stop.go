package receipt

import (
	"context"
	"errors"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/supervise"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/wire"
)

// Outcomes of a stop, as wire.Stopped has them.
const (
	Stopped = "stopped"
	Gone    = "gone"   // it was over already
	Stale   = "stale"  // the receipt is about another generation; nothing was touched
	Failed  = "failed" // it may still run
)

// Target is a terminal that is to be stopped, or one that can not be and why.
type Target struct {
	Session libctx.Session
	receipt terminal.Receipt
	keeper  *Keeper
	layout  paths.Layout // in which it has its socket and its lock
	refused error
}

// Plan reads and proves the receipts of a session's terminal, or of all of the
// agent's for "". A terminal that ended as it should, or was never receipted, is
// in no plan for all. Nothing is touched.
func (k *Keeper) Plan(ctx context.Context, s libctx.Session) ([]Target, error) {
	if k == nil {
		return nil, nil
	}
	names := []libctx.Session{s}
	if s == "" {
		var err error
		if names, err = k.sessions(); err != nil {
			return nil, err
		}
	}
	var plan []Target
	for _, name := range names {
		r, m, err := k.stored(name)
		if errdefs.Is(err, errdefs.NotFound) || s == "" && (m.State == terminal.Exited || m.State == terminal.Error) {
			continue
		}
		if err == nil { // first: of one that is over nothing leads to the socket
			err = supervise.Prove(ctx, instance(r.Terminal))
		}
		var layout paths.Layout
		if err == nil {
			layout, err = k.proveName(name, r.Terminal)
		}
		plan = append(plan, Target{Session: name, receipt: r, keeper: k, layout: layout, refused: err})
	}
	return plan, nil
}

// stopsAtOnce is how many terminals are asked to end at the same time.
const stopsAtOnce = 8

// Stop stops what a plan says and tells what became of each. Note is called, one
// call at a time, with the frame for the history of each session whose terminal
// was stopped.
func Stop(ctx context.Context, plan []Target, note func(libctx.Session, wire.Frame) error) []wire.Stopped {
	results := make([]wire.Stopped, len(plan))
	var noting sync.Mutex
	var work sync.WaitGroup
	slots := make(chan struct{}, stopsAtOnce)
	for i, t := range plan {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			results[i] = t.stop(ctx)
			if results[i].Outcome != Stopped {
				return
			}
			noting.Lock()
			defer noting.Unlock()
			if err := note(t.Session, t.frame()); err != nil {
				results[i].Message = clean(errdefs.New(errdefs.KindOf(err), "not recorded: %w", err))
			}
		})
	}
	work.Wait()
	return results
}

func (t Target) stop(ctx context.Context) wire.Stopped {
	err := t.refused
	if err == nil {
		err = t.end(ctx)
	}
	out := wire.Stopped{Session: t.Session, Outcome: Stopped}
	switch {
	case err == nil:
		return out
	case errors.Is(err, supervise.ErrStale):
		out.Outcome = Stale
	case errdefs.Is(err, errdefs.NotFound):
		out.Outcome = Gone
	default:
		out.Outcome = Failed
	}
	out.Message = clean(err)
	return out
}

// end asks the supervisor that started the terminal, and tidies up after a
// launcher that had to be killed.
func (t Target) end(ctx context.Context) error {
	l := t.receipt.Terminal
	s, err := supervise.New(ctx, l.Supervisor, t.layout, l.Identity.UID)
	if err != nil {
		return err
	}
	if err := s.Stop(ctx, instance(l)); err != nil {
		return err
	}
	p := t.keeper.place(t.Session)
	p.Layout = t.layout
	_, err = p.Clear(l)
	return err
}

func (t Target) frame() wire.Frame {
	l := t.receipt.Terminal
	return &wire.AgentStop{
		Head: wire.Head{Type: "agent.stop"}, Terminal: terminal.ID(t.keeper.Agent, t.Session),
		Supervisor: l.Supervisor, Unit: l.Unit, Invocation: l.Invocation, PID: l.PID,
	}
}

func clean(err error) string {
	text, _ := wire.Clip(wire.Clean([]byte(err.Error())), 4096)
	return text
}
