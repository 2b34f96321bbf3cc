package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cortexfs.org/ctxd/internal/approval"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// person is a client that looks at questions.
type person struct {
	board approval.Board
	seen  func(*wire.ApprovalRequest) // on a goroutine of its own
	deaf  bool                        // takes no frames
	all   sync.WaitGroup

	mu     sync.Mutex
	frames []wire.Frame
}

func (c *person) Push(line []byte) bool {
	f, err := wire.DecodeFrame(line)
	if err != nil || c.deaf {
		return false
	}
	c.mu.Lock()
	c.frames = append(c.frames, f)
	c.mu.Unlock()
	if q, ok := f.(*wire.ApprovalRequest); ok && c.seen != nil {
		c.all.Go(func() { c.seen(q) })
	}
	return true
}

func (c *person) Note([]byte)                         {}
func (c *person) Write(context.Context, []byte) error { return nil }
func (c *person) Gone() context.Context               { return context.Background() }
func (c *person) Hold() (func(), error)               { return func() {}, nil }
func (c *person) Asked() *approval.Board              { return &c.board }

// says answers a question of the run, about this call.
func (c *person) says(q *wire.ApprovalRequest, call libctx.Call, decision string) error {
	return c.board.Answer(&wire.Approve{Run: q.Run, Call: call, Decision: decision})
}

// asking carries out a run that asks about these calls, one after the other, and
// says what came of them.
func asking(c Client, cfg Config, store *batches, about ...approval.Question) (answers []approval.Answer, hub *Hub) {
	cfg.Agent, cfg.Log = "a", log.Discard()
	cfg.Worker = scripted{drive: func(ctx context.Context, r *Run) error {
		for _, q := range about {
			a := r.Ask(ctx, q)
			answers = append(answers, a)
			if a.Err != nil {
				return a.Err
			}
		}
		return nil
	}}
	hub = New(cfg)
	l := newLive(hub, "s", func([]session.Ended) (ledger, error) { return store, nil })
	hub.lives["s"] = l
	err := hub.Send(context.Background(), &wire.Send{ID: "m", Session: "s", Scope: "private", Workspace: "/w", Input: "x"}, c)
	if err != nil {
		panic(err)
	}
	hub.runs.Wait()
	return answers, hub
}

func question(call libctx.Call) approval.Question {
	return approval.Question{Call: call, Name: "bash", Arguments: []byte(`{"args":["ls"]}`), Effect: "host_process", Digest: "sha256:0"}
}

// TestAsk is what can come of one question.
func TestAsk(t *testing.T) {
	for _, c := range []struct {
		name string
		seen func(*person, *wire.ApprovalRequest)
		want string
	}{
		{"allowed", func(p *person, q *wire.ApprovalRequest) { _ = p.says(q, q.Call, approval.AllowOnce) }, approval.AllowOnce},
		{"denied", func(p *person, q *wire.ApprovalRequest) { _ = p.says(q, q.Call, approval.Deny) }, approval.Deny},
		{"another call", func(p *person, q *wire.ApprovalRequest) {
			if err := p.says(q, "other", approval.AllowOnce); !errdefs.Is(err, errdefs.NotFound) {
				panic(err)
			}
			if err := p.says(q, q.Call, approval.AllowOnce); !errdefs.Is(err, errdefs.NotFound) {
				panic(err)
			}
		}, approval.Invalid},
		{"not understood", func(p *person, _ *wire.ApprovalRequest) { p.board.Malformed() }, approval.Invalid},
		{"left", func(p *person, _ *wire.ApprovalRequest) { p.board.Mute() }, approval.Disconnected},
		{"silent", func(*person, *wire.ApprovalRequest) {}, approval.Timeout},
		{"in the last moment", func(p *person, q *wire.ApprovalRequest) {
			<-time.After(libctx.ApprovalTimeout - 1)
			_ = p.says(q, q.Call, approval.AllowOnce)
		}, approval.AllowOnce},
		{"too late", func(p *person, q *wire.ApprovalRequest) {
			<-time.After(libctx.ApprovalTimeout + 1)
			if err := p.says(q, q.Call, approval.AllowOnce); !errdefs.Is(err, errdefs.NotFound) {
				panic(err)
			}
		}, approval.Timeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := new(person)
			p.seen = func(q *wire.ApprovalRequest) { c.seen(p, q) }
			store := &batches{memory: newMemory("s")}
			answers, _ := asking(p, Config{}, store, question("call-1"))
			p.all.Wait()
			if len(answers) != 1 || answers[0].Decision != c.want || answers[0].Allowed != (c.want == approval.AllowOnce) || answers[0].Err != nil {
				t.Errorf("%s: %+v", c.name, answers)
			}
			want := []string{"user head start", "approval_request", "approval_result", "completed"}
			if !slices.Equal(store.seen, want) {
				t.Errorf("%s: batches %q", c.name, store.seen)
			}
			q := p.frames[1].(*wire.ApprovalRequest)
			r := p.frames[2].(*wire.ApprovalResult)
			if q.Run == "" || q.ID == "" || q.Expires != 300000 || string(q.Arguments) != `{"args":["ls"]}` || r.Call != "call-1" || r.Decision != c.want {
				t.Errorf("%s: %+v %+v", c.name, q, r)
			}
		})
	}
}

// TestAskSeveral: each answer binds one call.
func TestAskSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(person)
		p.seen = func(q *wire.ApprovalRequest) {
			if q.Call != "call-3" {
				_ = p.says(q, q.Call, map[libctx.Call]string{"call-1": approval.AllowOnce, "call-2": approval.Deny, "call-4": approval.AllowOnce}[q.Call])
			}
		}
		answers, _ := asking(p, Config{}, &batches{memory: newMemory("s")}, question("call-1"), question("call-2"), question("call-3"), question("call-4"))
		var got []string
		for _, a := range answers {
			got = append(got, a.Decision)
		}
		if want := "allow_once deny timeout allow_once"; strings.Join(got, " ") != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestAskOneAtATime: two questions of one run wait for one another.
func TestAskOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(person)
		open := make(chan *wire.ApprovalRequest, 2)
		p.seen = func(q *wire.ApprovalRequest) { open <- q }
		hub := New(Config{Agent: "a", Log: log.Discard(), Worker: scripted{drive: func(ctx context.Context, r *Run) error {
			var both sync.WaitGroup
			for i := range 2 {
				both.Go(func() {
					if a := r.Ask(ctx, question(libctx.Call(fmt.Sprint("call-", i)))); !a.Allowed {
						t.Errorf("%+v", a)
					}
				})
			}
			both.Wait()
			return nil
		}}})
		store := &batches{memory: newMemory("s")}
		hub.lives["s"] = newLive(hub, "s", func([]session.Ended) (ledger, error) { return store, nil })
		if err := hub.Send(t.Context(), &wire.Send{ID: "m", Session: "s", Scope: "private", Workspace: "/w", Input: "x"}, p); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			q := <-open
			synctest.Wait()
			if len(open) != 0 {
				t.Error("two questions are open")
			}
			if err := p.says(q, q.Call, approval.AllowOnce); err != nil {
				t.Error(err)
			}
		}
		hub.runs.Wait()
	})
}

// TestAskCancelled: a run that is told to end asks nothing any more.
func TestAskCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(person)
		var hub *Hub
		p.seen = func(q *wire.ApprovalRequest) {
			if _, err := hub.Cancel(&wire.Cancel{ID: string(q.Run)}); err != nil {
				t.Error(err)
			}
		}
		store := &batches{memory: newMemory("s")}
		var answer approval.Answer
		hub = New(Config{Agent: "a", Log: log.Discard(), Worker: scripted{drive: func(ctx context.Context, r *Run) error {
			answer = r.Ask(ctx, question("call-1"))
			return answer.Err
		}}})
		hub.lives["s"] = newLive(hub, "s", func([]session.Ended) (ledger, error) { return store, nil })
		if err := hub.Send(t.Context(), &wire.Send{ID: "m", Session: "s", Scope: "private", Workspace: "/w", Input: "x"}, p); err != nil {
			t.Fatal(err)
		}
		hub.runs.Wait()
		if answer.Allowed || answer.Decision != approval.Cancelled || !errdefs.Is(answer.Err, errdefs.Cancelled) {
			t.Errorf("%+v", answer)
		}
		if want := []string{"user head start", "approval_request", "approval_result", "cancelled"}; !slices.Equal(store.seen, want) {
			t.Errorf("batches %q", store.seen)
		}
	})
}

// TestAskFinishing: a run that is told to finish starts no call any more, so that no
// question stays open, and none is asked.
func TestAskFinishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(person)
		var hub *Hub
		p.seen = func(*wire.ApprovalRequest) {
			if _, err := hub.Say("s", session.Input{Client: "f", Op: session.OpFinish, Text: "enough"}, p); err != nil {
				t.Error(err)
			}
		}
		store := &batches{memory: newMemory("s")}
		var answers []approval.Answer
		hub = New(Config{Agent: "a", Log: log.Discard(), Worker: scripted{drive: func(ctx context.Context, r *Run) error {
			answers = append(answers, r.Ask(ctx, question("call-1")), r.Ask(ctx, question("call-2")))
			return r.Deliver()
		}}})
		hub.lives["s"] = newLive(hub, "s", func([]session.Ended) (ledger, error) { return store, nil })
		if err := hub.Send(t.Context(), &wire.Send{ID: "m", Session: "s", Scope: "private", Workspace: "/w", Input: "x"}, p); err != nil {
			t.Fatal(err)
		}
		hub.runs.Wait()
		p.all.Wait()
		for _, a := range answers {
			if a.Allowed || a.Decision != approval.Cancelled || a.Err != nil {
				t.Errorf("%+v", a)
			}
		}
		want := []string{"user head start", "approval_request", "accepted", "approval_result", "user steering_delivered", "completed"}
		if !slices.Equal(store.seen, want) {
			t.Errorf("batches %q", store.seen)
		}
	})
}

// TestAskNobody: who is gone, or lagged, is not asked; and what can not be recorded
// allows nothing.
func TestAskNobody(t *testing.T) {
	gone := new(person)
	gone.board.Mute()
	for name, c := range map[string]struct {
		client *person
		refuse string
		want   string
		kind   errdefs.Kind
	}{
		"gone":            {client: gone, want: approval.Disconnected},
		"lagged":          {client: &person{deaf: true}, want: approval.Disconnected},
		"full":            {client: new(person), refuse: "approval_request", want: approval.Invalid, kind: errdefs.NoSpace},
		"full afterwards": {client: new(person), refuse: "approval_result", want: approval.AllowOnce, kind: errdefs.NoSpace},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &batches{memory: newMemory("s")}
			store.refuse = func(batch string) error {
				if batch == c.refuse {
					return errdefs.New(errdefs.NoSpace, "full")
				}
				return nil
			}
			c.client.seen = func(q *wire.ApprovalRequest) { _ = c.client.says(q, q.Call, approval.AllowOnce) }
			began := time.Now()
			answers, _ := asking(c.client, Config{}, store, question("call-1"))
			if a := answers[0]; a.Allowed || a.Decision != c.want || (a.Err != nil) != (c.kind != "") || a.Err != nil && !errdefs.Is(a.Err, c.kind) {
				t.Errorf("%s: %+v", name, a)
			}
			if waited := time.Since(began); waited > 0 {
				t.Errorf("%s: waited %s", name, waited)
			}
		})
	}
}

// TestPatience: who runs the daemon, and who asks, can only make it shorter.
func TestPatience(t *testing.T) {
	for _, c := range []struct{ cfg, wanted, want time.Duration }{
		{0, 0, libctx.ApprovalTimeout},
		{time.Minute, 0, time.Minute},
		{0, time.Second, time.Second},
		{time.Minute, time.Second, time.Second},
		{time.Hour, time.Hour, libctx.ApprovalTimeout},
		{-1, -1, libctx.ApprovalTimeout},
	} {
		if got := New(Config{Approval: c.cfg}).patience(c.wanted); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.cfg, c.wanted, got, c.want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		answers, _ := asking(new(person), Config{Approval: time.Second}, &batches{memory: newMemory("s")}, question("call-1"))
		if answers[0].Decision != approval.Timeout || time.Since(began) != time.Second {
			t.Errorf("%+v after %s", answers, time.Since(began))
		}
	})
}

// BenchmarkAsk is a question and its answer, without a disk and a socket.
func BenchmarkAsk(b *testing.B) {
	p := new(person)
	p.seen = func(q *wire.ApprovalRequest) { _ = p.says(q, q.Call, approval.AllowOnce) }
	q := make([]approval.Question, b.N)
	for i := range q {
		q[i] = question("call-1")
	}
	asking(p, Config{}, &batches{memory: newMemory("s")}, q...)
}
