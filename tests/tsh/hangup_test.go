package tsh

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cortexfs.org/tests/internal/world"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// hold is the name under which this program, inside, is a terminal with a program
// on it: what it reads is typed, what is drawn it writes, and at the end of its
// input the terminal hangs up. It ends when everything that was started there has
// ended; its exit code is the program's.
const hold = "hold"

func holding(words []string) int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 98
	}
	cmd := exec.Command(words[0], words[1:]...)
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		return 99
	}
	carry(int(master.Fd()))
	master.Close()
	_ = cmd.Wait()                                           // the state says it
	for err = error(nil); err == nil || err == unix.EINTR; { // until none of its jobs is left
		_, err = unix.Wait4(-1, nil, 0, nil)
	}
	return cmd.ProcessState.ExitCode()
}

// carry passes on what is typed and drawn until nothing more will be typed. It holds
// the terminal in no other goroutine: one that reads would keep it open.
func carry(master int) {
	buf := make([]byte, 4096)
	for {
		fds := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}, {Fd: int32(master), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil {
			continue
		}
		switch {
		case fds[1].Revents&unix.POLLIN != 0:
			n, _ := unix.Read(master, buf)
			_, _ = os.Stdout.Write(buf[:max(n, 0)])
		case fds[1].Revents != 0:
			return // nobody has the terminal any more
		}
		if fds[0].Revents != 0 {
			n, _ := unix.Read(0, buf)
			if n <= 0 {
				return
			}
			_, _ = unix.Write(master, buf[:n])
		}
	}
}

// held is tsh on a terminal that can hang up.
type held struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (r *room) hold() *held {
	r.T.Helper()
	self, err := os.Executable()
	must(r.T, err)
	r.args = append(r.args, "--ro-bind", self, "/tmp/held", "--new-session")
	cmd := r.command("/tmp/held", hold, "/ctx/bin/tsh")
	in, err := cmd.StdinPipe()
	must(r.T, err)
	out, err := cmd.StdoutPipe()
	must(r.T, err)
	must(r.T, cmd.Start())
	h := &held{r.T, cmd, in, bufio.NewReader(out)}
	late := time.AfterFunc(world.Patience, func() { _ = cmd.Process.Kill() })
	r.T.Cleanup(func() { late.Stop() })
	r.T.Cleanup(func() { in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	h.see(prompt)
	return h
}

// see reads until a text was drawn.
func (h *held) see(text string) {
	h.t.Helper()
	var all strings.Builder
	for !strings.Contains(all.String(), text) {
		b, err := h.out.ReadByte()
		if err != nil {
			h.t.Fatalf("%q did not come: %v\n%q", text, err, all.String())
		}
		all.WriteByte(b)
	}
}

func (h *held) keys(text string) {
	h.t.Helper()
	_, err := io.WriteString(h.in, text)
	must(h.t, err)
}

// hangUp ends the terminal and returns the exit code of tsh.
func (h *held) hangUp() int {
	h.t.Helper()
	h.in.Close()
	_, _ = io.Copy(io.Discard, h.out)
	_ = h.cmd.Wait() // the state says it
	return h.cmd.ProcessState.ExitCode()
}

// When the terminal hangs up, jobs hear it, wherever they are, and the shell ends.
func TestHangUp(t *testing.T) {
	for name, keys := range map[string]string{
		"in front":      "",
		"stopped":       ctrlZ,
		"in background": ctrlZ + "bg" + enter,
	} {
		t.Run(name, func(t *testing.T) {
			r := enterable(t, "told")
			h := r.hold()
			h.keys("told" + enter)
			r.AwaitExists(r.Workspace + "/ready")
			if keys != "" {
				h.keys(keys[:1])
				h.see("stopped   told")
			}
			if len(keys) > 1 {
				h.keys(keys[1:])
				h.see("[1] told")
			}
			if code := h.hangUp(); code != 128+int(unix.SIGHUP) {
				t.Errorf("exit code %d", code)
			}
			if text := r.Read(r.Workspace + "/told"); !strings.HasPrefix(text, "heard HUP\n") { // the kernel may say it too
				t.Errorf("%q", text)
			}
		})
	}
}

// exit does the same to what is left.
func TestExitHangsUp(t *testing.T) {
	r := enterable(t, "told")
	h := r.hold()
	h.keys("told &" + enter)
	r.AwaitExists(r.Workspace + "/ready")
	h.keys("exit 5" + enter)
	h.see("exit 5")
	_, _ = io.Copy(io.Discard, h.out) // until it ends
	if code := h.hangUp(); code != 5 {
		t.Errorf("exit code %d", code)
	}
	if text := r.Read(r.Workspace + "/told"); !strings.HasPrefix(text, "heard HUP\n") { // the kernel may say it too
		t.Errorf("%q", text)
	}
}
