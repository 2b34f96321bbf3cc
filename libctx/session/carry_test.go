package session

import (
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// pure says that calls of fs.read may be repeated, and notes what it was asked.
func pure(asked *[]OpenCall) Recovery {
	return Recovery{Replayable: func(c OpenCall) bool {
		*asked = append(*asked, c)
		return c.Name == "fs.read"
	}}
}

func recovered(t *testing.T, p Place, how Recovery) *Session {
	t.Helper()
	s, err := p.Recover("default", how)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// modelSays is an answer of a model with calls of fs.read, then one of bash.
func modelSays(run libctx.Run, reads ...libctx.Call) *Entry {
	e := says(run, "", append(reads, "last")...)
	e.Model = "p/m"
	e.Content[len(e.Content)-1].Name = "bash"
	return e
}

func carriedCalls(t *testing.T, s *Session) (ids []libctx.Call) {
	t.Helper()
	calls, err := s.Carried()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		ids = append(ids, c.Call)
	}
	return ids
}

func beginIn(s *Session, run libctx.Run, id libctx.ClientID, workspace, cwd string) []Record {
	records := begin(s, run, id, "q")
	start := records[2].(*Fact).Frame.(*wire.Start)
	start.Workspace, start.Cwd = workspace, cwd
	return records
}

// TestCarry: of a run whose host died, the calls that may be repeated wait for
// the next driven run, with what they need; the others are settled.
func TestCarry(t *testing.T) {
	for _, indexed := range []bool{false, true} {
		p := place(t)
		s := open(t, p, "default")
		dead, next, op := libctx.NewRun(), libctx.NewRun(), libctx.NewRun()
		commit(t, s, beginIn(s, dead, "m1", "/w", "/workspace/a")...)
		commit(t, s, modelSays(dead, "c1", "c2", "c3"))
		commit(t, s, result(dead, "c2", "known"))
		commit(t, s, beginTsh(op, "t1"), tshCall(op, "c1"))
		s.die()

		var asked []OpenCall
		s = recovered(t, p, pure(&asked))
		if len(asked) != 3 || asked[0].Run != dead || asked[0].Workspace != "/w" || asked[0].Cwd != "/workspace/a" || string(asked[0].Arguments) == "" {
			t.Errorf("asked about %+v", asked)
		}
		if got, want := s.Settled(), []SettledCall{{dead, "last", "bash"}, {op, "c1", "fs.read"}}; !slices.Equal(got, want) {
			t.Errorf("settled %v, want %v", got, want)
		}
		ledger := read(t, p.dir("default")+"/"+ledgerFile)
		if !strings.Contains(ledger, `"outcome":"interrupted"`) || !strings.Contains(ledger, `"carried":["c1","c3"]`) {
			t.Errorf("ledger\n%s", ledger)
		}
		if indexed {
			closeOf(t, s)
		} else {
			s.die()
		}

		// As long as no driven run begins they wait.
		s = recovered(t, p, pure(&asked))
		if got := carriedCalls(t, s); !slices.Equal(got, []libctx.Call{"c1", "c3"}) {
			t.Fatalf("carried %v", got)
		}
		again, err := s.Carried()
		if err != nil || again[0].Run != dead || again[0].Workspace != "/w" || again[0].Cwd != "/workspace/a" || string(again[0].Arguments) != string(asked[0].Arguments) {
			t.Errorf("carried %+v, %v", again, err)
		}
		other := libctx.NewRun()
		commit(t, s, beginTsh(other, "t2"))
		_, err = s.Commit(&Fact{Run: other, Frame: &wire.ToolResult{Head: wire.Head{Type: "tool_result"}, Call: "c1", Status: "ok"}})
		wantKind(t, err, errdefs.Invalid)
		commit(t, s, done(other))

		commit(t, s, begin(s, next, "m2", "go on")...)
		events := commit(t, s, result(next, "c1", "read again"))
		if got := string(events[0].Line); !strings.Contains(got, string(next)+".2") || !strings.Contains(got, `"name":"fs.read"`) {
			t.Errorf("result is %s", got)
		}
		_, err = s.Commit(result(next, "c1", "twice"))
		wantKind(t, err, errdefs.Invalid)
		_, err = s.Commit(done(next))
		wantKind(t, err, errdefs.Invalid, "c3")
		unknown := again[1].Unknown(next)
		commit(t, s, unknown, done(next))
		if got := carriedCalls(t, s); len(got) != 0 {
			t.Errorf("carried %v", got)
		}
		closeOf(t, s)
		if s = open(t, p, "default"); len(s.Settled()) != 0 {
			t.Errorf("settled %v", s.Settled())
		}
		closeOf(t, s)
	}
}

// TestCarriedOnce: a call is carried into one run. If that dies too, nobody knows.
func TestCarriedOnce(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	dead, next := libctx.NewRun(), libctx.NewRun()
	commit(t, s, append(begin(s, dead, "m1", "q"), modelSays(dead, "c1", "c2"))...)
	s.die()
	var asked []OpenCall
	s = recovered(t, p, pure(&asked))
	commit(t, s, begin(s, next, "m2", "q")...)
	commit(t, s, result(next, "c1", "again"))
	own := modelSays(next, "c9")
	commit(t, s, own, policy(next, "c2", true))
	s.die()
	s = recovered(t, p, pure(&asked))
	if got := carriedCalls(t, s); !slices.Equal(got, []libctx.Call{"c9"}) {
		t.Errorf("carried %v", got)
	}
	if got, want := s.Settled(), []SettledCall{{dead, "c2", "fs.read"}, {next, "last", "bash"}}; !slices.Equal(got, want) {
		t.Errorf("settled %v, want %v", got, want)
	}
	ledger := read(t, p.dir("default")+"/"+ledgerFile)
	for _, want := range []string{
		`"call":"c2","name":"fs.read","status":"error","text":"` + OutcomeUnknown,
		`"call":"last","name":"bash","status":"error","text":"` + NeverBegun,
	} {
		if !strings.Contains(ledger, want) {
			t.Errorf("no %s in\n%s", want, ledger)
		}
	}
}

// TestCarriedCallBegun: whether a carried call was begun is known as long as it
// waits, with and without the index.
func TestCarriedCallBegun(t *testing.T) {
	for _, indexed := range []bool{false, true} {
		p := place(t)
		s := open(t, p, "default")
		dead := libctx.NewRun()
		commit(t, s, append(begin(s, dead, "m1", "q"), modelSays(dead, "c1", "c2"))...)
		commit(t, s, policy(dead, "c1", true))
		s.die()
		var asked []OpenCall
		s = recovered(t, p, pure(&asked))
		if indexed {
			closeOf(t, s)
		} else {
			s.die()
		}
		s = recovered(t, p, pure(&asked))
		calls, err := s.Carried()
		if err != nil || len(calls) != 2 || calls[0].Lost() != OutcomeUnknown || calls[1].Lost() != NeverBegun {
			t.Errorf("carried %+v, %v", calls, err)
		}
	}
}

// TestNothingToCarry: calls of an executable agent, calls that a model wrote
// wrongly, and those of a run whose end is known.
func TestNothingToCarry(t *testing.T) {
	for name, change := range map[string]func(*Entry, *Recovery, libctx.Run){
		"executable agent": func(e *Entry, _ *Recovery, _ libctx.Run) { e.Model = "" },
		"written wrongly":  func(e *Entry, _ *Recovery, _ libctx.Run) { e.Content[0].Invalid = "{" },
		"end is known": func(_ *Entry, how *Recovery, run libctx.Run) {
			how.Ended = []Ended{{Run: run, Code: errdefs.NoSpace, Message: "full"}}
		},
		"nobody says so": func(_ *Entry, how *Recovery, _ libctx.Run) { how.Replayable = nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := place(t)
			s := open(t, p, "default")
			run := libctx.NewRun()
			var asked []OpenCall
			how := pure(&asked)
			e := modelSays(run, "c1")
			change(e, &how, run)
			commit(t, s, append(begin(s, run, "m1", "q"), e)...)
			s.die()
			s = recovered(t, p, how)
			if got := carriedCalls(t, s); len(got) != 0 || len(s.Settled()) != 2 {
				t.Errorf("carried %v, settled %v", got, s.Settled())
			}
		})
	}
}

// TestLateResultWithoutItsCall: a conversation that begins behind a call has no
// result of it, wherever that is.
func TestLateResultWithoutItsCall(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	dead, next := libctx.NewRun(), libctx.NewRun()
	long := modelSays(dead, "c1")
	long.Content = append(long.Content, wire.Text(strings.Repeat("x", 10000)))
	commit(t, s, append(begin(s, dead, "m1", "q"), long)...)
	s.die()
	var asked []OpenCall
	s = recovered(t, p, pure(&asked))
	commit(t, s, begin(s, next, "m2", "go on")...)
	commit(t, s, result(next, "c1", "again"), says(next, "answer"))
	shape := func(max int) string {
		entries, err := s.Conversation(max)
		if err != nil {
			t.Fatal(err)
		}
		var roles []string
		for _, e := range entries {
			roles = append(roles, e.Role)
		}
		return strings.Join(roles, " ")
	}
	if got := shape(1 << 20); got != "user assistant tool user tool assistant" {
		t.Errorf("all: %s", got)
	}
	if got := shape(5000); got != "user assistant" {
		t.Errorf("the newest: %s", got)
	}
}
