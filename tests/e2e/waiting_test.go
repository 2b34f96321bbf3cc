package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/tests/internal/world"
)

// TestWaitingEnds: a command whose request waits for its turn ends as soon as that
// is cancelled, by whom and how ever, and not because it grew tired.
func TestWaitingEnds(t *testing.T) {
	w := ready(t, "shell.exec")
	busy := w.Dial("a")
	busy.Send(send("busy", "q", w.Workspace, "sleep"))
	busy.Until("delta")
	tools := w.Dial("a")
	for i := range libctx.MaxSessionTsh {
		tools.Send(tsh(fmt.Sprint("tool-", i), "q", w.Workspace, "shell.exec", fmt.Sprintf("echo up > up-%d; exec sleep 1000", i)))
		w.AwaitExists(fmt.Sprintf("%s/up-%d", w.Workspace, i))
	}
	cancel := func(*os.Process) { w.MustCtx("agent", "cancel", "--session", "q", "a", "waits") }
	interrupt := func(p *os.Process) { p.Signal(os.Interrupt) }
	for _, c := range []struct {
		name string
		args []string
		end  func(*os.Process)
		code int
		said string
	}{
		{"cancelled send", []string{"send", "--id", "waits", "--session", "q", "a", "say never"}, cancel, 130, "the run was cancelled"},
		{"interrupted send", []string{"send", "--session", "q", "a", "say never"}, interrupt, 130, "the run was cancelled"},
		{"send in time", []string{"send", "--timeout", "1s", "--session", "q", "a", "say never"}, func(*os.Process) {}, 1, "the run took longer than --timeout and was cancelled"},
		{"raw send", []string{"send", "--raw", "--id", "waits", "--session", "q", "a", "say never"}, cancel, 130, "the run was cancelled"},
		{"cancelled tsh", []string{"tsh", "--id", "waits", "--session", "q", "a", "--", "shell.exec", "touch ran"}, cancel, 130, "the run was cancelled"},
		{"interrupted tsh", []string{"tsh", "--session", "q", "a", "--", "shell.exec", "touch ran"}, interrupt, 130, "the run was cancelled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := w.Command("ctx", append([]string{"agent"}, c.args...)...)
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			cmd.Stdout, cmd.Stderr = write, write
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			write.Close()
			defer time.AfterFunc(world.Patience, func() { cmd.Process.Kill() }).Stop()
			lines := bufio.NewReader(read)
			first, err := lines.ReadString('\n')
			if err != nil || !strings.Contains(first, "queued") {
				t.Fatalf("first %q, %v", first, err)
			}
			c.end(cmd.Process)
			rest, err := io.ReadAll(lines)
			if err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(rest), c.said+"\n") {
				t.Errorf("exit %d, %q", code, rest)
			}
		})
	}
	busy.Ask(`{"op":"cancel","id":"busy"}`, "done")
	for i := range libctx.MaxSessionTsh {
		tools.Send(fmt.Sprintf(`{"op":"cancel","id":"tool-%d"}`, i))
	}
	for range libctx.MaxSessionTsh {
		tools.Until("done")
	}
	if _, err := os.Stat(w.Workspace + "/ran"); err == nil || strings.Contains(w.Read(w.Session("a", "q")+"/messages.jsonl"), "never") {
		t.Error("what was cancelled while it waited has begun")
	}
}
