package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/tests/internal/world"
)

func send(id, session, workspace, input string) string {
	return world.JSON(map[string]any{"op": "send", "id": id, "session": session, "workspace": workspace, "input": input})
}

func tsh(id, session, workspace string, args ...string) string {
	return world.JSON(map[string]any{"op": "tsh", "id": id, "session": session, "workspace": workspace, "args": args})
}

// readme is what fs.read says of the README.md of a new workspace.
const readme = "one\ntwo\nthree\n[sha256 b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2]\n[lines 1-3 of 3]"

// TestByHand is the page a person with socat follows.
func TestByHand(t *testing.T) {
	w := world.New(t)
	w.Puppet("coder", "fs.read")
	w.MustCtx("agent", "tsh", "coder", "--", "fs.read", "README.md") // starts what has to run
	c := w.Dial("coder")

	pong := c.Ask(`{"op":"ping"}`, "pong")[0]
	if pong.Str("agent") != "coder" || pong["protocol"] != 1.0 || pong.Str("version") == "" {
		t.Errorf("pong %v", pong)
	}

	input := "delta Hel\ncall fs.read {\"path\":\"README.md\"}\n--\nsay Hello"
	first := c.Ask(send("msg-1", "hand", w.Workspace, input), "done")
	if got := world.Kinds(first); got != "start tool_call tool_policy tool_result message done" {
		t.Fatalf("send: %s", got)
	}
	run := first[0].Str("run")
	for i, f := range durable(first) {
		if want := run + "." + strconv.Itoa(i+1); f.Str("id") != want || f.Str("run") != run {
			t.Errorf("frame %d has id %s of run %s, want %s", i, f.Str("id"), f.Str("run"), want)
		}
	}
	if s := first[0]; s.Str("session") != "hand" || s.Str("client_id") != "msg-1" || s.Str("cwd") != "/workspace" || s.Str("agent") != "coder" {
		t.Errorf("start %v", s)
	}
	if last := world.Last(first); last.Str("status") != "ok" {
		t.Errorf("done %v", last)
	}

	again := c.Ask(send("msg-1", "hand", w.Workspace, input), "done")
	if world.JSON(again) != world.JSON(durable(first)) {
		t.Errorf("the same id gave other frames:\n%s\n%s", world.JSON(again), world.JSON(first))
	}
	if e := c.Ask(send("msg-1", "hand", w.Workspace, "say other"), "error")[0]; e.Str("code") != "EINVAL" {
		t.Errorf("the same id with another payload: %v", e)
	}

	one := c.Ask(tsh("tool-1", "hand", w.Workspace, "fs.read", "README.md"), "done")
	if got := world.Kinds(one); got != "start tool_call tool_policy tool_result done" {
		t.Fatalf("tsh: %s", got)
	}
	if one[3].Str("content") != readme || one[3].Str("status") != "ok" {
		t.Errorf("result %v", one[3])
	}
	if p := one[2]; p.Str("via") != "tsh" || p.Str("name") != "fs.read" || p["allowed"] != true || p.Str("effect") != "workspace_read" {
		t.Errorf("policy %v", p)
	}
	w.Write(w.Workspace+"/README.md", "changed\n")
	if two := c.Ask(tsh("tool-1", "hand", w.Workspace, "fs.read", "README.md"), "done"); world.JSON(two) != world.JSON(one) {
		t.Errorf("a repeated tsh ran again: %s", world.JSON(two))
	}

	all := c.Ask(`{"op":"resume","session":"hand"}`, "end")
	if got := world.Kinds(all); got != world.Kinds(first)+" "+world.Kinds(one)+" end" {
		t.Errorf("resume: %s", got)
	}
	after := c.Ask(world.JSON(map[string]any{"op": "resume", "session": "hand", "after": run + ".4"}), "end")
	if after[0].Str("id") != run+".5" || len(after) != len(all)-4 {
		t.Errorf("resume after: %s", world.JSON(after))
	}

	c.Send(send("msg-2", "hand", w.Workspace, "sleep"))
	start := c.Until("start")
	c.Until("delta")
	other := w.Dial("coder")
	ack := other.Ask(world.JSON(map[string]any{"op": "cancel", "id": world.Last(start)["run"]}), "accepted")[0]
	if ack.Str("op") != "cancel" || ack.Str("run") != world.Last(start).Str("run") {
		t.Errorf("accepted %v", ack)
	}
	if d := world.Last(c.Until("done")); d.Str("status") != "cancelled" {
		t.Errorf("done %v", d)
	}
	if st := c.Ask(`{"op":"status","session":"hand"}`, "status")[0]; st.Str("state") != "cancelled" || st["queued"] != 0.0 {
		t.Errorf("status %v", st)
	}
	w.MustCtx("agent", "stop", "coder")
}

func durable(frames []world.Frame) (kept []world.Frame) {
	for _, f := range frames {
		if f.Str("id") != "" {
			kept = append(kept, f)
		}
	}
	return kept
}

// TestBadRequests: each gets one error and the connection stays usable.
func TestBadRequests(t *testing.T) {
	w := world.New(t)
	w.Puppet("a")
	w.MustCtx("agent", "send", "a", "say hello")
	c := w.Dial("a")
	long := strings.Repeat("n", 65)
	for name, line := range map[string]string{
		"duplicate":     `{"op":"ping","op":"ping"}`,
		"duplicate in":  `{"op":"ping","x":{"a":1,"a":2}}`,
		"case":          `{"OP":"ping"}`,
		"case of id":    `{"op":"send","ID":"m","input":"x"}`,
		"depth":         `{"op":"ping","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
		"array":         `[{"op":"ping"}]`,
		"string":        `"ping"`,
		"null":          `null`,
		"empty":         ``,
		"not UTF-8":     "{\"op\":\"ping\",\"x\":\"\xff\"}",
		"surrogate":     `{"op":"send","id":"m","input":"\ud800"}`,
		"BOM":           "\xef\xbb\xbf" + `{"op":"ping"}`,
		"trailing":      `{"op":"ping"} {"op":"ping"}`,
		"no op":         `{"id":"m"}`,
		"unknown op":    `{"op":"shutdown"}`,
		"op number":     `{"op":1}`,
		"no id":         `{"op":"send","input":"x"}`,
		"no input":      `{"op":"send","id":"m"}`,
		"input null":    `{"op":"send","id":"m","input":null}`,
		"input number":  `{"op":"send","id":"m","input":1e400}`,
		"NUL":           `{"op":"send","id":"m","input":"a\u0000b"}`,
		"scope":         `{"op":"send","id":"m","input":"x","scope":"world"}`,
		"shared":        `{"op":"send","id":"m","input":"x","scope":"shared:team"}`,
		"tools":         `{"op":"send","id":"m","input":"x","tools":"no"}`,
		"relative":      `{"op":"send","id":"m","input":"x","workspace":"src"}`,
		"no args":       `{"op":"tsh","id":"m","args":[]}`,
		"many args":     `{"op":"tsh","id":"m","args":[` + strings.Repeat(`"a",`, 64) + `"a"]}`,
		"tsh in tsh":    `{"op":"tsh","id":"m","args":["tsh","x"]}`,
		"NUL in args":   `{"op":"tsh","id":"m","args":["a\u0000"]}`,
		"session slash": `{"op":"send","id":"m","input":"x","session":"../x"}`,
		"session dots":  `{"op":"send","id":"m","input":"x","session":".."}`,
		"session NUL":   `{"op":"send","id":"m","input":"x","session":"a\u0000"}`,
		"session line":  `{"op":"send","id":"m","input":"x","session":"a\nb"}`,
		"session long":  `{"op":"send","id":"m","input":"x","session":"` + long + `"}`,
		"session index": `{"op":"send","id":"m","input":"x","session":"index"}`,
		"id long":       `{"op":"send","id":"` + long + `","input":"x"}`,
		"id space":      `{"op":"send","id":"a b","input":"x"}`,
		"after":         `{"op":"resume","after":"x.1"}`,
		"cancel":        `{"op":"cancel"}`,
	} {
		if f := c.Ask(line, "error")[0]; f.Str("code") != "EINVAL" || f.Str("message") == "" || strings.Contains(f.Str("message"), "\n") {
			t.Errorf("%s: %v", name, f)
		}
	}
	c.Ask(`{"op":"ping","x":1e400,"y":123456789012345678901234567890}`, "pong") // unknown members are ignored
	for code, line := range map[string]string{
		"ENOENT": `{"op":"resume","session":"nowhere"}`,
		"EACCES": `{"op":"stop","agent":"b"}`,
	} {
		if f := c.Ask(line, "error")[0]; f.Str("code") != code {
			t.Errorf("%s: %v", line, f)
		}
	}
	names, _ := os.ReadDir(filepath.Dir(w.Session("a", "x")))
	for _, n := range names {
		if n.Name() != "index" && n.Name() != "default" {
			t.Errorf("a refused request left session %q", n.Name())
		}
	}
	// Cut by the end of the stream.
	if _, err := c.Write([]byte(`{"op":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	c.CloseWrite()
	if f := c.Next(); f.Str("code") != "EINVAL" {
		t.Errorf("cut request: %v", f)
	}
	if f := c.Next(); f != nil {
		t.Errorf("after the end: %v", f)
	}
}

// TestOversizedRequest: refused by type, in bounded memory, and nothing else is
// disturbed.
func TestOversizedRequest(t *testing.T) {
	w := world.New(t)
	w.Puppet("a")
	w.MustCtx("agent", "send", "a", "say hello")
	pid := int(w.Dial("a").Ask(`{"op":"status"}`, "status")[0]["pid"].(float64))
	c := w.Dial("a")
	go func() { // 256 MiB without an end, as far as the daemon takes it
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		for range 256 {
			if _, err := c.Write(chunk); err != nil {
				return
			}
		}
	}()
	if f := c.Next(); f.Str("code") != "EMSGSIZE" {
		t.Errorf("got %v", f)
	}
	if f := c.Next(); f != nil {
		t.Errorf("the connection goes on with %v", f)
	}
	exact := w.Dial("a")
	line := `{"op":"ping","x":"`
	line += strings.Repeat("x", libctx.MaxFrame-len(line)-3) + `"}`
	exact.Ask(line, "pong") // exactly the limit, LF included
	if f := exact.Ask(line[:len(line)-2]+`x"}`, "error")[0]; f.Str("code") != "EMSGSIZE" {
		t.Errorf("one byte more: %v", f)
	}
	if peak := peakMemory(t, pid); peak > 200<<20 {
		t.Errorf("the daemon's peak memory is %d MiB", peak>>20)
	}
	if f := w.Dial("a").Ask(send("m", "default", w.Workspace, "say still here"), "done"); world.Last(f).Str("status") != "ok" {
		t.Errorf("afterwards: %s", world.JSON(f))
	}
}

func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kb << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// TestLongNames: a runtime directory too long for the kernel's socket paths.
func TestLongNames(t *testing.T) {
	w := world.New(t)
	w.Runtime = w.Dir + "/" + strings.Repeat("r", 100)
	w.Mkdir(w.Runtime, 0o700)
	name := strings.Repeat("n", 62)
	w.Puppet(name)
	if out := w.MustCtx("agent", "send", name, "say long"); out != "long\n" {
		t.Errorf("got %q", out)
	}
}

// TestStarters: a dead socket is replaced, a live one never, one starter wins.
func TestStarters(t *testing.T) {
	w := world.New(t)
	w.Puppet("a")
	var wg sync.WaitGroup
	codes := make([]int, 4)
	outs := make([]string, 4)
	for i := range codes {
		wg.Go(func() {
			r := w.Run(w.Command("ctxd", "agent", "--idle", "2s", "a"))
			codes[i], outs[i] = r.Code, r.Err
		})
	}
	wg.Wait()
	won := 0
	for i, c := range codes {
		switch {
		case c == 0:
			won++
		case c != 1 || !strings.Contains(outs[i], "another process listens"):
			t.Errorf("a loser: exit %d, %s", c, outs[i])
		}
	}
	if won != 1 {
		t.Errorf("%d starters won", won)
	}

	first := w.Command("ctxd", "agent", "a")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	awaitSocket(t, w, "a")
	first.Process.Kill()
	first.Wait()
	second := w.Command("ctxd", "agent", "a")
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	awaitSocket(t, w, "a")
	if f := w.Dial("a").Ask(`{"op":"ping"}`, "pong"); f[0].Str("agent") != "a" {
		t.Errorf("after a crash: %v", f)
	}
	second.Process.Kill()
	second.Wait()
}

// TestSlowReader: a client that stops reading is told that it lagged, catches up
// from the record, and nobody waited for it.
func TestSlowReader(t *testing.T) {
	w := world.New(t)
	w.Puppet("a", "fs.stat")
	w.MustCtx("agent", "send", "a", "say hello")
	slow := w.Dial("a")
	var input strings.Builder
	for range 8 { // eight steps of nearly 1 MiB each: more than any client's share
		input.WriteString("flood 900000\ncall fs.stat {\"path\":\"/workspace\"}\n--\n")
	}
	input.WriteString("say finished")
	slow.Send(send("slow", "slow", w.Workspace, input.String()))

	quick := w.Dial("a")
	for i := range 3 {
		f := quick.Ask(tsh(fmt.Sprintf("quick-%d", i), "quick", w.Workspace, "fs.stat", "README.md"), "done")
		if world.Last(f).Str("status") != "ok" {
			t.Errorf("beside a slow client: %s", world.JSON(f))
		}
	}
	// The run ends although its client never read a byte.
	all := awaitDone(t, w, "a", "slow")
	if got := world.Last(all); got.Str("status") != "ok" {
		t.Errorf("the run: %v", got)
	}
	lagged := world.Last(slow.Until("lagged"))
	rest := w.Dial("a").Ask(world.JSON(map[string]any{"op": "resume", "session": "slow", "after": lagged.Str("after")}), "end")
	if len(rest) < 2 || rest[len(rest)-2].Type() != "done" {
		t.Errorf("resume after %s: %s", lagged.Str("after"), world.Kinds(rest))
	}
	slow.Ask(`{"op":"ping"}`, "pong") // the connection itself is fine
}

// awaitDone follows a session until its run has ended.
func awaitDone(t *testing.T, w *world.World, agent, session string) []world.Frame {
	t.Helper()
	frames := w.Dial(agent).Ask(world.JSON(map[string]any{"op": "resume", "session": session}), "end")
	return frames[:len(frames)-1]
}
