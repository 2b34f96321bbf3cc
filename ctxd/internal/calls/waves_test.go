package calls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/session"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// kinds of fake calls, by the first letter of their name.
const (
	reads   = 'r' // observes
	changes = 'c'
	denied  = 'd'
	lost    = 'l' // no decision can be had
	vetoed  = 'v' // observes, and is refused when it is authorized
	over    = 'o' // observes, and the run is over when it is authorized
	fatal   = 'f' // its execution ends the run
)

// fake is a counter that notes what happens.
type fake struct {
	mu      sync.Mutex
	log     []string
	running int
	most    int
	held    int // tickets that were not closed

	meet   map[string]chan struct{} // an execution waits for its channel, if it has one
	began  func(name string)
	refuse func(batch string) error // of commits
	free   func() bool
}

func (f *fake) finishing() bool { return f.free != nil && f.free() }

type fakeTicket struct {
	of         *fake
	name       string
	authorized bool
}

func (t *fakeTicket) Observes() bool { return strings.IndexByte("rvo", t.name[0]) >= 0 }

func (t *fakeTicket) Replayable() bool { return t.Observes() }

func (t *fakeTicket) Refusal() (toolrun.Result, bool) {
	return toolrun.Failure("no"), t.name[0] == denied || t.name[0] == vetoed && t.authorized
}

func (f *fake) authorize(_ context.Context, tk ticket) error {
	t := tk.(*fakeTicket)
	if t.authorized {
		panic("authorized twice")
	}
	t.authorized = true
	if t.name[0] == over {
		return errors.New("over")
	}
	return nil
}

func (t *fakeTicket) Close() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.held--
}

func (f *fake) note(format string, args ...any) {
	f.log = append(f.log, fmt.Sprintf(format, args...))
}

func (f *fake) decide(c toolrun.Call) (ticket, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Name[0] == lost {
		return nil, errors.New("lost")
	}
	f.held++
	return &fakeTicket{of: f, name: string(c.Name)}, nil
}

func (f *fake) execute(ctx context.Context, t ticket) (toolrun.Result, error) {
	name := t.(*fakeTicket).name
	if !t.(*fakeTicket).authorized {
		panic("executed without authority")
	}
	f.mu.Lock()
	f.running++
	f.most = max(f.most, f.running)
	f.note("run %s", name)
	gate, began := f.meet[name], f.began
	f.mu.Unlock()
	if began != nil {
		began(name)
	}
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
	if name[0] == fatal {
		return toolrun.Failure("died"), errors.New("fatal")
	}
	if err := context.Cause(ctx); err != nil {
		return toolrun.Failure("stopped"), err
	}
	return toolrun.Result{Status: "ok"}, nil
}

func (f *fake) commit(decisions []ticket, results []settled) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var batch []string
	for _, t := range decisions {
		batch = append(batch, "?"+t.(*fakeTicket).name)
	}
	for _, s := range results {
		word := "=" + string(s.call.Name)
		if s.res.Content == session.OutcomeUnknown {
			word += "?"
		}
		batch = append(batch, word)
	}
	text := strings.Join(batch, " ")
	if f.refuse != nil {
		if err := f.refuse(text); err != nil {
			return err
		}
	}
	f.note("commit %s", text)
	return nil
}

func list(names string) (calls []toolrun.Call) {
	for _, n := range strings.Fields(names) {
		calls = append(calls, toolrun.Call{ID: libctx.Call(n), Name: libctx.Tool(n)})
	}
	return calls
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		calls string
		want  []string
		err   string
	}{
		{calls: ""},
		{calls: "c1", want: []string{"commit ?c1", "run c1", "commit =c1"}},
		{calls: "c1 c2", want: []string{"commit ?c1", "run c1", "commit =c1", "commit ?c2", "run c2", "commit =c2"}},
		{calls: "d1 c2", want: []string{"commit ?d1 =d1", "commit ?c2", "run c2", "commit =c2"}},
		{calls: "r1 c2", want: []string{"commit ?r1", "run r1", "commit =r1", "commit ?c2", "run c2", "commit =c2"}},
		{calls: "r1 d2", want: []string{"commit ?r1", "run r1", "commit =r1", "commit ?d2 =d2"}},
		{calls: "f1 c2 r3", want: []string{"commit ?f1", "run f1", "commit =f1", "commit =c2 =r3"}, err: "fatal"},
		{calls: "c1 l2 c3", want: []string{"commit ?c1", "run c1", "commit =c1", "commit =l2 =c3"}, err: "lost"},
		{calls: "v1 c2", want: []string{"commit ?v1 =v1", "commit ?c2", "run c2", "commit =c2"}},
		{calls: "v1 v2", want: []string{"commit ?v1 ?v2 =v1 =v2"}},
		{calls: "v1 r2 v3", want: []string{"commit ?v1 ?r2 ?v3 =v1 =v3", "run r2", "commit =r2"}},
		{calls: "r1 o2 c3", want: []string{"commit =r1 =o2 =c3"}, err: "over"},
		{calls: "r1 l2", want: []string{"commit =r1 =l2"}, err: "lost"},
	} {
		f := &fake{}
		err := carryOut(t.Context(), f, list(c.calls))
		if diff := cmp.Diff(c.want, f.log); diff != "" {
			t.Errorf("%s: %s", c.calls, diff)
		}
		if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %v, want %q", c.calls, err, c.err)
		}
		if f.held != 0 {
			t.Errorf("%s: %d tickets were not closed", c.calls, f.held)
		}
	}
}

// TestWavesOverlap: four observations run beside each other, a fifth waits, and
// each result is durable when it is there, not when all are.
func TestWavesOverlap(t *testing.T) {
	f := &fake{meet: map[string]chan struct{}{}}
	var names []string
	for i := range 5 {
		names = append(names, fmt.Sprintf("r%d", i))
		f.meet[names[i]] = make(chan struct{})
	}
	began := make(chan string, 5)
	f.began = func(name string) { began <- name }
	committed := make(chan string, 10)
	f.refuse = func(batch string) error { committed <- batch; return nil }
	ended := make(chan error, 1)
	go func() { ended <- carryOut(t.Context(), f, list(strings.Join(names, " "))) }()
	if got := <-committed; got != "?r0 ?r1 ?r2 ?r3" {
		t.Fatalf("decided %s", got)
	}
	var seen []string
	for range 4 {
		seen = append(seen, <-began)
	}
	slices.Sort(seen)
	if !slices.Equal(seen, names[:4]) {
		t.Fatalf("%v run beside each other", seen)
	}
	for _, i := range []int{2, 0, 3, 1} {
		close(f.meet[names[i]])
		if got := <-committed; got != "="+names[i] {
			t.Errorf("%s was committed when %s ended", got, names[i])
		}
	}
	if got := <-committed; got != "?r4" {
		t.Errorf("then %s", got)
	}
	<-began
	close(f.meet["r4"])
	if err := <-ended; err != nil || f.most != 4 {
		t.Errorf("%v, %d at once", err, f.most)
	}
}

// TestCancelled: what was not started when the run is cancelled is not started,
// and has its result all the same; what runs is told, and its result is kept.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("cancelled")
	f := &fake{meet: map[string]chan struct{}{"r1": make(chan struct{}), "r2": make(chan struct{})}}
	both := make(chan struct{}, 2)
	f.began = func(string) { both <- struct{}{} }
	go func() { <-both; <-both; cancel(why) }()
	err := carryOut(ctx, f, list("r1 r2 c3 c4"))
	if !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if last := f.log[len(f.log)-1]; last != "commit =c3 =c4" {
		t.Errorf("ends with %s", last)
	}
	f = &fake{}
	if err := carryOut(ctx, f, list("c1")); !errors.Is(err, why) || !slices.Equal(f.log, []string{"commit =c1"}) {
		t.Errorf("%v %v", err, f.log)
	}
}

// TestFinish: a run that is told to finish starts no call any more, and goes on.
func TestFinish(t *testing.T) {
	asked := 0
	f := &fake{free: func() bool { asked++; return asked > 1 }}
	err := carryOut(t.Context(), f, list("c1 c2 r3"))
	if diff := cmp.Diff([]string{"commit ?c1", "run c1", "commit =c1", "commit =c2 =r3"}, f.log); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// TestDecisionIsDurableFirst: nothing runs whose decision could not be kept.
func TestDecisionIsDurableFirst(t *testing.T) {
	full := errors.New("full")
	f := &fake{refuse: func(batch string) error {
		if strings.HasPrefix(batch, "?") {
			return full
		}
		return nil
	}}
	err := carryOut(t.Context(), f, list("r1 r2 c3"))
	if !errors.Is(err, full) || !slices.Equal(f.log, []string{"commit =r1 =r2 =c3"}) {
		t.Errorf("%v %v", err, f.log)
	}
}

// TestEveryCallIsSettledOnce, whatever the calls are.
func TestEveryCallIsSettledOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.SliceOfN(rapid.SampledFrom([]rune{reads, reads, reads, changes, denied, lost, fatal, vetoed, over}), 0, 20).Draw(t, "kinds")
		var names []string
		for i, k := range kinds {
			names = append(names, fmt.Sprintf("%c%d", k, i))
		}
		f := &fake{}
		_ = carryOut(context.Background(), f, list(strings.Join(names, " ")))
		results, decided, ran := map[string]int{}, map[string]bool{}, map[string]int{}
		for _, line := range f.log {
			if name, ok := strings.CutPrefix(line, "run "); ok {
				if ran[name]++; !decided[name] {
					t.Fatalf("%s ran before its decision was durable", name)
				}
				continue
			}
			for _, word := range strings.Fields(line)[1:] {
				if word[0] == '?' {
					decided[word[1:]] = true
				} else {
					results[word[1:]]++
				}
			}
		}
		for _, name := range names {
			if results[name] != 1 || ran[name] > 1 || strings.IndexByte("dvo", name[0]) >= 0 && ran[name] > 0 {
				t.Fatalf("%s: %d results, ran %d times in %v", name, results[name], ran[name], f.log)
			}
		}
		if f.held != 0 || f.most > libctx.MaxWave {
			t.Fatalf("%d tickets held, %d at once", f.held, f.most)
		}
	})
}

func TestObservation(t *testing.T) {
	for _, class := range []control.Effect{
		control.Pure, control.WorkspaceRead, control.HostRead, control.WorkspaceMutation, control.HostMutation,
		control.HostProcess, control.Network, control.Delegation, control.Extension, control.Unknown,
	} {
		want := class == control.Pure || class == control.WorkspaceRead || class == control.HostRead
		if observation(string(class)) != want {
			t.Errorf("%s: %v", class, !want)
		}
	}
	if observation("") || observation("later") {
		t.Error("what is not known is no observation")
	}
}
