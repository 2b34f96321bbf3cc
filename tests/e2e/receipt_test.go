package e2e

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"cortexfs.org/libctx/procid"
	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// escapes are what a terminal would act on.
var escapes = regexp.MustCompile(`\x1b(\[[0-9;?]* ?[A-Za-z]|\][^\x07\x1b]*(\x07|\x1b\\)|[()*+][B0]|[^\[\]()*+])|\x0f|\r`)

// terminalMeta is the meta.json of the session's terminal.
func terminalMeta(t *testing.T, w *world.World, session string) (path string, meta map[string]any) {
	t.Helper()
	path = w.Session("coder", session) + "/terminal/terminal-coder-" + session + "/meta.json"
	if err := json.Unmarshal([]byte(w.Read(path)), &meta); err != nil {
		t.Fatal(err)
	}
	return path, meta
}

func startTerminal(t *testing.T, w *world.World, session string, flags ...string) procid.ID {
	t.Helper()
	w.MustCtx(append([]string{"agent", "start", "--supervisor", "direct", "--session", session, "coder"}, flags...)...)
	_, meta := terminalMeta(t, w, session)
	launch := meta["runtime_receipt"].(map[string]any)["terminal"].(map[string]any)
	return procid.ID{PID: int(launch["pid"].(float64)), Start: uint64(launch["start"].(float64))}
}

// onScreen is what the terminal of the default session has shown, without what
// only moves the cursor or sets text off.
func onScreen(t *testing.T, w *world.World) string {
	t.Helper()
	text, err := os.ReadFile(w.Session("coder", "default") + "/terminal/terminal-coder-default/events.jsonl")
	if err != nil {
		return "" // nothing yet
	}
	var all []byte
	for line := range strings.Lines(string(text)) {
		var event struct {
			Data []byte `json:"data_b64"`
		}
		if json.Unmarshal([]byte(line), &event) == nil { // the last one may be torn
			all = append(all, event.Data...)
		}
	}
	return escapes.ReplaceAllString(string(all), "")
}

// TestReceipts: what the agent's server makes of terminals, by its socket.
func TestReceipts(t *testing.T) {
	w := world.New(t)
	w.Puppet("coder", "fs.read", "shell.exec")
	one, two := startTerminal(t, w, "one"), startTerminal(t, w, "two")
	c := w.Dial("coder")
	if f := c.Ask(`{"op":"status","session":"one"}`, "status")[0]; world.JSON(f["terminals"]) != `["terminal-coder-one"]` {
		t.Errorf("status %v", f)
	}

	// It is in the history, and whoever follows the session is told.
	history := c.Ask(`{"op":"resume","session":"one"}`, "end")
	if got := world.Kinds(history); got != "agent.start end" || history[0]["pid"] != float64(one.PID) || history[0].Str("run") != "" {
		t.Fatalf("resume: %v", history)
	}
	after := c.Ask(`{"op":"resume","session":"one","after":"`+history[0].Str("id")+`"}`, "end")
	if got := world.Kinds(after); got != "end" {
		t.Errorf("resume after it: %s", got)
	}

	// A receipt that is not true is refused, and nothing changes.
	path, meta := terminalMeta(t, w, "one")
	before := w.Read(path) + w.Read(w.Root+"/agent/coder.d/meta.json") + w.Read(w.Session("coder", "one")+"/messages.jsonl")
	receipt := func(session string, change func(launch map[string]any)) string {
		var r map[string]any
		if err := json.Unmarshal([]byte(world.JSON(meta["runtime_receipt"])), &r); err != nil {
			t.Fatal(err)
		}
		change(r["terminal"].(map[string]any))
		return world.JSON(map[string]any{"op": "receipt", "session": session, "receipt": r})
	}
	for name, line := range map[string]string{
		"another pid":     receipt("one", func(l map[string]any) { l["pid"] = two.PID }),
		"another start":   receipt("one", func(l map[string]any) { l["start"] = l["start"].(float64) + 1 }),
		"another unit":    receipt("one", func(l map[string]any) { l["unit"] = "ssh.service" }),
		"another session": receipt("two", func(map[string]any) {}),
		"a member more":   receipt("one", func(l map[string]any) { l["x"] = 1 }),
	} {
		if f := c.Ask(line, "error")[0]; f.Str("code") != "EINVAL" {
			t.Errorf("%s: %v", name, f)
		}
	}
	if now := w.Read(path) + w.Read(w.Root+"/agent/coder.d/meta.json") + w.Read(w.Session("coder", "one")+"/messages.jsonl"); now != before {
		t.Errorf("a refused receipt left something:\n%s", now)
	}
	if f := c.Ask(receipt("one", func(map[string]any) {}), "accepted")[0]; f.Str("op") != "receipt" {
		t.Errorf("the true one again: %v", f)
	}

	// Stopping one session leaves the other one and the server alone.
	s := w.Dial("coder")
	s.Ask(send("m1", "one", w.Workspace, "sleep"), "start")
	done := world.Last(c.Ask(`{"op":"stop","agent":"coder","session":"one"}`, "done"))
	if done.Str("status") != "ok" || world.JSON(done["terminals"]) != `[{"outcome":"stopped","session":"one"}]` {
		t.Errorf("stop: %v", done)
	}
	if end := world.Last(s.Until("done")); end.Str("status") != "cancelled" {
		t.Errorf("its run: %v", end)
	}
	if one.Alive() || !two.Alive() {
		t.Error("another terminal was stopped")
	}
	if f := c.Ask(`{"op":"status","session":"one"}`, "status")[0]; f["terminals"] != nil || f.Str("state") != "cancelled" {
		t.Errorf("status after it: %v", f)
	}
	if got := world.Kinds(c.Ask(`{"op":"resume","session":"one"}`, "end")); got != "agent.start agent.start start done agent.stop end" {
		t.Errorf("history: %s", got)
	}
	if done = world.Last(c.Ask(`{"op":"stop","agent":"coder","session":"one"}`, "done")); !strings.Contains(world.JSON(done["terminals"]), `"outcome":"gone"`) {
		t.Errorf("again: %v", done)
	}

	// A receipt of another generation touches nothing.
	path, meta = terminalMeta(t, w, "two")
	launch := meta["runtime_receipt"].(map[string]any)["terminal"].(map[string]any)
	launch["start"] = launch["start"].(float64) - 1
	if err := os.WriteFile(path, []byte(world.JSON(meta)), 0o600); err != nil {
		t.Fatal(err)
	}
	done = world.Last(c.Ask(`{"op":"stop","agent":"coder","session":"two"}`, "done"))
	if got := world.JSON(done["terminals"]); !strings.Contains(got, `"outcome":"stale"`) || !strings.Contains(got, "stale receipt: ") || !two.Alive() {
		t.Errorf("stop by a stale receipt: %s", got)
	}
	unix.Kill(two.PID, syscall.SIGTERM)
}

// TestTerminalOutlivesServer: a killed server changes nothing for a terminal, and
// the next one settles nothing of it.
func TestTerminalOutlivesServer(t *testing.T) {
	w := world.New(t)
	w.Puppet("coder", "fs.read")
	pid := startTerminal(t, w, "default")
	c := w.Dial("coder")
	server := int(c.Ask(`{"op":"status"}`, "status")[0]["pid"].(float64))
	w.Kill(server)
	w.MustCtx("agent", "tsh", "coder", "--", "fs.read", "README.md")
	ledger := w.Read(w.Session("coder", "default") + "/messages.jsonl")
	if strings.Contains(ledger, "interrupted") || !strings.Contains(ledger, `"agent.start"`) || !pid.Alive() {
		t.Errorf("%s", ledger)
	}
	// Killed itself, it is gone, and says so once it is looked for.
	w.Kill(pid.PID)
	done := world.Last(w.Dial("coder").Ask(`{"op":"stop","agent":"coder"}`, "done"))
	if got := world.JSON(done["terminals"]); !strings.Contains(got, `"outcome":"gone"`) || done.Str("status") != "ok" {
		t.Errorf("%s", got)
	}
}

// TestEmit: whoever watches a terminal sees the agent's calls in it, refused ones
// too, and what is shown is never typed.
func TestEmit(t *testing.T) {
	w := world.New(t)
	w.Puppet("coder", "fs.read", "shell.exec")
	w.Puppet("quiet", "fs.read")
	startTerminal(t, w, "default")
	see := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			w.Await(w.Session("coder", "default")+"/terminal/terminal-coder-default", func() bool {
				return strings.Contains(onScreen(t, w), text)
			})
		}
	}
	c := w.Dial("coder")
	c.Ask(send("m1", "default", w.Workspace, "call fs.read {\"path\":\"README.md\"}\n--\nsay done"), "done")
	see("┃ coder fs.read README.md", "┃ one", "┃ three", "┃ ok, ")
	c.Ask(send("m2", "default", w.Workspace, "call fs.write {\"path\":\"x\",\"content\":\"y\"}\n--\nsay done"), "done")
	see("┃ coder fs.write x y", "┃ refused not_declared: ")
	c.Ask(tsh("t1", "default", w.Workspace, "shell.exec", "seq", "100;", "printf", `'\033[2Jrm\n'`), "done")
	see("┃ coder shell.exec seq 100; printf", "┃ 1", "┃ 20", "┃ … ", "┃ ok, ")

	// Another session's, and one of memory, are not its business.
	c.Ask(send("m3", "other", w.Workspace, "call fs.read {\"path\":\"secret\"}\n--\nsay done"), "done")
	c.Ask(world.JSON(map[string]any{"op": "send", "id": "m4", "session": "default", "scope": "temp", "workspace": w.Workspace,
		"input": "call fs.read {\"path\":\"secret\"}\n--\nsay done"}), "done")
	c.Ask(tsh("t2", "default", w.Workspace, "shell.exec", "echo", "the", "end"), "done")
	see("┃ the end")
	w.MustCtx("agent", "stop", "coder")
	out := onScreen(t, w)
	if strings.Contains(out, "secret") || strings.Contains(out, "no such tool") {
		t.Errorf("%s", out)
	}
}

// TestNoEmit: a terminal that is to show no calls is not even connected to.
func TestNoEmit(t *testing.T) {
	w := world.New(t)
	w.Puppet("coder", "fs.read")
	startTerminal(t, w, "default", "--no-emit")
	w.Dial("coder").Ask(tsh("t1", "default", w.Workspace, "fs.read", "README.md"), "done")
	w.MustCtx("agent", "stop", "coder")
	if out := onScreen(t, w); out == "" || strings.Contains(out, "README") {
		t.Errorf("%q", out)
	}
}
