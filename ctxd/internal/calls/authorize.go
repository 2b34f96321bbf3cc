package calls

import (
	"context"
	"fmt"

	"cortexfs.org/ctxd/internal/approval"
	"cortexfs.org/ctxd/internal/broker"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/effect"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
)

// Hooks are the executables that look at calls which nothing else is against.
type Hooks interface {
	// Looks reports whether one would be asked before a call of the tool at this
	// inside path, or no call of it would pass.
	Looks(agent *view.Agent, tool string) bool
	// Pre asks those before the call, and says whether any looked at it. An error
	// refuses it; none admits anything.
	Pre(ctx context.Context, c HookCall) (looked bool, err error)
	// Post tells those after the call of a call that was begun, and how it ended:
	// "ok" or "error". It refuses nothing, and says of each that failed which it was
	// and why.
	Post(ctx context.Context, c HookCall, status string) []*wire.HookFailed
}

// HookCall is what hooks are told of a call, and where they run.
type HookCall struct {
	Agent  *view.Agent  // as it was when the call was decided about
	Call   toolrun.Call // as it came, with its run and workspace
	Intent effect.Intent
	Digest effect.Digest
}

// bearer is a call on its way through what follows on admission: *toolrun.Admitted.
type bearer interface {
	Asks() bool
	Intent() effect.Intent
	// Stands reports whether admission says now what it said before.
	Stands() bool
}

// gate is what follows on admission: the answer of a person, the grant, the hooks.
type gate struct {
	broker *broker.Broker
	ask    func(context.Context, approval.Question) approval.Answer
	pre    func(context.Context, effect.Intent, effect.Digest) (looked bool, err error) // nil: there are no hooks
}

// refusal is why a call that admission let pass is not begun.
type refusal struct {
	code   admit.Code
	reason string
}

// pass takes a call from its admission to a permit, in this order: a person is
// asked, if one has to be; a grant for exactly this call is made and reserved; the
// hooks look at it; the reservation is committed. A call that somebody was busy with
// meanwhile must still be admitted then. Whatever refuses, and a context that ends
// before the commit, revokes the reservation. An error means that there is no
// decision: the run is over.
func (g gate) pass(ctx context.Context, b bearer) (*broker.Permit, *refusal, error) {
	intent := b.Intent()
	digest := intent.Digest()
	if b.Asks() {
		if r, err := g.question(ctx, intent, digest); r != nil || err != nil {
			return nil, r, err
		}
	}
	token, err := g.broker.Grant(digest)
	if err != nil {
		return nil, &refusal{admit.CommitDenied, err.Error()}, nil
	}
	reserved, err := g.broker.Reserve(token, digest)
	if err != nil {
		return nil, &refusal{admit.CommitDenied, err.Error()}, nil
	}
	defer reserved.Revoke()
	waited := b.Asks()
	if g.pre != nil {
		looked, err := g.pre(ctx, intent, digest)
		waited = waited || looked
		if err != nil && ctx.Err() == nil && !fault.Off("calls:hooks") {
			return nil, &refusal{admit.HookDenied, err.Error()}, nil
		}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	if waited && !b.Stands() {
		return nil, &refusal{admit.CommitDenied, "the agent's or the tool's files were changed while the call waited, and it would not be let pass now"}, nil
	}
	permit, err := reserved.Commit()
	if err != nil {
		return nil, &refusal{admit.CommitDenied, err.Error()}, nil
	}
	return permit, nil, nil
}

// question asks a person. What can not be shown as a whole is not asked about.
func (g gate) question(ctx context.Context, i effect.Intent, d effect.Digest) (*refusal, error) {
	if len(i.Arguments) > libctx.MaxInlineText {
		return &refusal{admit.ApprovalMissing, fmt.Sprintf(
			"a person has to allow the call, and its arguments are longer than the %d bytes that one is asked about", libctx.MaxInlineText)}, nil
	}
	a := g.ask(ctx, approval.Question{
		Run: i.Run, Call: i.Call, Name: i.Tool, Arguments: i.Arguments, Effect: i.Effect, Digest: d.String(),
		Expires: libctx.ApprovalTimeout,
	})
	switch {
	case a.Err != nil:
		return nil, a.Err
	case context.Cause(ctx) != nil:
		return nil, context.Cause(ctx)
	case a.Decision == approval.Disconnected:
		return &refusal{admit.ApprovalMissing, "a person has to allow the call, and who was to be asked is not there"}, nil
	case !a.Allowed:
		return &refusal{admit.ApprovalDenied, "a person had to allow the call: " + a.Decision}, nil
	}
	return nil, nil
}
