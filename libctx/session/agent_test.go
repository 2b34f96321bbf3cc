package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

func agentStart() *Fact {
	return &Fact{Event: NewEvent(), Frame: &wire.AgentStart{
		Head: wire.Head{Type: "agent.start"}, Terminal: "terminal-coder-default", Supervisor: "direct",
		Unit: "cortexfs-terminal:coder:default.service", Invocation: "0f", PID: 7, Started: 8, Boot: "b",
	}}
}

func agentStop() *Fact {
	return &Fact{Event: NewEvent(), Frame: &wire.AgentStop{
		Head: wire.Head{Type: "agent.stop"}, Terminal: "terminal-coder-default", Supervisor: "direct",
		Unit: "cortexfs-terminal:coder:default.service", Invocation: "0f", PID: 7,
	}}
}

// Facts of a terminal are in the history of its session and are no run: nobody
// waits for their end, whenever the host dies.
func TestAgentFacts(t *testing.T) {
	for name, damage := range map[string]func(dir string){
		"as they are":   func(string) {},
		"without index": func(dir string) { os.Remove(filepath.Join(dir, "context", "ledger.idx")) },
		"without events": func(dir string) {
			os.Remove(filepath.Join(dir, "context", "ledger.idx"))
			os.Remove(filepath.Join(dir, eventsFile))
		},
		"with another's index": func(dir string) {
			write(t, filepath.Join(dir, "context", "ledger.idx"), strings.Replace(indexMagic, "\x06", "\x05", 1)+"…")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := place(t)
			s := open(t, p, "default")
			first := commit(t, s, agentStart())
			if len(first) != 1 || first[0].Run != "" || first[0].ID == "" {
				t.Fatalf("%+v", first)
			}
			if i := s.Info(); i.State != StateIdle || i.Active != "" || i.Turns != 0 {
				t.Errorf("%+v", i)
			}
			if got := strings.TrimSpace(read(t, filepath.Join(p.dir("default"), "state"))); got != StateIdle {
				t.Errorf("state is %q", got)
			}
			run := libctx.NewRun()
			commit(t, s, begin(s, run, "m1", "q")...)
			commit(t, s, agentStop(), says(run, "a"))
			commit(t, s, done(run), agentStart())
			want, _, err := s.ReadEvents(0, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			closeOf(t, s)
			damage(p.dir("default"))
			s = open(t, p, "default")
			got, _, err := s.ReadEvents(0, 1<<20)
			if err != nil || len(got) != len(want) || len(got) != 6 {
				t.Fatalf("%d events, not %d: %v", len(got), len(want), err)
			}
			for i := range got {
				if string(got[i]) != string(want[i]) {
					t.Errorf("event %d is %s, not %s", i, got[i], want[i])
				}
			}
			if !strings.HasPrefix(string(got[0]), `{"type":"agent.start","id":"`+string(first[0].ID)+`","terminal":`) {
				t.Errorf("%s", got[0])
			}
			after, err := s.FindEvent(first[0].ID)
			if err != nil || after != int64(len(got[0])) {
				t.Errorf("what follows it is at %d, %v", after, err)
			}
			if i := s.Info(); i.State != StateDone || i.Active != "" || i.Turns != 1 {
				t.Errorf("%+v", i)
			}
			if len(s.Settled()) != 0 || strings.Contains(read(t, filepath.Join(p.dir("default"), ledgerFile)), Interrupted) {
				t.Error("something was settled")
			}
		})
	}
}

// Only facts of terminals may be without a run, and they have an event.
func TestLoneFactsAreChecked(t *testing.T) {
	s := open(t, place(t), "default")
	run := libctx.NewRun()
	commit(t, s, begin(s, run, "m1", "q")...)
	for name, f := range map[string]*Fact{
		"no event":  {Frame: agentStart().Frame},
		"of a run":  {Run: run, Event: NewEvent(), Frame: agentStart().Frame},
		"a start":   {Event: NewEvent(), Frame: &wire.Start{Head: wire.Head{Type: "start"}, ClientID: "x", Op: "send"}},
		"a result":  {Event: NewEvent(), Frame: &wire.ToolResult{Head: wire.Head{Type: "tool_result"}, Call: "c", Status: "ok"}},
		"any frame": {Event: NewEvent(), Frame: &wire.Done{Head: wire.Head{Type: "done"}, Status: "ok"}},
	} {
		if _, err := s.Commit(f); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A full session can still say that its terminal was stopped.
func TestAgentStopOfAFullSession(t *testing.T) {
	s := open(t, place(t), "default")
	commit(t, s, agentStart())
	s.limits.ledger = s.st.size + s.limits.reserve - 1
	_, err := s.Commit(agentStart())
	wantKind(t, err, errdefs.NoSpace)
	commit(t, s, agentStop())
}
