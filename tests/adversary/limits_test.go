package adversary

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/tests/internal/hostile"
	"cortexfs.org/tests/internal/world"
)

// TestForkBomb: more processes than a sandbox may have. Meanwhile the agent is
// there for others, and afterwards none is left.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) []string {
		c := w.Dial("a")
		fifo := hostile.NewFIFO(w, "up")
		c.Send(hostile.Tsh(w, "intruder", "fork", strconv.Itoa(libctx.SandboxProcesses+100), fifo.Inside))
		up := fifo.Await()
		if f := w.Dial("a").Ask(`{"op":"ping"}`, ""); f[0].Type() != "pong" {
			t.Errorf("ping: %v", f)
		}
		if out := w.MustCtx("agent", "send", "b", "say fine"); out != "fine\n" {
			t.Errorf("another agent: %q", out)
		}
		up.Close()
		f := c.Until("done")
		w.AwaitGone("the processes of a bomb", w.Working)
		return hostile.Did(hostile.Tried(t, hostile.Result(f).Str("content"), 1))
	}, "sandbox:limits")
}

// TestFill: more memory behind the places that live there than they may have.
func TestFill(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) []string {
		var lines []string
		for at, most := range map[string]int{
			"/run": libctx.SandboxRunBytes, "/dev/shm": libctx.SandboxShmBytes, "/tmp": libctx.SandboxTmpBytes,
			"/": 0, "/dev": 0, "/etc": 0, "/ctx": 0, "/home": 0,
		} {
			lines = append(lines, fmt.Sprintf("%s fill %s/filled %d; rm -f %s/filled", hostile.Intruder, at, most+1, at))
		}
		return hostile.Did(hostile.Tried(t, hostile.ByTool(w, strings.Join(lines, "\n")), 8))
	}, "sandbox:sizes")
}

// TestLeftOpen: a program that is left behind and holds its tool's output.
func TestLeftOpen(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) (done []string) {
		line := "setsid sh -c 'trap \"\" HUP TERM; while :; do sleep 1000; done' & echo early"
		for _, out := range []string{hostile.ByTool(w, line), result(w, "shell.exec", "exec 9>&1; "+line)} {
			if !strings.HasPrefix(out, "early\n") {
				t.Errorf("%q", out)
			}
		}
		w.AwaitGone("what was left behind", w.Working)
		return nil
	})
}

// TestCrowd: 10,000 connections to an agent's socket, all open at once.
func TestCrowd(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) (done []string) {
		run := w.Dial("a")
		fifo := hostile.NewFIFO(w, "up")
		run.Send(hostile.Send(w, "cat "+fifo.Inside+"; echo survived"))
		up := fifo.Await()
		pid := serving(w)

		const each = 1000
		clients := 10
		if hostile.Weak(w) {
			clients = 2 // that is enough to see
		}
		for range clients {
			cmd := w.Command("intruder", "crowd", w.Layout.Socket("a"), strconv.Itoa(each))
			crowd(t, cmd, each)
		}
		if open := descriptors(t, pid); open > 1000 {
			done = append(done, fmt.Sprintf("have ctxd hold %d descriptors", open))
		}
		if kib := resident(t, pid); kib > 256<<10 {
			done = append(done, fmt.Sprintf("have ctxd hold %d MiB", kib>>10))
		}
		up.Close()
		if f := run.Until("done"); world.Last(f).Str("status") != "ok" || !strings.Contains(world.JSON(f), "survived") {
			done = append(done, "end a run: "+world.JSON(f))
		}
		if serving(w) != pid {
			done = append(done, "end ctxd")
		}
		return done
	}, "server:crowd")
}

// TestCrowdTakesAllDescriptors: so many connections that ctxd can open nothing more.
func TestCrowdTakesAllDescriptors(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.Narrow, func(t *testing.T, w *world.World) (done []string) {
		run := w.Dial("a")
		fifo := hostile.NewFIFO(w, "up")
		run.Send(hostile.Send(w, "cat "+fifo.Inside+"; echo survived"))
		up := fifo.Await()
		leave := crowd(t, w.Command("intruder", "crowd", w.Layout.Socket("a"), "200"), 200)
		w.Await(w.Dir, func() bool { // it has taken note
			text, _ := os.ReadFile(w.Dir + "/ctxd.log")
			return strings.Contains(string(text), "too many open files")
		})
		leave()
		up.Close()
		if f := run.Until("done"); world.Last(f).Str("status") != "ok" || !strings.Contains(world.JSON(f), "survived") {
			done = append(done, "end a run: "+world.JSON(f))
		}
		return done
	}, "server:room")
}

// crowd starts an intruder that holds connections until leave, or until the test
// ends.
func crowd(t *testing.T, cmd *exec.Cmd, n int) (leave func()) {
	t.Helper()
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	leave = sync.OnceFunc(func() {
		hold.Close()
		cmd.Wait()
	})
	t.Cleanup(leave)
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || said != fmt.Sprintf("open %d\n", n) {
		t.Errorf("%q, %v", said, err)
	}
	return leave
}

// serving is the process that serves agent a.
func serving(w *world.World) int {
	w.T.Helper()
	text := w.Read(w.Root + "/agent/a.d/pid")
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		w.T.Fatal(err)
	}
	return pid
}

func descriptors(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// resident is the memory of a process in KiB.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
