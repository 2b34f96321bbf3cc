package calls

import (
	"context"
	"errors"
	"strings"
	"testing"

	"cortexfs.org/ctxd/internal/approval"
	"cortexfs.org/ctxd/internal/broker"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/effect"
	"github.com/go-json-experiment/json/jsontext"
)

// held is a call that was admitted.
type held struct {
	asks, fallen bool
	intent       effect.Intent
}

func (h *held) Asks() bool            { return h.asks }
func (h *held) Intent() effect.Intent { return h.intent }
func (h *held) Stands() bool          { return !h.fallen }

func call(args string) *held {
	return &held{intent: effect.Intent{Run: "01KB9QZ3M8T5V2N7X4C6D1E0FG", Call: "c", Tool: "fs.write", Effect: "workspace_mutation", Arguments: jsontext.Value(args)}}
}

func answers(a approval.Answer) func(context.Context, approval.Question) approval.Answer {
	return func(context.Context, approval.Question) approval.Answer { return a }
}

var yes = approval.Answer{Allowed: true, Decision: approval.AllowOnce}

func TestGate(t *testing.T) {
	storage := errors.New("storage")
	hook := func(looked bool, err error) func(context.Context, effect.Intent, effect.Digest) (bool, error) {
		return func(context.Context, effect.Intent, effect.Digest) (bool, error) { return looked, err }
	}
	asks, fallen, both := call("{}"), call("{}"), call("{}")
	asks.asks, fallen.fallen, both.asks, both.fallen = true, true, true, true
	long := call(`{"content":"` + strings.Repeat("a", libctx.MaxInlineText) + `"}`)
	long.asks = true
	for name, c := range map[string]struct {
		gate gate
		call *held
		code admit.Code
		err  error
	}{
		"nothing is against it":      {gate{}, call("{}"), "", nil},
		"allowed":                    {gate{ask: answers(yes)}, asks, "", nil},
		"denied":                     {gate{ask: answers(approval.Answer{Decision: approval.Deny})}, asks, admit.ApprovalDenied, nil},
		"too late":                   {gate{ask: answers(approval.Answer{Decision: approval.Timeout})}, asks, admit.ApprovalDenied, nil},
		"an answer that is none":     {gate{ask: answers(approval.Answer{})}, asks, admit.ApprovalDenied, nil},
		"gone":                       {gate{ask: answers(approval.Answer{Decision: approval.Disconnected})}, asks, admit.ApprovalMissing, nil},
		"not recorded":               {gate{ask: answers(approval.Answer{Allowed: true, Err: storage})}, asks, "", storage},
		"too long to ask":            {gate{ask: answers(yes)}, long, admit.ApprovalMissing, nil},
		"a hook":                     {gate{pre: hook(true, errors.New("no"))}, call("{}"), admit.HookDenied, nil},
		"a hook after an answer":     {gate{ask: answers(yes), pre: hook(true, errors.New("no"))}, asks, admit.HookDenied, nil},
		"a hook that lets pass":      {gate{pre: hook(true, nil)}, call("{}"), "", nil},
		"no hook looked":             {gate{pre: hook(false, nil)}, fallen, "", nil},
		"changed during a question":  {gate{ask: answers(yes)}, both, admit.CommitDenied, nil},
		"changed during a hook":      {gate{pre: hook(true, nil)}, fallen, admit.CommitDenied, nil},
		"not asked whether it holds": {gate{}, fallen, "", nil},
	} {
		var b broker.Broker
		c.gate.broker = &b
		permit, no, err := c.gate.pass(t.Context(), c.call)
		if !errors.Is(err, c.err) || (no != nil) != (c.code != "") || no != nil && (no.code != c.code || no.reason == "") {
			t.Errorf("%s: %v, %v", name, no, err)
		}
		if (permit != nil) != (c.code == "" && c.err == nil) {
			t.Errorf("%s: permit %v", name, permit)
		}
		if permit == nil {
			continue
		}
		if err := permit.Use(c.call.intent.Digest()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGateOrder: a person is asked before hooks look, about this very call, and each
// of them sees the same digest.
func TestGateOrder(t *testing.T) {
	var b broker.Broker
	var log []string
	h := call(`{"n":9007199254740993}`)
	h.asks = true
	want := h.intent.Digest()
	note := func(who string, args jsontext.Value, digest string) {
		log = append(log, who)
		if digest != want.String() || string(args) != `{"n":9007199254740993}` {
			t.Errorf("%s sees %s of %s", who, digest, args)
		}
	}
	permit, no, err := gate{
		broker: &b,
		ask: func(_ context.Context, q approval.Question) approval.Answer {
			note("person", q.Arguments, q.Digest)
			return yes
		},
		pre: func(_ context.Context, i effect.Intent, d effect.Digest) (bool, error) {
			note("hook", i.Arguments, d.String())
			return true, nil
		},
	}.pass(t.Context(), h)
	if no != nil || err != nil || strings.Join(log, " ") != "person hook" {
		t.Fatalf("%v: %v, %v", log, no, err)
	}
	// What was allowed is this call: not one that only reads like it.
	other := h.intent
	other.Arguments = jsontext.Value(`{"n":9007199254740992}`)
	if permit.Use(other.Digest()) == nil {
		t.Error("the permit begins another call")
	}
}

// TestGateCancelled: a run that ends while a person thinks or a hook looks gets no
// permit, and what was reserved is worth nothing.
func TestGateCancelled(t *testing.T) {
	why := errors.New("cancelled")
	for _, where := range []string{"person", "hook"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var b broker.Broker
		h := call("{}")
		h.asks = true
		permit, no, err := gate{
			broker: &b,
			ask: func(context.Context, approval.Question) approval.Answer {
				if where == "person" {
					cancel(why)
				}
				return yes // the answer and the end came together
			},
			pre: func(ctx context.Context, _ effect.Intent, _ effect.Digest) (bool, error) {
				if where == "person" {
					t.Error("a hook is asked after the end")
				}
				cancel(why)
				<-ctx.Done()
				return true, ctx.Err()
			},
		}.pass(ctx, h)
		if permit != nil || no != nil || !errors.Is(err, why) {
			t.Errorf("%s: %v, %v, %v", where, permit, no, err)
		}
	}
}

// TestGateFull: a broker that is full refuses; it lets nobody pass unseen.
func TestGateFull(t *testing.T) {
	var b broker.Broker
	for range libctx.MaxGrants {
		if _, err := b.Grant(effect.Digest{}); err != nil {
			t.Fatal(err)
		}
	}
	permit, no, err := gate{broker: &b}.pass(t.Context(), call("{}"))
	if permit != nil || err != nil || no == nil || no.code != admit.CommitDenied {
		t.Errorf("%v, %v, %v", permit, no, err)
	}
}

func BenchmarkGate(b *testing.B) {
	var of broker.Broker
	h := call(`{"path":"README.md"}`)
	b.ReportAllocs()
	for b.Loop() {
		permit, no, err := gate{broker: &of}.pass(b.Context(), h)
		if no != nil || err != nil {
			b.Fatal(no, err)
		}
		_ = permit
	}
}
