package sessions

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
)

// world is a caller with a tree that has the model agent "coder".
type world struct {
	*testing.T
	caller.Caller
	out, errs bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	top := t.TempDir()
	env := paths.Env{CTXRoot: filepath.Join(top, "tree"), Home: top, RuntimeDir: filepath.Join(top, "run"), UID: os.Geteuid()}
	w := &world{T: t}
	w.Caller = caller.Caller{Printer: &output.Printer{Out: &w.out, Err: &w.errs}, Layout: paths.New(env, env.CTXRoot)}
	_, err := tree.Init(w.Layout, nil)
	w.ok(err)
	w.ok(tree.NewAgent(w.Layout, tree.AgentSpec{Name: "coder", Owner: asuser.Self(), Model: "debug/echo"}))
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// said returns what a command printed.
func (w *world) said(do func() error) (out, errs string, err error) {
	w.out.Reset()
	w.errs.Reset()
	err = do()
	return w.out.String(), w.errs.String(), err
}

// record writes batches into a session of coder.
func (w *world) record(name libctx.Session, batches ...[]session.Record) {
	w.Helper()
	place, err := w.Place("coder")
	w.ok(err)
	s, err := place.Open(name)
	w.ok(err)
	for _, b := range batches {
		_, err := s.Commit(b...)
		w.ok(err)
	}
	w.ok(s.Close())
}

func begin(run libctx.Run, op, text string) []session.Record {
	id := libctx.ClientID("m-" + run)
	start := &session.Fact{Run: run, Payload: "x", Frame: &wire.Start{
		Head: wire.Head{Type: "start"}, Session: "default", Agent: "coder", ClientID: id, Op: op, Scope: "private",
	}}
	if op == "tsh" {
		return []session.Record{start}
	}
	return []session.Record{&session.Entry{
		Run: run, Kind: session.KindMessage, Role: session.RoleUser, ClientID: id, Content: []wire.Part{wire.Text(text)},
	}, start}
}

func says(run libctx.Run, parts ...wire.Part) *session.Entry {
	return &session.Entry{Run: run, Kind: session.KindMessage, Role: session.RoleAssistant, Content: parts}
}

func result(run libctx.Run, call libctx.Call, name libctx.Tool, text string) *session.Entry {
	return &session.Entry{Run: run, Kind: session.KindMessage, Role: session.RoleTool, Content: []wire.Part{
		{Type: "tool_result", Call: call, Name: name, Status: "ok", Text: text},
	}}
}

// used is what a request used; a cost below zero is one that nobody knows.
func used(run libctx.Run, model libctx.Model, input, output, cost int64) *session.Usage {
	u := &session.Usage{Run: run, Kind: "assistant", Model: model, Input: input, CacheRead: 5, Output: output}
	if cost >= 0 {
		u.Cost = &cost
	}
	return u
}

func uncertain(run libctx.Run, model libctx.Model) *session.UsageUncertain {
	return &session.UsageUncertain{Run: run, Kind: "assistant", Model: model, Reason: "cut off"}
}

func ends(run libctx.Run, outcome string) *session.Checkpoint {
	return &session.Checkpoint{Run: run, Outcome: outcome}
}

// fields are the cells of each line without the run and its time.
func fields(out string) (lines []string) {
	for line := range strings.Lines(out) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		lines = append(lines, strings.Join(cells[2:], " | "))
	}
	return lines
}

func TestUsage(t *testing.T) {
	w := newWorld(t)
	free, paid, cut, lost, strange, tool := libctx.NewRun(), libctx.NewRun(), libctx.NewRun(), libctx.NewRun(), libctx.NewRun(), libctx.NewRun()
	w.record("default",
		append(begin(free, "send", "a"), used(free, "debug/echo", 10, 2, 0), ends(free, session.Completed)),
		append(begin(paid, "send", "b"), used(paid, "openai/gpt-4o", 1000, 100, 3_500_000_000), used(paid, "debug/echo", 1, 1, 0), ends(paid, session.Completed)),
		append(begin(cut, "send", "c"), used(cut, "openai/gpt-4o", 7, 1, 27_500_000), uncertain(cut, "lab/large"), ends(cut, session.Failed)),
		append(begin(lost, "send", "d"), uncertain(lost, "lab/large"), ends(lost, session.Cancelled)),
		append(begin(strange, "send", "e"), used(strange, "lab/large", 3, 4, -1), ends(strange, session.Completed)),
		append(begin(tool, "tsh", ""), ends(tool, session.Completed)),
	)
	out, errs, err := w.said(func() error { return PrintUsage(&w.Caller, "coder", "") })
	w.ok(err)
	want := []string{
		"completed | debug/echo | 10 | 5 | 0 | 2 | $0",
		"completed | openai/gpt-4o debug/echo | 1001 | 10 | 0 | 101 | $0.0035",
		"failed | openai/gpt-4o lab/large | at least 7 | at least 5 | at least 0 | at least 1 | at least $0",
		"cancelled | lab/large | unknown | unknown | unknown | unknown | unknown",
		"completed | lab/large | 3 | 5 | 0 | 4 | unknown",
		" | debug/echo openai/gpt-4o lab/large | at least 1021 | at least 25 | at least 0 | at least 108 | at least $0.0035",
	}
	if got := strings.Join(fields(out), "\n"); got != strings.Join(want, "\n") || errs != "" {
		t.Errorf("%s\n%s\nwant\n%s", got, errs, strings.Join(want, "\n"))
	}

	w.JSON = true
	out, _, err = w.said(func() error { return PrintUsage(&w.Caller, "coder", "default") })
	w.ok(err)
	type object struct {
		Usage
		Run string `json:"run"` // of the session it is "", which is no libctx.Run
	}
	var got []object
	for line := range strings.Lines(out) {
		var u object
		w.ok(json.Unmarshal([]byte(line), &u, json.RejectUnknownMembers(true)))
		got = append(got, u)
	}
	switch {
	case len(got) != 6:
		t.Errorf("%d lines: %s", len(got), out)
	case got[0].Run != string(free) || got[0].Kind != "run" || !got[0].TokensComplete || !got[0].CostComplete || *got[0].Cost != 0:
		t.Errorf("known: %+v", got[0])
	case got[3].Input != nil || got[3].Cost != nil || got[3].TokensComplete || got[3].Unknown != 1 || got[3].Requests != 0:
		t.Errorf("unknown: %+v", got[3])
	case got[4].Cost != nil || got[4].CostComplete || !got[4].TokensComplete:
		t.Errorf("no price: %+v", got[4])
	case got[5].Kind != "session" || got[5].Run != "" || *got[5].Input != 1021 || got[5].TokensComplete || *got[5].Cost != 3_527_500_000:
		t.Errorf("the session: %+v", got[5])
	}
}

// A session that never asked a model used nothing, which is known; one whose host
// died may have asked.
func TestUsageOfAnInterruptedRun(t *testing.T) {
	w := newWorld(t)
	run := libctx.NewRun()
	w.record("s", begin(run, "send", "a"))
	out, _, err := w.said(func() error { return PrintUsage(&w.Caller, "coder", "s") })
	w.ok(err)
	if got := fields(out); len(got) != 2 || got[0] != "active |  | 0 | 0 | 0 | 0 | $0" {
		t.Errorf("%q", got)
	}
	w.record("s") // the next host settles it
	if out, _, err = w.said(func() error { return PrintUsage(&w.Caller, "coder", "s") }); err != nil {
		t.Fatal(err)
	}
	if got := fields(out); len(got) != 2 || got[0] != "interrupted |  | unknown | unknown | unknown | unknown | unknown" {
		t.Errorf("%q", got)
	}
}

func TestSessions(t *testing.T) {
	w := newWorld(t)
	for _, name := range []libctx.Session{"known", "part", "none"} {
		run := libctx.NewRun()
		records := begin(run, "send", "a")
		if name != "none" {
			records = append(records, used(run, "openai/gpt-4o", 100, 10, 350_000_000))
		}
		if name != "known" {
			records = append(records, uncertain(run, "openai/gpt-4o"))
		}
		w.record(name, append(records, ends(run, session.Completed)))
	}
	out, errs, err := w.said(func() error { return List(&w.Caller, "coder") })
	w.ok(err)
	for name, want := range map[string]string{"known": "115\t$0.0004", "part": "at least 115\tat least $0.0004", "none": "unknown\tunknown"} {
		found := false
		for line := range strings.Lines(out) {
			found = found || strings.HasPrefix(line, name+"\tdone\t") && strings.Contains(line, "\t1\t"+want+"\t")
		}
		if !found || errs != "" {
			t.Errorf("%s is not with %q in\n%s%s", name, want, out, errs)
		}
	}
	w.JSON = true
	out, _, err = w.said(func() error { return List(&w.Caller, "coder") })
	w.ok(err)
	if !strings.Contains(out, `"tokens":null,"cost_picodollars":null,"complete":false`) ||
		!strings.Contains(out, `"tokens":115,"cost_picodollars":350000000,"complete":true`) {
		t.Error(out)
	}
}

// The sums of a session say what reading it says.
func TestSums(t *testing.T) {
	w := newWorld(t)
	place, err := w.Place("coder")
	w.ok(err)
	for name, use := range map[libctx.Session]func(libctx.Run) []session.Record{
		"nothing":  func(libctx.Run) []session.Record { return nil },
		"known":    func(r libctx.Run) []session.Record { return []session.Record{used(r, "p/m", 1, 2, 3)} },
		"free":     func(r libctx.Run) []session.Record { return []session.Record{used(r, "p/m", 1, 2, 0)} },
		"unpriced": func(r libctx.Run) []session.Record { return []session.Record{used(r, "p/m", 1, 2, -1)} },
		"mixed": func(r libctx.Run) []session.Record {
			return []session.Record{used(r, "p/m", 1, 2, -1), used(r, "p/m", 1, 2, 3)}
		},
		"unknown": func(r libctx.Run) []session.Record { return []session.Record{uncertain(r, "p/m")} },
		"part": func(r libctx.Run) []session.Record {
			return []session.Record{uncertain(r, "p/m"), used(r, "p/m", 1, 2, 3)}
		},
		"parts": func(r libctx.Run) []session.Record {
			return []session.Record{uncertain(r, "p/m"), used(r, "p/m", 1, 2, -1)}
		},
	} {
		run := libctx.NewRun()
		w.record(name, append(append(begin(run, "send", "a"), use(run)...), ends(run, session.Completed)))
		r, err := place.Read(name)
		w.ok(err)
		info := r.Info()
		w.ok(r.Close())
		sum, whole := usedBy(place, info, false), usedBy(place, info, true)
		if sum.number(all(sum.tokens)) != whole.number(all(whole.tokens)) || sum.money() != whole.money() {
			t.Errorf("%s: %s, %s by its sums; %s, %s by its record", name,
				sum.number(all(sum.tokens)), sum.money(), whole.number(all(whole.tokens)), whole.money())
		}
	}
}

// talk is a session in which everything happens that history shows.
func (w *world) talk() {
	w.Helper()
	run, after, tool := libctx.NewRun(), libctx.NewRun(), libctx.NewRun()
	fact := func(f wire.Frame) *session.Fact { return &session.Fact{Run: run, Frame: f} }
	said := session.Input{Client: "m-2", Op: session.OpFollowUp, Text: "go on"}
	var long strings.Builder
	for range 20 {
		long.WriteString("line\x1b[2J\n")
	}
	w.record("default",
		begin(run, "send", "read\nit"),
		[]session.Record{
			fact(&wire.CandidateError{Head: wire.Head{Type: "candidate_error"}, Model: "lab/large", Code: errdefs.Provider, Message: "over\nloaded"}),
			fact(&wire.Context{Head: wire.Head{Type: "context"}, Dropped: 12, Clipped: 1, Bytes: 99}),
		},
		[]session.Record{
			says(run, wire.Part{Type: "reasoning", Text: "First\nI look."}, wire.Text("Reading."),
				wire.Part{Type: "tool_call", Call: "call-2-1", Name: "fs.read", Arguments: []byte(`{"path":"a"}`)},
				wire.Part{Type: "tool_call", Call: "call-2-2", Name: "fs.list", Arguments: []byte(`{}`), Invalid: "[1\n"}),
			used(run, "debug/echo", 1, 1, 0),
		},
		[]session.Record{result(run, "call-2-1", "fs.read", long.String()), result(run, "call-2-2", "fs.list", "not executed")},
		[]session.Record{&session.Checkpoint{Run: run, Outcome: session.Failed, Code: errdefs.Provider, Message: "gone"}},
		append(begin(tool, "tsh", ""), &session.Checkpoint{Run: tool, Outcome: session.Failed, Code: errdefs.IO, Message: "not of the conversation"}),
		append(begin(after, "send", "again"), says(after, wire.Text("Hello."))),
		[]session.Record{said.Accept(after, "x")}, said.Deliver(after),
		[]session.Record{says(after, wire.Text("And bye.")), ends(after, session.Completed)},
	)
}

func TestHistory(t *testing.T) {
	w := newWorld(t)
	w.talk()
	out, errs, err := w.said(func() error { return History(&w.Caller, "coder", HistoryOptions{}) })
	w.ok(err)
	line := `  line\x1b[2J` + "\n"
	want := "user: read\n  it\n" +
		"note: model lab/large was passed over: over\n  loaded (EREMOTEIO)\n" +
		"note: for want of room the model is not shown the oldest 12 messages, and sees 1 message shortened\n" +
		"assistant: Reading.\ncall: fs.read a\n" + `call: fs.list (not well formed: [1\n)` + "\n" +
		"result fs.read: line\\x1b[2J\n" + strings.Repeat(line, 7) + "  [240 B in 20 lines; --full shows all]\n" +
		"result fs.list: not executed\nnote: the run failed: gone (EREMOTEIO)\nuser: again\nassistant: Hello.\n" +
		"user (follow-up): go on\nassistant: And bye.\n"
	if out != want || errs != "" {
		t.Errorf("%s%s\nwant\n%s", out, errs, want)
	}

	out, _, err = w.said(func() error { return History(&w.Caller, "coder", HistoryOptions{Reasoning: true, Full: true}) })
	w.ok(err)
	if !strings.Contains(out, "reasoning: First\n  I look.\nassistant: Reading.\n") || strings.Count(out, line) != 19 || strings.Contains(out, "--full") {
		t.Errorf("all of it:\n%s", out)
	}
	w.Color = true
	out, _, err = w.said(func() error { return History(&w.Caller, "coder", HistoryOptions{Reasoning: true}) })
	w.ok(err)
	if !strings.Contains(out, "\x1b[2mreasoning: First\x1b[0m\n\x1b[2m  I look.\x1b[0m\n\x1b[1massistant:\x1b[0m Reading.\n\x1b[36mcall:\x1b[0m ") || strings.Contains(out, "\x1b[2J") {
		t.Errorf("with colour: %q", out)
	}

	w.JSON = true
	out, _, err = w.said(func() error { return History(&w.Caller, "coder", HistoryOptions{}) })
	w.ok(err)
	if strings.Count(out, "\n") != 8 || !strings.Contains(out, `"type":"reasoning"`) {
		t.Errorf("entries:\n%s", out)
	}
}

// Damage is told, what can be read is shown, and the command fails.
func TestDamage(t *testing.T) {
	w := newWorld(t)
	w.talk()
	place, err := w.Place("coder")
	w.ok(err)
	path := filepath.Join(w.Layout.AgentHome(place.Owner.UID, "coder"), "session/default/messages.jsonl")
	text, err := os.ReadFile(path)
	w.ok(err)
	lines := strings.SplitAfter(string(text), "\n")
	for i, l := range lines {
		if strings.Contains(l, `"type":"usage"`) {
			lines[i] = strings.Repeat("#", len(l)-1) + "\n"
		}
	}
	w.ok(os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
	for what, do := range map[string]func() error{
		"history": func() error { return History(&w.Caller, "coder", HistoryOptions{}) },
		"usage":   func() error { return PrintUsage(&w.Caller, "coder", "") },
	} {
		out, errs, err := w.said(do)
		var d *session.Damage
		if !errdefs.Is(err, errdefs.IO) || !errors.As(err, &d) || strings.Count(errs, "damage: ") != 1 || strings.Count(out, "\n") < 3 {
			t.Errorf("%s: %v, %q, %q", what, err, errs, out)
		}
		if what == "usage" && !strings.HasSuffix(out, "\tunknown\n") {
			t.Errorf("what can not be read counts as known: %s", out)
		}
	}
	out, _, err := w.said(func() error { return List(&w.Caller, "coder") })
	w.ok(err)
	if !strings.Contains(out, "\tunknown\tunknown\t") {
		t.Errorf("what a damaged session used counts as known: %s", out)
	}
}
