package checker

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// fixture is a session that the suite's own code wrote, with every kind of
// record, what clients were told of it, and the marks of its calls.
type fixture struct {
	root, dir, told, marks string
}

func (f fixture) options() Options {
	return Options{Dirs: []string{f.dir}, Told: []string{f.told}, Marks: f.marks}
}

// copy is another one like it.
func (f fixture) copy(t *testing.T) fixture {
	t.Helper()
	root := t.TempDir() + "/copy"
	if err := os.CopyFS(root, os.DirFS(f.root)); err != nil {
		t.Fatal(err)
	}
	return fixture{root: root, dir: root + strings.TrimPrefix(f.dir, f.root), told: root + "/told", marks: root + "/marks"}
}

func write(t *testing.T) fixture {
	t.Helper()
	root := t.TempDir()
	layout := paths.New(paths.Env{UID: 60001, Home: root, RuntimeDir: root}, root+"/tree")
	if err := os.Mkdir(root+"/tree", 0o755); err != nil {
		t.Fatal(err)
	}
	owner := asuser.Self()
	place := session.Place{Layout: layout, Agent: "a", Owner: owner}
	s, err := place.Open("s")
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{root: root, dir: layout.Sessions(owner.UID, "a") + "/s", told: root + "/told", marks: root + "/marks"}
	notes, _ := os.Create(f.told)
	defer notes.Close()
	marks, _ := os.Create(f.marks)
	defer marks.Close()
	note := func(n Note) {
		n.Agent, n.Session = "a", "s"
		b, _ := json.Marshal(n)
		notes.Write(append(b, '\n'))
	}
	commit := func(records ...session.Record) {
		t.Helper()
		events, err := s.Commit(records...)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			note(Note{Frame: strings.TrimSuffix(string(e.Line), "\n")})
		}
	}
	begin := func(run libctx.Run, client, input string) {
		t.Helper()
		id := s.NextEntryID()
		commit(&session.Entry{ID: id, Parent: s.Tip(), Run: run, Kind: "message", Role: "user", Content: []wire.Part{wire.Text(input)}, ClientID: libctx.ClientID(client)},
			&session.Head{ID: id},
			&session.Fact{Run: run, Payload: "p", Frame: &wire.Start{Head: wire.Head{Type: "start"}, Session: "s", Agent: "a", ClientID: libctx.ClientID(client), Op: "send", Scope: "private"}})
		note(Note{Client: client, Input: input})
	}
	say := func(run libctx.Run, role string, parts ...wire.Part) {
		t.Helper()
		commit(&session.Entry{Run: run, Kind: "message", Role: role, Content: parts})
	}
	policy := func(run libctx.Run, call string, allowed bool) {
		t.Helper()
		commit(&session.Fact{Run: run, Frame: &wire.ToolPolicy{Head: wire.Head{Type: "tool_policy"}, Call: libctx.Call(call), Allowed: allowed}})
	}
	mark := func(key string, run libctx.Run) { marks.WriteString(key + " " + string(run) + "\n") }

	commit(&session.Fact{Event: session.NewEvent(), Frame: &wire.AgentStart{Head: wire.Head{Type: "agent.start"}, Terminal: "terminal-a-s", PID: 7}})
	one, two, op, dead := libctx.NewRun(), libctx.NewRun(), libctx.NewRun(), libctx.NewRun()
	begin(one, "m1", "hello")
	say(one, "assistant", wire.Part{Type: "reasoning", Text: "first "}, wire.Text("a \\u003c <"), wire.Part{Type: "reasoning", Text: "second"}, wire.Part{Type: "tool_call", Call: "c1", Name: "mark", Arguments: jsontext.Value(`{"args":["k1"]}`)})
	policy(one, "c1", true)
	mark("k1", one)
	zero := 0
	say(one, "tool", wire.Part{Type: "tool_result", Call: "c1", Name: "mark", Status: "ok", Text: "marked k1\n", ExitCode: &zero, DurationMS: 7})
	commit(&session.Usage{Run: one, Kind: "assistant", Model: "p/m", Input: 3, CacheRead: 2, Output: 1, Cost: new(int64(9))})
	commit(&session.Usage{Run: one, Kind: "assistant", Model: "p/other", Input: 3, Output: 1})
	left := session.Input{Client: "i1", Op: session.OpSteer, Text: "to the left"}
	then := session.Input{Client: "i2", Op: session.OpFollowUp, Text: strings.Repeat("and then ", 10000)}
	commit(left.Accept(one, "p"))
	note(Note{Client: "i1", Input: left.Text})
	note(Note{Frame: `{"type":"accepted","run":"` + string(one) + `","op":"steer","client_id":"i1"}`})
	commit(then.Accept(one, "p"))
	note(Note{Client: "i2", Input: then.Text})
	commit(left.Deliver(one)...)
	commit(then.Deliver(one)...)
	commit(&session.UsageUncertain{Run: one, Kind: "assistant", Model: "p/m", Reason: "cut"})
	say(one, "assistant", wire.Text(strings.Repeat("long é ", 30000)))
	commit(&session.Checkpoint{Run: one, Outcome: "completed"})

	commit(&session.Fact{Run: op, Payload: "p", Frame: &wire.Start{Head: wire.Head{Type: "start"}, Session: "s", Agent: "a", ClientID: "t1", Op: "tsh"}})
	note(Note{Client: "t1"})
	commit(&session.Fact{Run: op, Frame: &wire.ToolCall{Head: wire.Head{Type: "tool_call"}, Call: "call-1", Name: "tsh", Arguments: jsontext.Value(`{"args":["mark","k2"]}`)}})
	policy(op, "call-1", true)
	mark("k2", op)
	commit(&session.Fact{Run: op, Frame: &wire.ToolResult{Head: wire.Head{Type: "tool_result"}, Call: "call-1", Name: "tsh", Status: "ok", Content: "marked k2 " + strings.Repeat("x", 100000)}})
	commit(&session.Checkpoint{Run: op, Outcome: "completed"})

	begin(two, "m2", "again")
	commit(&session.Fact{Event: session.NewEvent(), Frame: &wire.AgentStop{Head: wire.Head{Type: "agent.stop"}, Terminal: "terminal-a-s", PID: 7}})
	long := `{"args":["other","` + strings.Repeat("y", 90000) + `"]}`
	say(two, "assistant", wire.Part{Type: "tool_call", Call: "c1", Name: "fs.read", Arguments: jsontext.Value(long)})
	policy(two, "c1", false)
	say(two, "tool", wire.Part{Type: "tool_result", Call: "c1", Status: "error", Text: "refused"})
	commit(&session.Checkpoint{Run: two, Outcome: "failed", Code: errdefs.Protocol, Message: "broken"})
	begin(dead, "m3", "last")
	say(dead, "assistant", wire.Part{Type: "tool_call", Call: "c1", Name: "mark", Arguments: jsontext.Value(`{"args":["k3"]}`)})
	commit(&session.Fact{Run: dead, Frame: &wire.ApprovalRequest{Head: wire.Head{Type: "approval_request"}, Call: "c1", Name: "mark", Arguments: jsontext.Value(`{"args":["k3"]}`)}})
	commit(&session.Fact{Run: dead, Frame: &wire.ApprovalResult{Head: wire.Head{Type: "approval_result"}, Call: "c1", Decision: "allow_once"}})
	policy(dead, "c1", true)
	mark("k3", dead)
	say(dead, "tool", wire.Part{Type: "tool_result", Call: "c1", Status: "error", Text: "outcome unknown"})
	commit(&session.Checkpoint{Run: dead, Outcome: "interrupted"})

	lost, next := libctx.NewRun(), libctx.NewRun()
	begin(lost, "m4", "look")
	say(lost, "assistant", wire.Part{Type: "tool_call", Call: "look-1", Name: "fs.read"}, wire.Part{Type: "tool_call", Call: "look-2", Name: "fs.read"})
	policy(lost, "look-1", true)
	commit(&session.Checkpoint{Run: lost, Outcome: "interrupted", Carried: []libctx.Call{"look-1", "look-2"}})
	begin(next, "m5", "look again")
	policy(next, "look-1", true)
	say(next, "tool", wire.Part{Type: "tool_result", Call: "look-1", Name: "fs.read", Status: "ok", Text: "seen"})
	say(next, "tool", wire.Part{Type: "tool_result", Call: "look-2", Name: "fs.read", Status: "error", Text: "outcome unknown at all"})
	commit(&session.Checkpoint{Run: next, Outcome: "completed"})
	last := libctx.NewRun()
	begin(last, "m6", "look once more")
	say(last, "assistant", wire.Part{Type: "tool_call", Call: "look-3", Name: "fs.read"})
	commit(&session.Checkpoint{Run: last, Outcome: "interrupted", Carried: []libctx.Call{"look-3"}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSound(t *testing.T) {
	f := write(t)
	r, err := Check(f.options())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		t.Error(p)
	}
	if r.Sessions != 1 || r.Runs != 7 || r.Calls != 7 || r.Interrupted != 3 || r.Marks != 3 || r.Acknowledged != 9 || r.Inputs != 2 || r.Frames != r.Events || r.Events < 20 {
		t.Errorf("%s", r)
	}
	if _, err := Check(Options{Dirs: []string{t.TempDir()}}); err == nil {
		t.Error("a directory without sessions is sound")
	}
	if _, err := Check(Options{Dirs: []string{f.dir + "/none"}}); err == nil {
		t.Error("a directory that is not there is sound")
	}
}

// line is the number of the first line that holds all of the texts.
func line(t *testing.T, lines []string, texts ...string) int {
	t.Helper()
	for i, l := range lines {
		if !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(l, s) }) {
			return i
		}
	}
	t.Fatalf("no line holds %q", texts)
	return -1
}

// renumber gives records their seq again, so that only the damage meant is seen.
func renumber(lines []string) []string {
	seq := regexp.MustCompile(`^\{"seq":\d+`)
	for i := range lines {
		if n, err := json.Marshal(i + 1); err == nil {
			lines[i] = seq.ReplaceAllString(lines[i], `{"seq":`+string(n))
		}
	}
	return lines
}

// TestDamage damages one file in one way each: the rule meant must find it.
func TestDamage(t *testing.T) {
	without := func(texts ...string) func(*testing.T, []string) []string {
		return func(t *testing.T, l []string) []string {
			i := line(t, l, texts...)
			return renumber(slices.Delete(l, i, i+1))
		}
	}
	twice := func(texts ...string) func(*testing.T, []string) []string {
		return func(t *testing.T, l []string) []string {
			i := line(t, l, texts...)
			return renumber(slices.Insert(l, i, l[i]))
		}
	}
	put := func(old, new string, texts ...string) func(*testing.T, []string) []string {
		return func(t *testing.T, l []string) []string {
			i := line(t, l, append(texts, old)...)
			l[i] = strings.Replace(l[i], old, new, 1)
			return l
		}
	}
	swap := func(texts ...string) func(*testing.T, []string) []string {
		return func(t *testing.T, l []string) []string {
			i := line(t, l, texts...)
			l[i], l[i+1] = l[i+1], l[i]
			return renumber(l)
		}
	}
	sound := write(t)
	const ledger, events, told, marks = "messages.jsonl", "events.jsonl", "told", "marks"
	for _, c := range []struct {
		name, file, rule string
		change           func(*testing.T, []string) []string
	}{
		{"torn", ledger, Lines, func(t *testing.T, l []string) []string { l[len(l)-1] = l[len(l)-1][:20]; return l }},
		{"no JSON", ledger, Lines, put(`{"seq":5`, `{"seq":5,,`)},
		{"two objects", ledger, Lines, func(t *testing.T, l []string) []string { l[3] = strings.TrimSpace(l[3]) + "{}\n"; return l }},
		{"member twice", ledger, Lines, put(`"type":"head"`, `"type":"head","type":"head"`)},
		{"not UTF-8", ledger, Lines, put("hello", "hel\xfflo")},
		{"no time", ledger, Lines, put(`"ts":"2`, `"ts":"x`)},
		{"unknown type", ledger, Lines, put(`"type":"head"`, `"type":"branch"`)},
		{"gap", ledger, Seq, put(`{"seq":4`, `{"seq":40`)},
		{"record twice with its seq", ledger, Seq, func(t *testing.T, l []string) []string { return slices.Insert(l, 3, l[3]) }},
		{"order", ledger, Seq, func(t *testing.T, l []string) []string { l[3], l[4] = l[4], l[3]; return l }},
		{"no first", ledger, First, without(`"type":"session"`)},
		{"another session", ledger, First, put(`"session":"s"`, `"session":"z"`)},
		{"entry missing", ledger, Tree, without(`"id":"e2"`)},
		{"entry id", ledger, Tree, put(`"id":"e3"`, `"id":"e9"`)},
		{"parent to come", ledger, Tree, put(`"parent":"e1"`, `"parent":"e3"`)},
		{"head to nowhere", ledger, Tree, put(`"id":"e1"`, `"id":"e77"`, `"type":"head"`)},
		{"run without a start", ledger, Starts, without(`"type":"start"`, `"client_id":"m2"`)},
		{"fact of no run", ledger, Starts, put(`"type":"agent.start"`, `"type":"tool_call"`)},
		{"fact with the event of a run", ledger, Starts, func(t *testing.T, l []string) []string {
			run := regexp.MustCompile(`"run":"(\w+)"`).FindStringSubmatch(l[line(t, l, `"m2"`, `"start"`)])[1]
			i := line(t, l, `"agent.stop"`)
			l[i] = regexp.MustCompile(`"event":"\w+\.1"`).ReplaceAllString(l[i], `"event":"`+run+`.1"`)
			return l
		}},
		{"run starts twice", ledger, Starts, twice(`"type":"start"`, `"client_id":"m1"`)},
		{"run without a message", ledger, Starts, func(t *testing.T, l []string) []string {
			i := line(t, l, `"role":"user"`, "again")
			l[i] = strings.Replace(l[i], `"role":"user"`, `"role":"system"`, 1)
			return l
		}},
		{"no checkpoint", ledger, Ends, without(`"outcome":"failed"`)},
		{"two checkpoints", ledger, Ends, twice(`"outcome":"failed"`)},
		{"something behind the end", ledger, Ends, swap(`"text":"refused"`)},
		{"odd outcome", ledger, Ends, put(`"outcome":"failed"`, `"outcome":"fine"`)},
		{"two driven runs", ledger, Driven, func(t *testing.T, l []string) []string {
			i := line(t, l, `"outcome":"completed"`) // of the first run, moved to the end
			c := l[i]
			return renumber(append(slices.Delete(l, i, i+1), c))
		}},
		{"client id twice", ledger, Clients, put(`"client_id":"m2"`, `"client_id":"m1"`, `"start"`)},
		{"input without its message", ledger, Inputs, func(t *testing.T, l []string) []string {
			i := line(t, l, `"origin":"steer"`)
			l[i] = strings.Replace(l[i], `"origin":"steer"`, `"origin":"send"`, 1)
			return l
		}},
		{"input with other words", ledger, Inputs, put("to the left", "to the right", `"origin"`)},
		{"input twice", ledger, Inputs, twice(`"origin":"steer"`)},
		{"input not delivered", ledger, Inputs, without(`"steering_delivered"`)},
		{"input delivered twice", ledger, Inputs, twice(`"steering_delivered"`)},
		{"input delivered before it is there", ledger, Inputs, swap(`"origin":"follow_up"`)},
		{"input nobody accepted", ledger, Inputs, without(`"type":"accepted"`, `"i1"`)},
		{"input with the id of a message", ledger, Clients, put(`"client_id":"i1"`, `"client_id":"m1"`, `"accepted"`)},
		{"carried result missing", ledger, Pairs, without(`"text":"outcome unknown at all"`)},
		{"carried result twice", ledger, Pairs, twice(`"text":"outcome unknown at all"`)},
		{"carried by another end", ledger, Pairs, put(`"outcome":"interrupted"`, `"outcome":"failed"`, `"carried":["look-1"`)},
		{"carried and not told", ledger, Pairs, put(`"carried":["look-1","look-2"]`, `"carried":["look-1"]`)},
		{"carried and not there", ledger, Pairs, put(`"look-2"]`, `"look-9"]`)},
		{"carried and decided twice", ledger, Decisions, func(t *testing.T, l []string) []string {
			i := line(t, l, `"text":"seen"`) - 1
			return renumber(slices.Insert(l, i, l[i]))
		}},
		{"no result", ledger, Pairs, without(`"text":"refused"`)},
		{"two results", ledger, Pairs, twice(`"text":"outcome unknown"`)},
		{"result of another call", ledger, Pairs, put(`"call":"c1"`, `"call":"c9"`, "refused")},
		{"result before its call", ledger, Pairs, func(t *testing.T, l []string) []string {
			i, j := line(t, l, `"text":"refused"`), line(t, l, `"name":"fs.read"`)
			l[i], l[j] = l[j], l[i]
			return renumber(l)
		}},
		{"decided twice", ledger, Decisions, twice(`"tool_policy"`, `"allowed":false`)},
		{"asked twice", ledger, Approvals, twice(`"approval_request"`)},
		{"answered twice", ledger, Approvals, twice(`"approval_result"`)},
		{"nobody asked", ledger, Approvals, without(`"approval_request"`)},
		{"not answered", ledger, Approvals, without(`"approval_result"`)},
		{"answered afterwards", ledger, Approvals, swap(`"approval_result"`)},
		{"ran though denied", ledger, Approvals, put("allow_once", "deny", "approval_result")},
		{"decided afterwards", ledger, Decisions, swap(`"tool_policy"`, `"allowed":false`)},
		{"record changed", ledger, Events, put("broken", "br0ken")},
		{"event missing", events, Events, without(`"type":"usage"`)},
		{"event twice", events, Events, twice(`"type":"usage"`)},
		{"event changed", events, Events, put("refused", "granted")},
		{"event order", events, Events, swap(`"type":"usage"`)},
		{"end missing", events, Events, func(t *testing.T, l []string) []string { return l[:len(l)-1] }},
		{"end torn", events, Events, func(t *testing.T, l []string) []string {
			l[len(l)-1] = strings.TrimSpace(l[len(l)-1])
			return l
		}},
		{"one too many", events, Events, func(t *testing.T, l []string) []string {
			return append(l, strings.Replace(l[len(l)-1], `.5"`, `.6"`, 1))
		}},
		{"another id", events, Events, put(`.2"`, `.3"`)},
		{"cut elsewhere", events, Events, put(`long é long é `, `long é l0ng é `)},
		{"another size", events, Events, put(`"bytes":`, `"bytes":1`)},
		{"told and gone", told, Told, put(`.2\"`, `.22\"`)},
		{"told otherwise", told, Told, put(`refused`, `granted`)},
		{"told another run", told, Told, put(`\"client_id\":\"m1\"`, `\"client_id\":\"m2\"`)},
		{"told of no session", told, Told, put(`"session":"s"`, `"session":"none"`)},
		{"nobody sent", told, Sent, without(`"client":"m1"`)},
		{"sent otherwise", told, Sent, put(`"input":"hello"`, `"input":"hollo"`)},
		{"ran twice", marks, Executions, twice("k1")},
		{"never ran", marks, Executions, without("k1")},
		{"ran elsewhere", marks, Executions, func(t *testing.T, l []string) []string {
			l[0] = "k1 " + strings.Fields(l[1])[1] + "\n"
			return l
		}},
		{"of no call", marks, Executions, func(t *testing.T, l []string) []string { return append(l, "k9"+l[0][2:]) }},
		{"half a mark", marks, Executions, func(t *testing.T, l []string) []string { return append(l, "k8") }},
		{"ran though refused", ledger, Executions, put(`"allowed":true`, `"allowed":false`, "tool_policy")},
		{"wrong result", ledger, Executions, put("marked k1", "marked k2")},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := sound.copy(t)
			path := filepath.Join(f.dir, c.file)
			if c.file == told || c.file == marks {
				path = filepath.Join(f.root, c.file)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Join(c.change(t, strings.SplitAfter(strings.TrimSuffix(string(text), "\n")+"\n", "\n")[:bytes.Count(text, []byte("\n"))]), "")
			if changed == string(text) {
				t.Fatal("nothing was damaged")
			}
			if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Check(f.options())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Rule == c.rule }) {
				t.Errorf("not found by %s; found %v", c.rule, r.Problems)
			}
		})
	}
}

// A session that is in use may lack its end, and nothing else.
func TestOpen(t *testing.T) {
	f := write(t)
	for name, left := range map[string]int{"messages.jsonl": 3, "events.jsonl": 5} {
		path := filepath.Join(f.dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(text), "\n")
		if err := os.WriteFile(path, []byte(strings.Join(lines[:len(lines)-1-left], "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for open, found := range map[bool]bool{true: false, false: true} {
		r, err := Check(Options{Dirs: []string{f.dir}, Open: open})
		if err != nil {
			t.Fatal(err)
		}
		if (len(r.Problems) > 0) != found {
			t.Errorf("open %v: %v", open, r.Problems)
		}
	}
}
