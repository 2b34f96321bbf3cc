package benchterm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/tests/internal/world"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

const (
	columns = 80
	rows    = 24
)

// rival is a way to keep a program on a terminal. serve starts one and returns
// how a client joins it and how it ends; join is nil where nobody can.
type rival struct {
	name  string
	serve func(b *bench, program ...string) (join func() *exec.Cmd, end func())
}

// rivals are all that are compared, the floor first.
func rivals() []rival {
	return []rival{
		{"raw PTY", plain}, {"dtach", dtach}, {"ctxterm", ctxterm}, {"tmux", tmux}, {"screen", screen},
	}
}

// size gives a command a terminal of the common size and drains it, telling seen
// what comes. The result ends it.
func (b *bench) onTerminal(cmd *exec.Cmd, seen func([]byte)) (master *os.File, end func()) {
	b.Helper()
	cmd.Env = append(cmd.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: rows, Cols: columns})
	b.must(err)
	// Ends when nobody has the terminal any more: tmux hands it to its server.
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := master.Read(buf)
			if n > 0 && seen != nil {
				seen(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	return master, func() {
		cmd.Process.Signal(unix.SIGCONT)
		cmd.Process.Kill()
		cmd.Wait()
		master.Close()
	}
}

// plain is a program on a terminal that we read ourselves.
func plain(b *bench, program ...string) (func() *exec.Cmd, func()) {
	_, end := b.onTerminal(exec.Command(program[0], program[1:]...), nil)
	return nil, end
}

func (b *bench) scratch() string {
	dir, err := os.MkdirTemp("/tmp", "bt")
	b.must(err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// await waits until a file is there.
func (b *bench) await(path string) {
	b.Helper()
	b.w.T = b.B
	b.w.AwaitExists(path)
}

func dtach(b *bench, program ...string) (func() *exec.Cmd, func()) {
	sock := b.scratch() + "/s"
	b.must(exec.Command("dtach", append([]string{"-n", sock, "-E"}, program...)...).Run())
	b.await(sock)
	return func() *exec.Cmd { return exec.Command("dtach", "-a", sock, "-E", "-r", "none") }, func() { b.kill(sock) }
}

// kill ends the processes that were started with a word; dtach has no other way.
func (b *bench) kill(word string) {
	b.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	b.must(err)
	for _, line := range lines {
		text, err := os.ReadFile(line)
		if err != nil || !slices.Contains(strings.Split(string(text), "\x00"), word) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line))); err == nil {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
}

func tmux(b *bench, program ...string) (func() *exec.Cmd, func()) {
	sock := b.scratch() + "/s"
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command("tmux", append([]string{"-f", "/dev/null", "-S", sock}, args...)...)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TERM=xterm-256color")
		return cmd
	}
	b.must(run(append([]string{"new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows + 1)}, program...)...).Run())
	return func() *exec.Cmd { return run("attach") }, func() { run("kill-server").Run() }
}

func screen(b *bench, program ...string) (func() *exec.Cmd, func()) {
	dir := b.scratch()
	b.must(os.Chmod(dir, 0o700))
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command("screen", append([]string{"-c", "/dev/null"}, args...)...)
		cmd.Env = append(os.Environ(), "SCREENDIR="+dir, "LC_ALL=C.UTF-8", "TERM=xterm-256color")
		return cmd
	}
	b.must(run(append([]string{"-d", "-m", "-U", "-S", "b"}, program...)...).Run())
	return func() *exec.Cmd { return run("-x", "-U", "-S", "b") }, func() { run("-S", "b", "-X", "quit").Run() }
}

// boxed is the agent whose terminals ctxterm serves here.
const boxed libctx.Agent = "boxed"

// ctxterm is the program itself, recording to a resource directory as it does
// for agents, without the sandbox, which the others have not either. Its clients
// are ctx, as people use it.
func ctxterm(b *bench, program ...string) (func() *exec.Cmd, func()) {
	if _, err := os.Lstat(b.w.Layout.Control(boxed)); err != nil {
		b.w.Puppet(string(boxed))
	}
	session := libctx.Session(filepath.Base(b.scratch()))
	sock := b.w.Layout.TerminalSocket(boxed, session)
	b.must(os.MkdirAll(filepath.Dir(sock), 0o700))
	args := []string{"--listen", sock, "--dir", b.scratch(), "--size", fmt.Sprintf("%dx%d", columns, rows), "--"}
	cmd := b.w.Command("ctxterm", append(args, program...)...)
	cmd.Stderr = os.Stderr
	b.must(cmd.Start())
	b.await(sock)
	join := func() *exec.Cmd {
		return b.w.Command("ctx", "agent", "attach", "--session", string(session), string(boxed))
	}
	return join, func() {
		cmd.Process.Signal(unix.SIGTERM)
		late := time.AfterFunc(world.Patience, func() { cmd.Process.Kill() })
		cmd.Wait()
		late.Stop()
	}
}
