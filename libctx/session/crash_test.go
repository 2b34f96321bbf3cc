package session

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// die leaves a session the way a killed process does: no index, no goodbye.
func (s *Session) die() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
}

// freshFold is the event log that a ledger implies.
func freshFold(ledger []byte) (string, error) {
	var f Fold
	var b strings.Builder
	for _, l := range bytes.SplitAfter(ledger, []byte("\n")) {
		if len(l) == 0 {
			continue
		}
		events, err := f.Next(l)
		if err != nil {
			return "", fmt.Errorf("%w: %q", err, l)
		}
		b.WriteString(text(events))
	}
	return b.String(), nil
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// checkFiles holds for a session that is open: every line is whole, the
// events are the fold of the ledger, every run is over, every call answered
// once, and the state in memory is the one a scan finds.
func checkFiles(t failer, p Place, s *Session, acknowledged []byte, settled bool) {
	t.Helper()
	ledger, err := os.ReadFile(p.dir(s.name) + "/messages.jsonl")
	if err != nil {
		t.Fatalf("%v", err)
	}
	if !bytes.HasPrefix(ledger, acknowledged) {
		t.Fatalf("acknowledged records are gone:\n%s\nnow\n%s", acknowledged, ledger)
	}
	st := newState()
	if err := scan(bytes.NewReader(ledger), st, int64(len(ledger)), nil); err != nil {
		t.Fatalf("%v", err)
	}
	want, err := freshFold(ledger)
	if err != nil {
		t.Fatalf("%v", err)
	}
	got, err := os.ReadFile(p.dir(s.name) + "/events.jsonl")
	if err != nil {
		t.Fatalf("%v", err)
	}
	if string(got) != want || s.EventsEnd() != int64(len(want)) || s.eventsCRC != update(0, got) {
		t.Fatalf("events (end %d) are\n%s\nthe fold of the ledger is\n%s", s.EventsEnd(), got, want)
	}
	if a, b := (&index{state: st}).encode(), (&index{state: s.st}).encode(); !bytes.Equal(a, b) {
		t.Fatalf("the state in memory is not the one of the ledger:\n%+v\n%+v", s.st, st)
	}
	if settled && (len(st.fold.runs) > 0 || st.unstarted != 0) {
		t.Fatalf("open runs %v, message without start e%d", st.fold.runs, st.unstarted)
	}
	entries, err := s.Conversation(1 << 30)
	if err != nil {
		t.Fatalf("%v", err)
	}
	open := map[string]int{}
	for _, e := range entries {
		for _, part := range e.Content {
			switch part.Type {
			case "tool_call":
				open[string(part.Call)]++
			case "tool_result":
				open[string(part.Call)]--
			}
		}
	}
	for _, c := range st.fold.carried {
		if settled && lastDriven(t, ledger) != c.run {
			t.Errorf("call %s of run %s is carried on a second time", c.call.Call, c.run)
		}
		open[string(c.call.Call)]--
	}
	for call, n := range open {
		if settled && n != 0 {
			t.Errorf("call %s is %d results short", call, n)
		}
	}
	checkInputs(t, ledger, settled)
	checkLost(t, ledger)
}

// checkLost: what the result of a call that a dead host left says of it is true.
func checkLost(t failer, ledger []byte) {
	t.Helper()
	allowed := map[libctx.Call]bool{}
	for l := range bytes.Lines(ledger) {
		r, err := DecodeRecord(l)
		if err != nil {
			t.Fatalf("%v", err)
		}
		said := map[libctx.Call]string{}
		switch r := r.(type) {
		case *Entry:
			for _, p := range r.Content {
				said[p.Call] = p.Text
			}
		case *Fact:
			switch f := r.Frame.(type) {
			case *wire.ToolPolicy:
				allowed[f.Call] = allowed[f.Call] || f.Allowed
			case *wire.ToolResult:
				said[f.Call] = f.Content
			}
		}
		for call, text := range said {
			if text == OutcomeUnknown && !allowed[call] || text == NeverBegun && allowed[call] {
				t.Errorf("call %s, allowed %v: %s", call, allowed[call], text)
			}
		}
	}
}

// lastDriven is the driven run that started last.
func lastDriven(t failer, ledger []byte) (run libctx.Run) {
	t.Helper()
	for l := range bytes.Lines(ledger) {
		b, err := decodeBrief(l)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if b.starts() && b.Frame.Op != "tsh" {
			run = b.Run
		}
	}
	return run
}

// checkInputs: every accepted input is an entry exactly once, with its words, and
// told to be delivered exactly once, behind it.
func checkInputs(t failer, ledger []byte, settled bool) {
	t.Helper()
	waits, entered := map[libctx.ClientID]Input{}, map[libctx.ClientID]bool{}
	for l := range bytes.Lines(ledger) {
		r, err := DecodeRecord(l)
		if err != nil {
			t.Fatalf("%v", err)
		}
		switch r := r.(type) {
		case *Entry:
			if r.Origin == "" {
				continue
			}
			if in, ok := waits[r.ClientID]; !ok || entered[r.ClientID] || in.Text != r.Text() || in.Op != r.Origin {
				t.Errorf("entry %s of input %s: accepted %v as %q, entered %v", r.ID, r.ClientID, ok, in, entered[r.ClientID])
			}
			entered[r.ClientID] = true
		case *Fact:
			switch f := r.Frame.(type) {
			case *wire.Accepted:
				waits[f.ClientID] = Input{f.ClientID, f.Op, f.Input}
			case *wire.Delivered:
				if !entered[f.ClientID] || waits[f.ClientID].Op != f.Op {
					t.Errorf("input %s is delivered, entered %v, op %s", f.ClientID, entered[f.ClientID], f.Op)
				}
				delete(waits, f.ClientID)
			}
		}
	}
	if settled && len(waits) > 0 {
		t.Errorf("never delivered: %v", waits)
	}
}

// memoryDir is a directory whose syncs cost nothing, where there is one. What
// is lost here is what the test takes away, not what a disk forgets.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "cortexfs-session-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// crash replaces the files by what a crash may leave of them.
func crash(p Place, name libctx.Session, ledger, events []byte) error {
	if err := os.WriteFile(p.dir(name)+"/messages.jsonl", ledger, 0o600); err != nil {
		return err
	}
	return os.WriteFile(p.dir(name)+"/events.jsonl", events, 0o600)
}

// The host dies at every byte of an append, for each kind of batch.
func TestCrashAtEveryByte(t *testing.T) {
	runs := []libctx.Run{libctx.NewRun(), libctx.NewRun()}
	batches := []func(s *Session) []Record{
		func(s *Session) []Record { return begin(s, runs[0], "m1", "q") },
		func(s *Session) []Record { return []Record{says(runs[0], "t", "c1", "c2"), &Usage{Run: runs[0]}} },
		func(s *Session) []Record { return []Record{result(runs[0], "c1", "r")} },
		func(s *Session) []Record {
			return []Record{Input{Client: "i1", Op: OpSteer, Text: "left"}.Accept(runs[0], "p")}
		},
		func(s *Session) []Record {
			return []Record{Input{Client: "i2", Op: OpFollowUp, Text: "right"}.Accept(runs[0], "p")}
		},
		func(s *Session) []Record { return Input{Client: "i1", Op: OpSteer, Text: "left"}.Deliver(runs[0]) },
		func(s *Session) []Record { return []Record{beginTsh(runs[1], "t1"), tshCall(runs[1], "c1")} },
		func(s *Session) []Record {
			last := Input{Client: "i2", Op: OpFollowUp, Text: "right"}.Deliver(runs[0])
			return append(append([]Record{result(runs[0], "c2", "r"), says(runs[0], "a")}, last...), done(runs[0]))
		},
		func(s *Session) []Record { return []Record{tshResult(runs[1], "c1"), done(runs[1])} },
	}
	for i := range batches {
		p := placeIn(memoryDir(t))
		s := open(t, p, "default")
		for _, b := range batches[:i] {
			commit(t, s, b(s)...)
		}
		before := []byte{}
		if i > 0 {
			before = []byte(read(t, p.dir("default")+"/messages.jsonl"))
		}
		commit(t, s, batches[i](s)...)
		after := []byte(read(t, p.dir("default")+"/messages.jsonl"))
		events := []byte(read(t, p.dir("default")+"/events.jsonl"))
		s.die()
		for at := len(before); at <= len(after); at++ {
			// Of the log, which is written later and not synced, any part may be there.
			if err := crash(p, "default", after[:at], events[:len(events)*(at%7)/6]); err != nil {
				t.Fatal(err)
			}
			acknowledged := before
			if at == len(after) {
				acknowledged = after
			}
			s, err := p.Open("default")
			if err != nil {
				t.Fatalf("batch %d, byte %d: %v", i, at, err)
			}
			if s.st.seq > 0 {
				checkFiles(t, p, s, acknowledged, true)
			}
			// The client that got no answer sends again.
			if _, _, ok, err := s.Client("m1"); err != nil || ok && i == 0 && at < len(after) {
				t.Errorf("batch %d, byte %d: client id %v %v", i, at, ok, err)
			} else if !ok {
				turn(t, s, "m1", "q", "a")
				entries, err := s.Conversation(1 << 20)
				if err != nil || len(entries) != 2 {
					t.Errorf("batch %d, byte %d: %d entries, %v", i, at, len(entries), err)
				}
			}
			s.die()
		}
	}
}

func tshCall(run libctx.Run, call libctx.Call) Record {
	return &Fact{Run: run, Frame: &wire.ToolCall{Head: wire.Head{Type: "tool_call"}, Call: call, Name: "fs.read", Arguments: []byte(`{"args":["x"]}`)}}
}

func tshResult(run libctx.Run, call libctx.Call) Record {
	return &Fact{Run: run, Frame: &wire.ToolResult{Head: wire.Head{Type: "tool_result"}, Call: call, Name: "fs.read", Status: "ok", Content: "x"}}
}

func policy(run libctx.Run, call libctx.Call, allowed bool) Record {
	return &Fact{Run: run, Frame: &wire.ToolPolicy{Head: wire.Head{Type: "tool_policy"}, Call: call, Allowed: allowed}}
}

// story makes random valid batches for a session.
type story struct {
	ids, calls int
	tips       []string // where a run ended, so that no call there is unanswered
}

func (y *story) batch(t *rapid.T, s *Session) []Record {
	type choice struct {
		weight int
		make   func() []Record
	}
	var choices []choice
	add := func(weight int, make func() []Record) { choices = append(choices, choice{weight, make}) }
	client := func() libctx.ClientID { y.ids++; return libctx.ClientID(fmt.Sprint("id", y.ids)) }
	call := func() libctx.Call { y.calls++; return libctx.Call(fmt.Sprint("call", y.calls)) }
	if s.st.active() == "" {
		if len(s.st.fold.carried) == 0 { // else its result comes on one branch only
			y.tips = append(y.tips, entryID(s.st.tip))
		}
		add(4, func() []Record { return begin(s, libctx.NewRun(), client(), rapid.String().Draw(t, "question")) })
		if len(y.tips) > 0 {
			add(1, func() []Record {
				return []Record{&Head{ID: rapid.SampledFrom(y.tips).Draw(t, "head")}}
			})
		}
	}
	if len(s.st.fold.runs) < 4 {
		add(1, func() []Record { return []Record{beginTsh(libctx.NewRun(), client())} })
	}
	for _, r := range s.st.fold.runs {
		run := r.run
		if carried := s.st.fold.carried; !r.tsh && len(carried) > 0 {
			add(3, func() []Record {
				return []Record{result(run, rapid.SampledFrom(carried).Draw(t, "carried").call.Call, "again")}
			})
			add(1, func() []Record {
				return []Record{policy(run, rapid.SampledFrom(carried).Draw(t, "carried").call.Call, rapid.Bool().Draw(t, "allowed"))}
			})
		}
		for _, c := range r.calls {
			add(2, func() []Record { return []Record{policy(run, c.Call, rapid.Bool().Draw(t, "allowed"))} })
			add(3, func() []Record {
				if r.tsh {
					return []Record{tshResult(run, c.Call)}
				}
				return []Record{result(run, c.Call, rapid.String().Draw(t, "result"))}
			})
		}
		if len(r.calls)+len(r.inputs) == 0 && (r.tsh || len(s.st.fold.carried) == 0) {
			add(2, func() []Record {
				return []Record{&Checkpoint{Run: run, Outcome: rapid.SampledFrom([]string{Completed, Failed, Cancelled, MaxTurns}).Draw(t, "outcome")}}
			})
		}
		if r.tsh {
			add(1, func() []Record { return []Record{tshCall(run, call())} })
			continue
		}
		add(3, func() []Record {
			m := says(run, rapid.String().Draw(t, "text"))
			m.Model = rapid.SampledFrom([]libctx.Model{"", "p/m"}).Draw(t, "model")
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				m.Content = append(m.Content, says(run, "", call()).Content...)
			}
			return []Record{m, &Usage{Run: run, Kind: "assistant", Input: 3, Output: 4, Cost: new(int64(5))}}
		})
		add(1, func() []Record {
			return []Record{&UsageUncertain{Run: run, Kind: "assistant"},
				&Fact{Run: run, Frame: &wire.ToolPolicy{Head: wire.Head{Type: "tool_policy"}, Call: "c", Reason: rapid.String().Draw(t, "reason")}}}
		})
		if len(r.inputs) < 4 {
			add(2, func() []Record {
				op := rapid.SampledFrom([]string{OpSteer, OpFollowUp, OpFinish}).Draw(t, "op")
				return []Record{Input{Client: client(), Op: op, Text: rapid.StringN(1, 8, -1).Draw(t, "input")}.Accept(run, "p")}
			})
		}
		if len(r.inputs) > 0 {
			add(2, func() []Record {
				records, err := s.deliver(&openRun{run: run, inputs: r.inputs[:1]})
				if err != nil {
					t.Fatalf("%v", err)
				}
				return records
			})
		}
	}
	var all []func() []Record
	for _, c := range choices {
		for range c.weight {
			all = append(all, c.make)
		}
	}
	return rapid.SampledFrom(all).Draw(t, "batch")()
}

// Whatever was committed, and wherever the host died while it appended: the
// session opens, has lost nothing it acknowledged, and says the same everywhere.
func TestCrashAnywhere(t *testing.T) {
	base := memoryDir(t)
	n := 0
	// Every other call may be repeated.
	how := Recovery{Replayable: func(c OpenCall) bool { return strings.ContainsAny(string(c.Call[len(c.Call)-1:]), "02468") }}
	rapid.Check(t, func(t *rapid.T) {
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		defer os.RemoveAll(dir)
		p := placeIn(dir)
		var y story
		var acknowledged, before, log []byte
		ledger, events := p.dir("default")+"/messages.jsonl", p.dir("default")+"/events.jsonl"
		for range rapid.IntRange(1, 3).Draw(t, "lives") {
			s, err := p.Recover("default", how)
			if err != nil {
				t.Fatalf("%v", err)
			}
			if s.st.seq > 0 {
				checkFiles(t, p, s, acknowledged, true)
				acknowledged, _ = os.ReadFile(ledger)
			}
			y.tips = nil // entries that were not acknowledged may be gone
			for range rapid.IntRange(1, 12).Draw(t, "batches") {
				before = acknowledged
				records := y.batch(t, s)
				got, err := s.Commit(records...)
				if err != nil {
					t.Fatalf("%v", err)
				}
				acknowledged, _ = os.ReadFile(ledger)
				log, _ = os.ReadFile(events)
				if !bytes.HasSuffix(log, []byte(text(got))) {
					t.Fatalf("the log does not end in what Commit returned: %s", text(got))
				}
			}
			checkFiles(t, p, s, acknowledged, false)
			switch rapid.IntRange(0, 3).Draw(t, "end") {
			case 0:
				if err := s.Close(); err != nil {
					t.Fatalf("%v", err)
				}
			case 1: // killed between two appends, after an index was written
				if err := s.writeIndex(); err != nil {
					t.Fatalf("%v", err)
				}
				s.die()
			default: // killed in the last append
				s.die()
				at := rapid.IntRange(len(before), len(acknowledged)).Draw(t, "ledger left")
				keep := rapid.IntRange(0, len(log)).Draw(t, "log left")
				if err := crash(p, "default", acknowledged[:at], log[:keep]); err != nil {
					t.Fatalf("%v", err)
				}
				if at < len(acknowledged) {
					acknowledged = before
				}
			}
			if rapid.IntRange(0, 4).Draw(t, "index lost") == 0 {
				os.Remove(p.dir("default") + "/" + indexFile)
			}
		}
		s, err := p.Recover("default", how)
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer s.Close()
		if s.st.seq > 0 {
			checkFiles(t, p, s, acknowledged, true)
		}
	})
}

// TestSettleAsTold: whoever saw a run end, and could not record it, has the last
// word on how.
func TestSettleAsTold(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	run, other := libctx.NewRun(), libctx.NewRun()
	commit(t, s, begin(s, run, "m", "q")...)
	commit(t, s, beginTsh(other, "t"))
	s.die()
	s, err := p.Recover("default", Recovery{Ended: []Ended{{Run: run, Code: errdefs.NoSpace, Message: "no space left on device"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ledger := read(t, p.dir("default")+"/messages.jsonl")
	for _, want := range []string{
		`"run":"` + string(run) + `","outcome":"failed","head":"e1","code":"ENOSPC","message":"no space left on device"`,
		`"run":"` + string(other) + `","outcome":"interrupted","code":"EINTR",`,
	} {
		if !strings.Contains(ledger, want) {
			t.Errorf("no %s in\n%s", want, ledger)
		}
	}
}

// TestRemovedLedger: what would go into a file that nobody can open again is
// refused, not acknowledged.
func TestRemovedLedger(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	commit(t, s, begin(s, libctx.NewRun(), "m", "q")...)
	if err := os.RemoveAll(p.dir("default")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(beginTsh(libctx.NewRun(), "t")); !errdefs.Is(err, errdefs.IO) || s.Broken() == nil {
		t.Errorf("commit into a removed session: %v, broken %v", err, s.Broken())
	}
}

// TestSettle: a settled session names each call once, with the result that is
// fixed: that of a call that was allowed is not known, the others never began.
func TestSettle(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	run, op := libctx.NewRun(), libctx.NewRun()
	commit(t, s, begin(s, run, "m", "q")...)
	commit(t, s, beginTsh(op, "t"), tshCall(op, "c1"), policy(op, "c1", true))
	commit(t, s, says(run, "t", "c1", "c2", "c3", "c4"), &Usage{Run: run, Kind: "assistant", Input: 7, Cost: new(int64(9))})
	commit(t, s, policy(run, "c1", true), policy(run, "c2", true), policy(run, "c4", false))
	commit(t, s, result(run, "c2", "known"))
	s.die()
	s = open(t, p, "default")
	want := []SettledCall{{run, "c1", "fs.read"}, {run, "c3", "fs.read"}, {run, "c4", "fs.read"}, {op, "c1", "fs.read"}}
	if got := s.Settled(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("settled %v, want %v", got, want)
	}
	log := read(t, p.dir("default")+"/events.jsonl")
	for want, n := range map[string]int{
		`"status":"error","content":"` + OutcomeUnknown + `"`:                              2,
		`"call":"c1","name":"fs.read","status":"error","content":"` + OutcomeUnknown + `"`: 2,
		`"call":"c3","name":"fs.read","status":"error","content":"` + NeverBegun + `"`:     1,
		`"call":"c4","name":"fs.read","status":"error","content":"` + NeverBegun + `"`:     1,
		`"content":"known"`:        1,
		`"code":"EINTR"`:           2,
		`"type":"done"`:            2,
		`"status":"error"}` + "\n": 2,
	} {
		if got := strings.Count(log, want); got != n {
			t.Errorf("%d times %s, want %d", got, want, n)
		}
	}
	ledger := read(t, p.dir("default")+"/messages.jsonl")
	for _, want := range []string{
		`"run":"` + string(run) + `","outcome":"interrupted","head":"e6","code":"EINTR","message":"the host stopped while this run was going on","usage":{"input":7,"cache_read":0,"cache_write":0,"output":0},"cost_picodollars":9}`,
		`"run":"` + string(op) + `","outcome":"interrupted","code":"EINTR",`,
	} {
		if !strings.Contains(ledger, want) {
			t.Errorf("no %s in\n%s", want, ledger)
		}
	}
	if got := read(t, p.dir("default")+"/state"); got != "error\n" {
		t.Errorf("state %q", got)
	}
	closeOf(t, s)
	s = open(t, p, "default")
	if len(s.Settled()) != 0 || read(t, p.dir("default")+"/messages.jsonl") != ledger {
		t.Error("settled twice")
	}
}
