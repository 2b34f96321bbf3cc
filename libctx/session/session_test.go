package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// place is a fresh tree with one agent, owned by whoever runs the test.
func place(t testing.TB) Place {
	t.Helper()
	return placeIn(t.TempDir())
}

func placeIn(dir string) Place {
	root := filepath.Join(dir, "tree")
	for _, d := range []string{root, filepath.Join(dir, "run")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			panic(err)
		}
	}
	return Place{
		Layout: paths.Layout{Root: root, Runtime: filepath.Join(dir, "run"), Locks: filepath.Join(dir, "run", "lock")},
		Agent:  "coder", Owner: asuser.Self(),
	}
}

func (p Place) dir(name libctx.Session) string { return filepath.Join(p.Layout.Root, p.rel(name)) }

func open(t testing.TB, p Place, name libctx.Session) *Session {
	t.Helper()
	s, err := p.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func commit(t testing.TB, s *Session, records ...Record) []Event {
	t.Helper()
	events, err := s.Commit(records...)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func closeOf(t testing.TB, s *Session) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantKind(t testing.TB, err error, kind errdefs.Kind, words ...string) {
	t.Helper()
	if !errdefs.Is(err, kind) {
		t.Fatalf("error is %v (%s), want kind %s", err, errdefs.KindOf(err), kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// begin is the first batch of a driven run.
func begin(s *Session, run libctx.Run, id libctx.ClientID, text string) []Record {
	e := &Entry{ID: s.NextEntryID(), Parent: s.Tip(), Run: run, Kind: KindMessage, Role: RoleUser,
		Content: []wire.Part{wire.Text(text)}, ClientID: id}
	return []Record{e, &Head{ID: e.ID}, &Fact{Run: run, Payload: "sha256:" + text, Frame: &wire.Start{
		Head: wire.Head{Type: "start"}, Session: s.name, Agent: "coder", ClientID: id, Op: "send",
		Scope: "private", Cwd: "/workspace", Workspace: "/home/a/src"}}}
}

func beginTsh(run libctx.Run, id libctx.ClientID) Record {
	return &Fact{Run: run, Payload: "p", Frame: &wire.Start{Head: wire.Head{Type: "start"}, ClientID: id, Op: "tsh"}}
}

func says(run libctx.Run, text string, calls ...libctx.Call) *Entry {
	e := &Entry{Run: run, Kind: KindMessage, Role: RoleAssistant}
	if text != "" {
		e.Content = append(e.Content, wire.Text(text))
	}
	for _, c := range calls {
		e.Content = append(e.Content, wire.Part{Type: "tool_call", Call: c, Name: "fs.read", Arguments: jsontext.Value(`{"path":"README.md"}`)})
	}
	return e
}

func result(run libctx.Run, call libctx.Call, text string) *Entry {
	return &Entry{Run: run, Kind: KindMessage, Role: RoleTool, Content: []wire.Part{
		{Type: "tool_result", Call: call, Status: "ok", Text: text}}}
}

func done(run libctx.Run) *Checkpoint { return &Checkpoint{Run: run, Outcome: Completed} }

// turn is a whole driven run.
func turn(t testing.TB, s *Session, id libctx.ClientID, question, answer string) libctx.Run {
	t.Helper()
	run := libctx.NewRun()
	commit(t, s, begin(s, run, id, question)...)
	commit(t, s, says(run, answer), done(run))
	return run
}

func text(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		b.Write(e.Line)
	}
	return b.String()
}

func types(events []Event) string {
	var out []string
	for _, e := range events {
		f, err := wire.DecodeFrame(e.Line)
		if err != nil {
			return err.Error()
		}
		out = append(out, f.Header().Type)
	}
	return strings.Join(out, " ")
}

func TestRunOnDisk(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	s.now = func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }
	if _, err := os.Stat(p.dir("default")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("Open made something: %v", err)
	}
	const run = libctx.Run("01J00000000000000000000000")
	var all []Event
	all = append(all, commit(t, s, begin(s, run, "msg-1", "hello")...)...)
	if got := read(t, p.dir("default")+"/state"); got != "active\n" {
		t.Errorf("state is %q", got)
	}
	all = append(all, commit(t, s, says(run, "reading", "call-1"),
		&Usage{Run: run, Kind: "assistant", Model: "openai/x", Input: 10, Output: 2, Cost: new(int64(1200))})...)
	code := 3
	all = append(all, commit(t, s, &Entry{Run: run, Kind: KindMessage, Role: RoleTool, Content: []wire.Part{
		{Type: "tool_result", Call: "call-1", Status: "error", Text: "no", ExitCode: &code, DurationMS: 4}}})...)
	all = append(all, commit(t, s, says(run, "Hello"), done(run))...)

	want := `{"seq":1,"ts":"2026-11-30T12:00:00.000Z","type":"session","format":1,"agent":"coder","session":"default"}
{"seq":2,"ts":"2026-11-30T12:00:00.000Z","type":"entry","id":"e1","parent":null,"run":"01J00000000000000000000000","kind":"message","role":"user","content":[{"type":"text","text":"hello"}],"client_id":"msg-1"}
{"seq":3,"ts":"2026-11-30T12:00:00.000Z","type":"head","id":"e1"}
{"seq":4,"ts":"2026-11-30T12:00:00.000Z","type":"fact","run":"01J00000000000000000000000","payload":"sha256:hello","frame":{"type":"start","session":"default","agent":"coder","client_id":"msg-1","op":"send","scope":"private","cwd":"/workspace","workspace":"/home/a/src"}}
{"seq":5,"ts":"2026-11-30T12:00:00.000Z","type":"entry","id":"e2","parent":"e1","run":"01J00000000000000000000000","kind":"message","role":"assistant","content":[{"type":"text","text":"reading"},{"type":"tool_call","call":"call-1","name":"fs.read","arguments":{"path":"README.md"}}]}
{"seq":6,"ts":"2026-11-30T12:00:00.000Z","type":"usage","run":"01J00000000000000000000000","kind":"assistant","model":"openai/x","input":10,"cache_read":0,"cache_write":0,"output":2,"cost_picodollars":1200}
{"seq":7,"ts":"2026-11-30T12:00:00.000Z","type":"entry","id":"e3","parent":"e2","run":"01J00000000000000000000000","kind":"message","role":"tool","content":[{"type":"tool_result","call":"call-1","status":"error","text":"no","exit_code":3,"duration_ms":4}]}
{"seq":8,"ts":"2026-11-30T12:00:00.000Z","type":"entry","id":"e4","parent":"e3","run":"01J00000000000000000000000","kind":"message","role":"assistant","content":[{"type":"text","text":"Hello"}]}
{"seq":9,"ts":"2026-11-30T12:00:00.000Z","type":"checkpoint","run":"01J00000000000000000000000","outcome":"completed","head":"e4","usage":{"input":10,"cache_read":0,"cache_write":0,"output":2},"cost_picodollars":1200}
`
	if got := read(t, p.dir("default")+"/messages.jsonl"); got != want {
		t.Errorf("ledger is\n%swant\n%s", got, want)
	}
	wantEvents := strings.ReplaceAll(`{"type":"start","id":"RUN.1","run":"RUN","session":"default","agent":"coder","client_id":"msg-1","op":"send","scope":"private","cwd":"/workspace","workspace":"/home/a/src"}
{"type":"message","id":"RUN.2","run":"RUN","role":"assistant","content":[{"type":"text","text":"reading"}]}
{"type":"tool_call","id":"RUN.3","run":"RUN","call":"call-1","name":"fs.read","arguments":{"path":"README.md"}}
{"type":"usage","id":"RUN.4","run":"RUN","input_tokens":10,"output_tokens":2}
{"type":"tool_result","id":"RUN.5","run":"RUN","call":"call-1","name":"fs.read","status":"error","content":"no","truncated":false,"exit_code":3,"duration_ms":4}
{"type":"message","id":"RUN.6","run":"RUN","role":"assistant","content":[{"type":"text","text":"Hello"}]}
{"type":"done","id":"RUN.7","run":"RUN","status":"ok"}
`, "RUN", string(run))
	if got := read(t, p.dir("default")+"/events.jsonl"); got != wantEvents || text(all) != wantEvents {
		t.Errorf("events are\n%swant\n%s", got, wantEvents)
	}
	for file, want := range map[string]string{
		"default/state": "done\n", "default/latest.md": "Hello", "default/cwd": "/workspace\n",
		"default/created_at": "1796040000\n", "default/updated_at": "1796040000\n",
		"default/meta.json": `{"client":"msg-1","agent":"coder","scope":"private","workspace":"/home/a/src"}` + "\n",
		"index/list":        "default\n", "index/by-cwd/cwd-990e10b3394addcf": "default\n",
	} {
		if got := read(t, filepath.Join(p.Layout.Root, p.sessions(), file)); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
}
