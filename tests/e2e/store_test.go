package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/tests/internal/world"
)

// record is what a ledger line is looked at for.
type record struct {
	Seq     int
	Type    string
	Run     string
	Role    string
	Outcome string
	Client  string `json:"client_id"`
	Content []struct{ Type, Call, Status, Text string }
	Frame   struct{ Type, Call, Status string }
}

// ledger reads a session's ledger and checks what holds of every ledger: whole
// lines, one object each, seq without gaps, every call paired once.
func ledger(t *testing.T, w *world.World, agent, session string) []record {
	t.Helper()
	var all []record
	open := map[string]int{}
	text := w.Read(w.Session(agent, session) + "/messages.jsonl")
	if !strings.HasSuffix(text, "\n") {
		t.Errorf("the ledger of %s ends in the middle of a line", session)
	}
	for line := range strings.Lines(text) {
		var r record
		d := json.NewDecoder(strings.NewReader(line))
		if err := d.Decode(&r); err != nil || d.More() {
			t.Fatalf("%s line %d is not one object: %v: %.300q", session, len(all)+1, err, line)
		}
		all = append(all, r)
		if r.Seq != len(all) {
			t.Errorf("%s line %d has seq %d", session, len(all), r.Seq)
		}
		for _, p := range r.Content {
			switch p.Type {
			case "tool_call":
				open[r.Run+p.Call]++
			case "tool_result":
				open[r.Run+p.Call]--
			}
		}
		switch r.Frame.Type {
		case "tool_call":
			open[r.Run+r.Frame.Call]++
		case "tool_result":
			open[r.Run+r.Frame.Call]--
		}
	}
	for call, n := range open {
		if n != 0 {
			t.Errorf("%s: call %s has %d results too few", session, call, n)
		}
	}
	return all
}

// pid is the process that serves an agent.
func pid(w *world.World, agent string) int {
	return int(w.Dial(agent).Ask(`{"op":"status"}`, "status")[0]["pid"].(float64))
}

// refold deletes the event log and lets it be derived again: the same bytes.
func refold(t *testing.T, w *world.World, agent, session string) {
	t.Helper()
	w.MustCtx("agent", "stop", agent)
	path := w.Session(agent, session) + "/events.jsonl"
	before := w.Read(path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.MustCtx("agent", "resume", "--session", session, agent)
	if after := w.Read(path); after != before {
		t.Errorf("the events of %s are not the fold of its ledger:\n%.2000s\nbut\n%.2000s", session, before, after)
	}
}

// serve starts the server of an agent that makes its own socket.
func serve(t *testing.T, w *world.World, agent string, flags ...string) *exec.Cmd {
	t.Helper()
	cmd := w.Command("ctxd", append([]string{"agent", agent}, flags...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	control := filepath.Join(w.Root, "agent", agent+".d")
	w.Await(control, func() bool {
		text, _ := os.ReadFile(control + "/pid")
		return string(text) == strconv.Itoa(cmd.Process.Pid)+"\n"
	})
	return cmd
}

// TestKilledInACall: the server dies in the middle of a tool call.
func TestKilledInACall(t *testing.T) {
	w := ready(t, "shell.exec", "fs.read")
	c := w.Dial("a")
	first := durable(c.Ask(send("m1", "s", w.Workspace, "call fs.read {\"path\":\"README.md\"}\n--\nsay one"), "done"))
	alive := filepath.Join(w.Workspace, "alive")
	c.Send(send("m2", "s", w.Workspace, `call shell.exec {"cmd":"echo x >> count; setsid sh -c 'trap \"\" TERM; while :; do echo x >> alive; sleep 0.02; done' & sleep 1000"}`+"\n--\nsay two"))
	second := durable(c.Until("tool_policy"))
	w.AwaitExists(alive)
	w.Kill(pid(w, "a"))
	w.AwaitGone("a killed server's sandboxes", w.Inside)
	size := len(w.Read(alive))

	if out := w.MustCtx("agent", "send", "--session", "s", "a", "say three"); out != "three\n" {
		t.Errorf("the next message: %q", out)
	}
	if now := len(w.Read(alive)); now != size {
		t.Errorf("something of the killed server still writes: %d bytes, then %d", size, now)
	}
	if n := w.Read(w.Workspace + "/count"); n != "x\n" {
		t.Errorf("the call ran %d times", len(n)/2)
	}
	all := durable(w.Dial("a").Ask(`{"op":"resume","session":"s"}`, "end"))
	have := map[string]string{}
	for _, f := range all {
		if have[f.Str("id")] != "" {
			t.Errorf("frame %s comes twice", f.Str("id"))
		}
		have[f.Str("id")] = world.JSON(f)
	}
	for _, f := range append(first, second...) {
		if have[f.Str("id")] != world.JSON(f) {
			t.Errorf("frame %s was %s, now it is %s", f.Str("id"), world.JSON(f), have[f.Str("id")])
		}
	}
	results, checkpoints := 0, 0
	run := second[0].Str("run")
	for _, r := range ledger(t, w, "a", "s") {
		if r.Run != run {
			continue
		}
		if r.Type == "checkpoint" {
			checkpoints++
			if r.Outcome != "interrupted" {
				t.Errorf("the killed run ends %q", r.Outcome)
			}
		}
		for _, p := range r.Content {
			if p.Type == "tool_result" {
				results++
				if p.Status != "error" || !strings.Contains(p.Text, "unknown") {
					t.Errorf("the indeterminate result: %+v", p)
				}
			}
		}
	}
	if results != 1 || checkpoints != 1 {
		t.Errorf("%d results and %d checkpoints of the killed run", results, checkpoints)
	}
	refold(t, w, "a", "s")
}

// TestKilledServe: the holder of the sockets dies with a run active.
func TestKilledServe(t *testing.T) {
	w := ready(t)
	c := w.Dial("a")
	c.Send(send("m", "s", w.Workspace, "orphan /workspace/alive\nsleep deaf"))
	c.Until("delta")
	w.AwaitExists(w.Workspace + "/alive")
	w.Kill(holder(t, w))
	w.AwaitGone("what a killed ctxd serve leaves", w.Processes)
	if out := w.MustCtx("agent", "send", "--session", "s", "a", "say again"); out != "again\n" {
		t.Errorf("the next message: %q", out)
	}
	ends := 0
	for _, r := range ledger(t, w, "a", "s") {
		if r.Type == "checkpoint" {
			ends++
		}
	}
	if ends != 2 {
		t.Errorf("%d runs have ended, want 2", ends)
	}
}

// alter stops the agent and changes its session's ledger by hand; it returns
// what the file holds then.
func alter(t *testing.T, w *world.World, session string, change func([]string) []string) string {
	t.Helper()
	w.MustCtx("agent", "stop", "a")
	path := w.Session("a", session) + "/messages.jsonl"
	text := strings.Join(change(strings.SplitAfter(w.Read(path), "\n")), "")
	w.Write(path, text)
	return text
}

// TestTornTail: a last line that was not finished is shown to nobody, changes
// nothing while only read, and is gone when something is appended.
func TestTornTail(t *testing.T) {
	w := ready(t)
	w.MustCtx("agent", "send", "--session", "s", "a", "say one")
	whole := w.Read(w.Session("a", "s") + "/messages.jsonl")
	torn := alter(t, w, "s", func(lines []string) []string {
		return append(lines, `{"seq":99,"ts":"2026-01-01T00:00:00.000Z","type":"entry","content":[{"ty`)
	})
	if out := w.MustCtx("agent", "history", "--session", "s", "a"); !strings.Contains(out, "one") || strings.Contains(out, "99") {
		t.Errorf("history: %q", out)
	}
	if now := w.Read(w.Session("a", "s") + "/messages.jsonl"); now != torn {
		t.Error("reading changed the ledger")
	}
	w.MustCtx("agent", "send", "--session", "s", "a", "say two")
	if now := w.Read(w.Session("a", "s") + "/messages.jsonl"); !strings.HasPrefix(now, whole) {
		t.Error("what was acknowledged has changed")
	}
	ledger(t, w, "a", "s")
	refold(t, w, "a", "s")
}

// TestDamagedLine: damage is refused for writing, shown with its position for
// reading, and touches nothing else.
func TestDamagedLine(t *testing.T) {
	w := ready(t)
	for _, text := range []string{"first", "second", "third"} {
		w.MustCtx("agent", "send", "--session", "s", "a", "say "+text)
	}
	at := 0
	damaged := alter(t, w, "s", func(lines []string) []string {
		for i, l := range lines {
			if strings.Contains(l, `"role":"assistant"`) && strings.Contains(l, "second") {
				at = i + 1
				lines[i] = strings.Repeat("#", len(l)-1) + "\n"
			}
		}
		return lines
	})
	where := fmt.Sprintf("line %d", at)
	for _, line := range []string{send("m", "s", w.Workspace, "say no"), tsh("t", "s", w.Workspace, "fs.read", "x"), `{"op":"resume","session":"s"}`} {
		f := w.Dial("a").Ask(line, "error")
		if msg := f[0].Str("message"); len(f) != 1 || f[0].Str("code") != "EIO" || !strings.Contains(msg, "messages.jsonl "+where+":") {
			t.Errorf("%.40s: %s", line, world.JSON(f))
		}
	}
	r := w.Ctx("agent", "history", "--session", "s", "a")
	if r.Code != 1 || !strings.Contains(r.Err, where) {
		t.Errorf("history: exit %d, %s", r.Code, r.Err)
	}
	for _, text := range []string{"first", "third"} {
		if !strings.Contains(r.Out, text) {
			t.Errorf("history leaves out %q: %s", text, r.Out)
		}
	}
	if raw := w.Ctx("agent", "history", "--raw", "--session", "s", "a"); raw.Code != 1 || raw.Out != damaged {
		t.Errorf("history --raw: exit %d, and not the bytes of the file", raw.Code)
	}
	if out := w.Ctx("agent", "sessions", "a"); !strings.Contains(out.Out, "s\t") || !strings.Contains(out.Err, where) {
		t.Errorf("sessions: %q %q", out.Out, out.Err)
	}
	if now := w.Read(w.Session("a", "s") + "/messages.jsonl"); now != damaged {
		t.Error("the damaged ledger was changed")
	}
	if out := w.MustCtx("agent", "send", "--session", "other", "a", "say fine"); out != "fine\n" {
		t.Errorf("another session: %q", out)
	}
}

// TestNewerLedger: what a newer version wrote is refused and stays as it is.
func TestNewerLedger(t *testing.T) {
	w := ready(t)
	for name, change := range map[string]func([]string) []string{
		"format": func(lines []string) []string {
			lines[0] = strings.Replace(lines[0], `"format":1`, `"format":2`, 1)
			return lines
		},
		"type": func(lines []string) []string {
			n := len(lines) // the last element is empty
			return append(lines[:n-1], fmt.Sprintf(`{"seq":%d,"ts":"2026-01-01T00:00:00.000Z","type":"branch","id":"b1"}`+"\n", n))
		},
	} {
		w.MustCtx("agent", "send", "--session", name, "a", "say kept")
		text := alter(t, w, name, change)
		f := w.Dial("a").Ask(send("m", name, w.Workspace, "say no"), "error")
		if msg := f[0].Str("message"); f[0].Str("code") != "EINVAL" || !strings.Contains(msg, "version") {
			t.Errorf("%s: %v", name, f[0])
		}
		r := w.Ctx("agent", "history", "--session", name, "a")
		if name == "type" && !strings.Contains(r.Out, "kept") || !strings.Contains(r.Err, "version") {
			t.Errorf("%s: history: %q %q", name, r.Out, r.Err)
		}
		if now := w.Read(w.Session("a", name) + "/messages.jsonl"); now != text {
			t.Errorf("%s: the ledger was changed", name)
		}
	}
}

// TestTwoDaemons: a second server is refused by the socket, and where it has
// another runtime directory, by each session's own lock in the tree.
func TestTwoDaemons(t *testing.T) {
	uid := os.Geteuid()
	if uid == 0 {
		uid = 60001 // uid 0 has one runtime directory a tree, whatever the environment says
	}
	w := world.NewFor(t, uid)
	w.Puppet("a")
	w.MustCtx("agent", "send", "a", "say hello") // through ctxd serve
	if r := w.Run(w.Command("ctxd", "agent", "a")); r.Code == 0 || !strings.Contains(r.Err, "another process listens") {
		t.Errorf("beside ctxd serve: exit %d, %s", r.Code, r.Err)
	}
	if r := w.Run(w.Command("ctxd", "serve")); r.Code == 0 || !strings.Contains(r.Err, "another ctxd serve") {
		t.Errorf("a second ctxd serve: exit %d, %s", r.Code, r.Err)
	}
	w.MustCtx("agent", "stop", "a")

	here := filepath.Join(w.Layout.Sockets(), "a.sock")
	first := w.Runtime
	w.Runtime = w.Dir + "/run2"
	w.Mkdir(w.Runtime, 0o700)
	if r := w.Run(w.Command("ctxd", "serve")); r.Code == 0 || !strings.Contains(r.Err, "another ctxd serve") {
		t.Errorf("a ctxd serve elsewhere: exit %d, %s", r.Code, r.Err)
	}
	second := serve(t, w, "a") // takes over the link in the tree
	there := strings.Replace(here, first, w.Runtime, 1)
	w.Runtime = first

	for i := range 8 { // both reach for a new session at once
		name := fmt.Sprintf("s%d", i)
		frames := make([]world.Frame, 2)
		conns := []*world.Conn{w.DialPath(here), w.DialPath(there)}
		var wg sync.WaitGroup
		for j, c := range conns {
			wg.Go(func() { frames[j] = c.Ask(send(fmt.Sprintf("m%d", j), name, w.Workspace, "say hello"), "")[0] })
		}
		wg.Wait()
		won := 0
		for j, f := range frames {
			switch {
			case f.Type() == "start":
				won++
				conns[j].Until("done")
			case f.Type() != "error" || f.Str("code") != "EAGAIN":
				t.Errorf("%s: %v", name, f)
			}
		}
		if won != 1 {
			t.Errorf("%s: %d of two daemons own it", name, won)
		}
		ledger(t, w, "a", name)
	}
	// Ownership ends with the process.
	w.DialPath(there).Ask(send("mine", "mine", w.Workspace, "say mine"), "done")
	if f := w.DialPath(here).Ask(send("not", "mine", w.Workspace, "say not"), ""); f[0].Str("code") != "EAGAIN" {
		t.Errorf("while another has it: %v", f[0])
	}
	w.Kill(second.Process.Pid)
	if f := w.DialPath(here).Ask(send("now", "mine", w.Workspace, "say now"), "done"); world.Last(f).Str("status") != "ok" {
		t.Errorf("after the owner's death: %s", world.JSON(f))
	}
	ledger(t, w, "a", "mine")
}

// TestProjections: everything but the ledger can be deleted.
func TestProjections(t *testing.T) {
	w := ready(t)
	w.MustCtx("agent", "send", "--session", "s", "a", "say kept")
	w.MustCtx("agent", "stop", "a")
	dir := w.Session("a", "s")
	texts := func() map[string]string {
		m := map[string]string{}
		for _, base := range []string{dir, filepath.Join(filepath.Dir(dir), "index")} {
			filepath.WalkDir(base, func(path string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					m[path] = w.Read(path)
				}
				return nil
			})
		}
		return m
	}
	before := texts()
	for path := range before {
		if filepath.Base(path) != "messages.jsonl" {
			os.Remove(path)
		}
	}
	os.RemoveAll(dir + "/context")
	os.RemoveAll(filepath.Join(filepath.Dir(dir), "index"))
	if out := w.MustCtx("agent", "output", "--session", "s", "a"); strings.TrimSpace(out) != "kept" {
		t.Errorf("output without projections: %q", out)
	}
	if out := w.MustCtx("agent", "send", "--session", "s", "a", "say kept"); out != "kept\n" {
		t.Errorf("the next message: %q", out)
	}
	w.MustCtx("agent", "stop", "a")
	after := texts()
	for path, text := range before {
		switch now, ok := after[path]; {
		case !ok:
			t.Errorf("%s is not there again", path)
		case strings.HasSuffix(path, ".jsonl") && !strings.HasPrefix(now, text):
			t.Errorf("%s does not begin with what it was", path)
		case filepath.Base(path) == "latest.md" && now != "kept",
			filepath.Base(path) == "state" && now != "done\n",
			filepath.Base(path) == "list" && !strings.HasPrefix(now, "s\n"):
			t.Errorf("%s holds %q", path, now)
		}
	}
}

// fill writes by hand a session whose ledger holds about so many bytes.
func fill(t *testing.T, w *world.World, session string, bytes int) {
	t.Helper()
	dir := w.Session("a", session)
	w.Mkdir(dir, 0o700)
	f, err := os.Create(dir + "/messages.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	seq, size := 0, 0
	put := func(format string, args ...any) {
		seq++
		n, err := fmt.Fprintf(f, `{"seq":%d,"ts":"2026-01-01T00:00:00.000Z","type":`+format+"}\n", append([]any{seq}, args...)...)
		if size += n; err != nil {
			t.Fatal(err)
		}
	}
	put(`"session","format":1,"agent":"a","session":"%s"`, session)
	for entry := 1; bytes-size > 4096; entry += 2 {
		run := libctx.NewRun()
		put(`"entry","id":"e%d","parent":%s,"run":"%s","kind":"message","role":"user","content":[{"type":"text","text":"go on"}],"client_id":"m%d"`,
			entry, []string{"null", fmt.Sprintf(`"e%d"`, entry-1)}[min(entry-1, 1)], run, entry)
		put(`"fact","run":"%s","frame":{"type":"start","session":"%s","agent":"a","client_id":"m%d","scope":"private","cwd":"/workspace","workspace":"%s"}`, run, session, entry, w.Workspace)
		put(`"entry","id":"e%d","parent":"e%d","run":"%s","kind":"message","role":"assistant","content":[{"type":"text","text":"%s"}]`,
			entry+1, entry, run, strings.Repeat("x", min(bytes-size, 24<<20)))
		put(`"checkpoint","run":"%s","outcome":"completed","head":"e%d"`, run, entry+1)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFullSession: a session at the limit of its ledger.
func TestFullSession(t *testing.T) {
	w := ready(t)
	fill(t, w, "full", libctx.MaxLedger-libctx.LedgerReserve/2)
	c := w.Dial("a")
	for _, line := range []string{send("m", "full", w.Workspace, "say no"), tsh("t", "full", w.Workspace, "fs.read", "x")} {
		f := c.Ask(line, "error")[0]
		if msg := f.Str("message"); f.Str("code") != "ENOSPC" || !strings.Contains(msg, "session full") || !strings.Contains(msg, "another session") {
			t.Errorf("%.40s: %v", line, f)
		}
	}
	if r := w.Ctx("agent", "send", "--session", "full", "a", "say no"); r.Code != 1 || !strings.Contains(r.Err, "another session") {
		t.Errorf("send: exit %d, %s", r.Code, r.Err)
	}
	if out := c.Ask(send("m", "other", w.Workspace, "say fine"), "done"); world.Last(out).Str("status") != "ok" {
		t.Errorf("another session: %s", world.JSON(out))
	}
	if out := w.MustCtx("agent", "sessions", "a"); !strings.Contains(out, "full\t") || !strings.Contains(out, "other\t") {
		t.Errorf("sessions: %s", out)
	}
	if peak := peakMemory(t, pid(w, "a")); peak > 400<<20 {
		t.Errorf("the daemon's peak memory is %d MiB", peak>>20)
	}
}

// TestSessionFillsUp: a session that becomes full in the middle of a run: the
// run ends with the reason, the call is paired, and that is kept.
func TestSessionFillsUp(t *testing.T) {
	w := ready(t, "shell.exec")
	fill(t, w, "full", libctx.MaxLedger-libctx.LedgerReserve-20000)
	c := w.Dial("a")
	f := c.Ask(send("last", "full", w.Workspace, `call shell.exec {"cmd":"head -c 40000 /dev/zero | tr '\\\\0' x"}`+"\n--\nsay no"), "done")
	if e := f[len(f)-2]; world.Last(f).Str("status") != "error" || e.Str("code") != "ENOSPC" || !strings.Contains(e.Str("message"), "another session") {
		t.Errorf("%s", world.JSON(f))
	}
	w.MustCtx("agent", "stop", "a")
	all := ledger(t, w, "a", "full")
	if last := all[len(all)-1]; last.Type != "checkpoint" || last.Outcome != "failed" {
		t.Errorf("the last record: %+v", last)
	}
	again := durable(w.Dial("a").Ask(send("last", "full", w.Workspace, `call shell.exec {"cmd":"head -c 40000 /dev/zero | tr '\\\\0' x"}`+"\n--\nsay no"), "done"))
	if world.JSON(again) != world.JSON(durable(f)) {
		t.Errorf("afterwards it is %s, it was %s", world.JSON(again), world.JSON(durable(f)))
	}
}

// TestClientClock: what a client says of time or order means nothing.
func TestClientClock(t *testing.T) {
	w := ready(t)
	c := w.Dial("a")
	for i, ts := range []string{"2099-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "not a time"} {
		line := fmt.Sprintf(`{"op":"send","id":"%c","ts":%q,"seq":%d,"session":"s","workspace":%q,"input":"say %d"}`, 'z'-i, ts, 100-i, w.Workspace, i)
		if f := c.Ask(line, "done"); world.Last(f).Str("status") != "ok" {
			t.Errorf("%s: %s", ts, world.JSON(f))
		}
	}
	var order []string
	for _, r := range ledger(t, w, "a", "s") {
		if r.Role == "assistant" {
			order = append(order, r.Content[0].Text)
		}
	}
	if got := strings.Join(order, " "); got != "0 1 2" {
		t.Errorf("the order is %s", got)
	}
	if text := w.Read(w.Session("a", "s") + "/messages.jsonl"); strings.Contains(text, "2099") || strings.Contains(text, "1970") {
		t.Error("a client's time is in the ledger")
	}
}
