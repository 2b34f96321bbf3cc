package calls

import (
	"context"
	"sync"

	"cortexfs.org/ctxd/internal/run"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// All carries out the committed calls of one message, in their order. Calls that
// follow one another and only observe run beside each other, at most
// libctx.MaxWave; every other one waits for those before it and lets those after
// it wait. Each is decided about when its turn comes, and each result is durable
// as soon as it is there. After All every call has a result in the ledger,
// unless storage failed. Calls that were not started when the run was told to
// finish are not started. The error ends the run.
func (c *Caller) All(ctx context.Context, r *run.Run, list []toolrun.Call) error {
	return carryOut(ctx, &desk{c, r}, list)
}

// counter is what waves are made with: the decision, the execution and the
// ledger of one run.
type counter interface {
	finishing() bool // no further call may be started
	decide(toolrun.Call) (ticket, error)
	// authorize makes the decision about a ticket that is no refusal final. It may
	// take as long as a person thinks.
	authorize(context.Context, ticket) error
	execute(context.Context, ticket) (toolrun.Result, error)
	commit(decisions []ticket, results []settled) error
}

// ticket is a call that was decided about: *Pending.
type ticket interface {
	Observes() bool
	Replayable() bool
	Refusal() (toolrun.Result, bool)
	Close()
}

// settled is the result of a call.
type settled struct {
	call toolrun.Call
	res  toolrun.Result
}

// carryOut is All.
func carryOut(ctx context.Context, at counter, list []toolrun.Call) error {
	for len(list) > 0 {
		if at.finishing() {
			return abandon(at, list, ToolFree, nil)
		}
		n, err := wave(ctx, at, list)
		list = list[n:]
		if err != nil {
			return abandon(at, list, Abandoned, err)
		}
	}
	return nil
}

// abandon settles the calls that are not started any more with one sentence, and
// returns why. Without an error of the run that of the commit is one.
func abandon(at counter, rest []toolrun.Call, sentence string, why error) error {
	if len(rest) == 0 {
		return why
	}
	results := make([]settled, len(rest))
	for i, call := range rest {
		results[i] = settled{call, toolrun.Failure(sentence)}
	}
	err := at.commit(nil, results)
	if why != nil {
		return why // if the commit failed too, so will the end of the run, which reports it
	}
	return err
}

// wave carries out the calls at the front that belong together and says how many
// that were: each of them has its result.
func wave(ctx context.Context, at counter, list []toolrun.Call) (int, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	fault.Point("calls.wave.begun")
	tickets, err := gather(at, list)
	defer func() {
		for _, t := range tickets {
			t.Close()
		}
	}()
	if err != nil {
		return 0, err
	}
	run, err := decideFinally(ctx, at, tickets, list)
	if err != nil {
		return 0, err
	}
	return len(tickets), together(ctx, at, run)
}

// ready is a call that may be executed.
type ready struct {
	ticket
	call toolrun.Call
}

// decideFinally authorizes each ticket in its turn, makes all decisions durable,
// with the results of the calls that are refused, and returns the others.
func decideFinally(ctx context.Context, at counter, tickets []ticket, list []toolrun.Call) (run []ready, err error) {
	var results []settled
	for i, t := range tickets {
		if _, refused := t.Refusal(); !refused {
			if err := at.authorize(ctx, t); err != nil {
				return nil, err
			}
		}
		if refusal, refused := t.Refusal(); refused {
			results = append(results, settled{list[i], refusal})
		} else {
			run = append(run, ready{t, list[i]})
		}
	}
	return run, at.commit(tickets, results)
}

// gather decides about the calls at the front. The first one is there in any
// case, others only as long as all of them observe: what comes after them is
// decided about again, when they are over.
func gather(at counter, list []toolrun.Call) ([]ticket, error) {
	first, err := at.decide(list[0])
	if err != nil {
		return nil, err
	}
	tickets := []ticket{first}
	for len(tickets) < min(libctx.MaxWave, len(list)) && first.Observes() {
		next, err := at.decide(list[len(tickets)])
		if err != nil {
			return tickets, err
		}
		if !next.Observes() {
			next.Close()
			break
		}
		tickets = append(tickets, next)
	}
	return tickets, nil
}

// together executes calls beside each other and commits each result as it comes.
func together(ctx context.Context, at counter, run []ready) error {
	switch len(run) {
	case 0:
		return nil
	case 1:
		res, err := at.execute(ctx, run[0].ticket)
		if failed := keep(at, settled{run[0].call, res}); err == nil {
			err = failed
		}
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type outcome struct {
		settled
		err error
	}
	outcomes := make(chan outcome, len(run))
	var running sync.WaitGroup
	for _, r := range run {
		running.Go(func() {
			res, err := at.execute(ctx, r.ticket)
			outcomes <- outcome{settled{r.call, res}, err}
		})
	}
	defer running.Wait()
	var first error
	for range run {
		o := <-outcomes
		if failed := keep(at, o.settled); o.err == nil {
			o.err = failed
		}
		if o.err != nil && first == nil {
			first = o.err
			cancel(o.err) // the run ends, and with it what still runs
		}
	}
	return first
}

// keep commits one result.
func keep(at counter, s settled) error {
	return Settle(s.res, func(res toolrun.Result) error { return at.commit(nil, []settled{{s.call, res}}) })
}

// desk is the counter of a run.
type desk struct {
	caller *Caller
	run    *run.Run
}

func (d *desk) finishing() bool { return d.run.Finishing() }

func (d *desk) decide(call toolrun.Call) (ticket, error) { return d.caller.Decide(d.run, call) }

func (d *desk) authorize(ctx context.Context, t ticket) error {
	return d.caller.Authorize(ctx, d.run, t.(*Pending))
}

func (d *desk) execute(ctx context.Context, t ticket) (toolrun.Result, error) {
	return d.caller.Execute(ctx, d.run, t.(*Pending))
}

func (d *desk) commit(decisions []ticket, results []settled) error {
	return d.run.Commit(func(string) []session.Record {
		var records []session.Record
		for _, t := range decisions {
			p := t.(*Pending)
			if p.admitted == nil {
				d.caller.logRefusal(d.run, p)
			}
			records = append(records, &session.Fact{Run: d.run.ID, Frame: p.Decision})
		}
		for _, s := range results {
			records = append(records, Entry(d.run.ID, s.call, s.res))
		}
		return records
	})
}

// Entry is the record of a call's result.
func Entry(id libctx.Run, call toolrun.Call, res toolrun.Result) *session.Entry {
	return &session.Entry{Run: id, Kind: session.KindMessage, Role: session.RoleTool, Content: []wire.Part{Part(call, res)}}
}

// Part is a call's result as a part of a message.
func Part(call toolrun.Call, res toolrun.Result) wire.Part {
	return wire.Part{
		Type: "tool_result", Call: call.ID, Name: call.Name, Status: res.Status, Text: res.Content,
		Truncated: res.Truncated, ExitCode: res.ExitCode, DurationMS: res.Duration.Milliseconds(),
	}
}
