package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// ready makes a world with one puppet whose server is running.
func ready(t *testing.T, tools ...string) *world.World {
	t.Helper()
	w := world.New(t)
	w.Puppet("a", tools...)
	w.MustCtx("agent", "send", "--session", "warmup", "a", "say hello")
	return w
}

// TestQueue: sends to a busy session wait in order, at most 64.
func TestQueue(t *testing.T) {
	w := ready(t)
	c := w.Dial("a")
	c.Send(send("busy", "q", w.Workspace, "sleep"))
	c.Until("delta")
	other := w.Dial("a")
	for i := 1; i <= 64; i++ {
		f := other.Ask(send(fmt.Sprintf("wait-%d", i), "q", w.Workspace, fmt.Sprintf("say %d", i)), "queued")[0]
		if f.Str("client_id") != fmt.Sprintf("wait-%d", i) || f["position"] != float64(i) {
			t.Errorf("queued %v", f)
		}
	}
	third := w.Dial("a")
	if f := third.Ask(send("wait-65", "q", w.Workspace, "say 65"), "error")[0]; f.Str("code") != "EAGAIN" {
		t.Errorf("the 65th: %v", f)
	}
	if st := third.Ask(`{"op":"status","session":"q"}`, "status")[0]; st["queued"] != 64.0 || st.Str("state") != "active" {
		t.Errorf("status %v", st)
	}
	if strings.Contains(w.Read(w.Session("a", "q")+"/messages.jsonl"), "wait-1") {
		t.Error("a waiting message is recorded before its turn")
	}
	// A repeated id that waits is the same run.
	again := w.Dial("a")
	again.Ask(send("wait-1", "q", w.Workspace, "say 1"), "queued")
	// A cancelled one never begins.
	third.Ask(`{"op":"cancel","id":"wait-2","session":"q"}`, "accepted")
	if d := world.Last(other.Until("done")); d.Str("status") != "cancelled" {
		t.Errorf("cancelled while it waited: %v", d)
	}
	third.Ask(`{"op":"cancel","id":"busy"}`, "accepted")
	if f := again.Until("done"); world.Last(f).Str("status") != "ok" || world.Kinds(f) != "start message done" {
		t.Errorf("the repeated id: %s", world.JSON(f))
	}
	for i := range 63 {
		if d := world.Last(other.Until("done")); d.Str("status") != "ok" {
			t.Fatalf("waiting run %d: %v", i, d)
		}
	}
	ledger := w.Read(w.Session("a", "q") + "/messages.jsonl")
	last := -1
	for _, i := range append([]int{1}, seq(3, 64)...) {
		at := strings.Index(ledger, fmt.Sprintf(`"client_id":"wait-%d"`, i))
		if at < last {
			t.Errorf("wait-%d ran out of order", i)
		}
		last = at
	}
	if strings.Contains(ledger, `"client_id":"wait-2"`) {
		t.Error("the cancelled message was recorded")
	}
}

func seq(from, to int) (s []int) {
	for i := from; i <= to; i++ {
		s = append(s, i)
	}
	return s
}

// TestReplayNeedsNoWorkspace: what is only told again does not depend on where
// the client stands now.
func TestReplayNeedsNoWorkspace(t *testing.T) {
	w := ready(t)
	c := w.Dial("a")
	first := c.Ask(send("m", "r", w.Workspace, "say once"), "done")
	for _, elsewhere := range []string{w.Home, w.Root, "/nowhere"} {
		if again := c.Ask(send("m", "r", elsewhere, "say once"), "done"); world.JSON(again) != world.JSON(first) {
			t.Errorf("from %s: %s", elsewhere, world.JSON(again))
		}
	}
}

// TestManyAtOnce: several clients and sessions, nothing lost or mixed.
func TestManyAtOnce(t *testing.T) {
	w := ready(t, "fs.read")
	var wg sync.WaitGroup
	for s := range 8 {
		wg.Go(func() {
			c := w.Dial("a")
			for i := range 3 {
				text := fmt.Sprintf("s%d-%d", s, i)
				f := c.Ask(send(text, fmt.Sprintf("s%d", s), w.Workspace, "call fs.read {\"path\":\"README.md\"}\n--\nsay "+text), "done")
				if got := world.Kinds(f); got != "start tool_call tool_policy tool_result message done" {
					t.Errorf("%s: %s", text, got)
				}
				if m := f[len(f)-2]; !strings.Contains(world.JSON(m), text) {
					t.Errorf("%s got %s", text, world.JSON(m))
				}
			}
		})
	}
	wg.Wait()
}

// TestDisconnect: a private run goes on without its client; a run of scope temp
// ends with it and leaves nothing on disk.
func TestDisconnect(t *testing.T) {
	w := ready(t)
	gate := filepath.Join(w.Workspace, "gate")
	c := w.Dial("a")
	c.Send(send("m", "left", w.Workspace, "delta here\ncall tsh {\"args\":[\"nothing\"]}\n--\nsay stayed"))
	c.Until("start")
	c.Close()
	all := awaitDone(t, w, "a", "left")
	if world.Last(all).Str("status") != "ok" || !strings.Contains(world.JSON(all), "stayed") {
		t.Errorf("the private run: %s", world.JSON(all))
	}

	temp := w.Dial("a")
	req := world.JSON(map[string]any{"op": "send", "id": "t", "session": "gone", "scope": "temp", "workspace": w.Workspace,
		"input": "say one"})
	if f := temp.Ask(req, "done"); world.Kinds(f) != "start message done" {
		t.Errorf("temp: %s", world.JSON(f))
	}
	if f := temp.Ask(req, "done"); world.Kinds(f) != "start message done" {
		t.Errorf("temp again: %s", world.JSON(f))
	}
	run := ""
	temp.Send(world.JSON(map[string]any{"op": "send", "id": "t2", "session": "gone", "scope": "temp", "workspace": w.Workspace,
		"input": "orphan " + "/workspace/gate" + "\nsleep"}))
	run = world.Last(temp.Until("start")).Str("run")
	temp.Until("delta")
	w.AwaitExists(gate)
	temp.Close()
	// The run is over when its id is unknown: it leaves no record.
	for {
		f := w.Dial("a").Ask(world.JSON(map[string]any{"op": "cancel", "id": run}), "")[0]
		if f.Type() == "error" {
			if f.Str("code") != "ENOENT" {
				t.Errorf("cancel of a temp run that is gone: %v", f)
			}
			break
		}
	}
	if _, err := os.Stat(w.Session("a", "gone")); err == nil {
		t.Error("scope temp left a session directory")
	}
	if f := w.Dial("a").Ask(`{"op":"resume","session":"gone"}`, "error"); f[0].Str("code") != "ENOENT" {
		t.Errorf("resume of temp: %v", f)
	}
}

// TestCancel: the whole tree of processes is gone, one terminal event, nothing
// late is recorded, and the next message works.
func TestCancel(t *testing.T) {
	w := ready(t, "shell.exec")
	for _, c := range []struct{ name, input string }{
		{"polite", "orphan /workspace/alive\nsleep"}, // answers SIGTERM with a message that comes too late
		{"deaf", "orphan /workspace/alive\nsleep deaf"},
		{"tool", `call shell.exec {"cmd":"setsid sh -c 'while :; do echo x >> alive; sleep 0.02; done' & trap '' TERM; echo up > up; sleep 1000"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			alive := filepath.Join(w.Workspace, "alive")
			os.Remove(alive)
			conn := w.Dial("a")
			conn.Send(send("c-"+c.name, c.name, w.Workspace, c.input))
			run := world.Last(conn.Until("start")).Str("run")
			w.AwaitExists(alive)
			w.Dial("a").Ask(world.JSON(map[string]any{"op": "cancel", "id": run, "session": c.name}), "accepted")
			rest := conn.Until("done")
			if world.Last(rest).Str("status") != "cancelled" {
				t.Errorf("done %v", world.Last(rest))
			}
			if strings.Contains(world.JSON(rest), "too late") {
				t.Error("output after the cancel was shown")
			}
			size := len(w.Read(alive))
			if f := conn.Ask(send("next-"+c.name, c.name, w.Workspace, "say next"), "done"); world.Last(f).Str("status") != "ok" {
				t.Errorf("the next message: %s", world.JSON(f))
			}
			if now := len(w.Read(alive)); now != size {
				t.Errorf("something of the cancelled run still writes: %d bytes, then %d", size, now)
			}
			ledger := w.Read(w.Session("a", c.name) + "/messages.jsonl")
			if strings.Contains(ledger, "too late") {
				t.Error("late output was recorded")
			}
			if n := strings.Count(ledger, `"outcome":"cancelled"`); n != 1 {
				t.Errorf("%d cancelled checkpoints", n)
			}
			if f := w.Dial("a").Ask(world.JSON(map[string]any{"op": "cancel", "id": run, "session": c.name}), "error"); f[0].Str("code") != "EALREADY" {
				t.Errorf("cancel of a finished run: %v", f[0])
			}
		})
	}
}

// TestStop: runs are cancelled, the process ends, the next connection starts a
// new one, and a record of everything is there.
func TestStop(t *testing.T) {
	w := ready(t)
	run := w.Dial("a")
	run.Send(send("m", "s", w.Workspace, "sleep"))
	run.Until("delta")
	c := w.Dial("a")
	pid := c.Ask(`{"op":"status"}`, "status")[0]["pid"]
	if f := c.Ask(`{"op":"stop","agent":"a"}`, "done"); world.Kinds(f) != "accepted done" || world.Last(f).Str("status") != "ok" {
		t.Errorf("stop: %s", world.JSON(f))
	}
	if d := world.Last(run.Until("done")); d.Str("status") != "cancelled" {
		t.Errorf("the active run: %v", d)
	}
	if f := run.Next(); f != nil {
		t.Errorf("after stop: %v", f)
	}
	if now := w.Dial("a").Ask(`{"op":"status","session":"s"}`, "status")[0]; now["pid"] == pid || now.Str("state") != "cancelled" {
		t.Errorf("afterwards: %v", now)
	}
}

// TestTshBesideARun: tool operations do not wait for the session's run, enter no
// conversation, and come at most four at a time.
func TestTshBesideARun(t *testing.T) {
	w := ready(t, "fs.read", "shell.exec")
	c := w.Dial("a")
	c.Send(send("m", "s", w.Workspace, "sleep"))
	c.Until("delta")
	if f := w.Dial("a").Ask(tsh("t", "s", w.Workspace, "fs.read", "README.md"), "done"); world.Last(f).Str("status") != "ok" {
		t.Errorf("beside a run: %s", world.JSON(f))
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			f := w.Dial("a").Ask(tsh(fmt.Sprintf("t%d", i), "s", w.Workspace, "shell.exec", "ls /workspace/.slot* 2>/dev/null | wc -l; touch /workspace/.slot"+fmt.Sprint(i)+"; sleep 0.2; rm /workspace/.slot"+fmt.Sprint(i)), "done")
			result := strings.Join(results(f), "")
			if world.Last(f).Str("status") != "ok" || !strings.HasPrefix(result, "ok: ") || result[4] > '3' {
				t.Errorf("tsh %d: %q", i, result)
			}
		})
	}
	wg.Wait()
	w.Dial("a").Ask(`{"op":"cancel","id":"m"}`, "accepted")
	c.Until("done")
	f := c.Ask(send("m2", "s", w.Workspace, "envelope"), "done")
	if text := world.JSON(f); strings.Contains(text, "README") || strings.Contains(text, "slot") {
		t.Errorf("a tsh operation entered the conversation: %s", text)
	}
}

// TestToolFree: "tools":false pairs every call with an error and runs nothing.
func TestToolFree(t *testing.T) {
	w := ready(t, "shell.exec")
	c := w.Dial("a")
	f := c.Ask(world.JSON(map[string]any{"op": "send", "id": "m", "workspace": w.Workspace, "tools": false,
		"input": "call shell.exec {\"cmd\":\"touch ran\"}\n--\nobserve"}), "done")
	if world.Kinds(f) != "start tool_call tool_result message done" || f[2].Str("status") != "error" {
		t.Errorf("%s", world.JSON(f))
	}
	if _, err := os.Stat(w.Workspace + "/ran"); err == nil {
		t.Error("the tool ran")
	}
}
