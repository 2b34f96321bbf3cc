package e2e

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// holder is the one process that holds the sockets.
func holder(t *testing.T, w *world.World) int {
	t.Helper()
	var found []int
	for _, p := range w.Processes() {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(p) + "/cmdline")
		if bytes.HasSuffix(line, []byte("\x00serve\x00")) {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d processes hold the sockets", len(found))
	}
	return found[0]
}

// TestEndedByASignal: a run that nobody cancelled is not called cancelled when the
// process that carries it out is told to end: it is interrupted, each of its calls
// has a result, and so is told who waits.
func TestEndedByASignal(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *world.World, server, holder int)
	}{
		{"the agent's process gets SIGTERM", func(w *world.World, server, _ int) { unix.Kill(server, unix.SIGTERM) }},
		{"ctxd serve gets SIGTERM", func(w *world.World, _, holder int) { unix.Kill(holder, unix.SIGTERM) }},
		{"ctxd serve is killed", func(w *world.World, _, holder int) { w.Kill(holder) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := ready(t, "shell.exec")
			conn := w.Dial("a")
			conn.Send(send("m", "s", w.Workspace, `call shell.exec {"cmd":"echo up > up; exec sleep 1000"}`))
			waits := w.Dial("a")
			w.AwaitExists(w.Workspace + "/up")
			waits.Ask(send("waits", "s", w.Workspace, "say never"), "queued")
			c.end(w, pid(w, "a"), holder(t, w))
			for name, conn := range map[string]*world.Conn{"run": conn, "waiting run": waits} {
				frames := conn.Until("done")
				if len(frames) < 2 || frames[len(frames)-2].Str("code") != "EINTR" || world.Last(frames).Str("status") != "error" {
					t.Errorf("the %s ends with %s", name, world.JSON(frames))
				}
			}
			ledger := w.Read(w.Session("a", "s") + "/messages.jsonl")
			if !strings.Contains(ledger, `"outcome":"interrupted"`) || strings.Contains(ledger, `"outcome":"cancelled"`) ||
				strings.Count(ledger, `"type":"tool_result"`) != 1 || strings.Contains(ledger, "never") {
				t.Errorf("recorded:\n%s", ledger)
			}
		})
	}
}
