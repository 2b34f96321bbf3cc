package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/unixsock"
	"golang.org/x/sys/unix"
)

// served is a ctxterm that listens.
type served struct {
	*testing.T
	cmd      *exec.Cmd
	path     string
	problems bytes.Buffer
	made     *os.File      // tells when the socket is there
	ended    chan struct{} // closed when it has ended
}

// newServed is one that is not started.
func newServed(t *testing.T) *served {
	t.Helper()
	dir := t.TempDir()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	made := os.NewFile(uintptr(fd), "inotify")
	t.Cleanup(func() { made.Close() })
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO); err != nil {
		t.Fatal(err)
	}
	return &served{T: t, path: filepath.Join(dir, "s"), made: made, ended: make(chan struct{})}
}

// serve starts one with a program for sh; flags come before --listen.
func serve(t *testing.T, script string, flags ...string) *served {
	t.Helper()
	s := newServed(t)
	s.start(append(flags, "--listen", s.path, "--", "sh", "-c", script, os.Args[0]))
	return s
}

func (s *served) start(args []string, passed ...*os.File) {
	s.Helper()
	s.command(args, passed...)
	s.run()
}

// run starts the command that is set up.
func (s *served) run() {
	s.Helper()
	if err := s.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		s.cmd.Wait()
		s.made.SetReadDeadline(time.Now())
	}()
	s.Cleanup(func() { s.cmd.Process.Kill(); <-s.ended })
}

func (s *served) command(args []string, passed ...*os.File) {
	s.cmd = exec.Command(os.Args[0], args...)
	s.cmd.Env = []string{"RUN_CTXTERM=1", "PATH=/usr/bin:/bin"}
	s.cmd.Stderr = &s.problems
	s.cmd.ExtraFiles = passed
}

// status waits for its end.
func (s *served) status() int {
	<-s.ended
	if s.problems.Len() > 0 {
		s.Errorf("it says %q", &s.problems)
	}
	return s.cmd.ProcessState.ExitCode()
}

// client is a connection to it.
type client struct {
	*testing.T
	net.Conn
	in     *bufio.Reader
	output strings.Builder
}

// dial connects as soon as it listens.
func (s *served) dial(first string) *client {
	s.Helper()
	for {
		c, err := net.Dial("unix", s.path)
		if err == nil {
			s.Cleanup(func() { c.Close() })
			io.WriteString(c, first+"\n")
			return &client{T: s.T, Conn: c, in: bufio.NewReader(c)}
		}
		if _, err := s.made.Read(make([]byte, 4096)); err != nil {
			s.Fatalf("it never listened: %v: %s", err, &s.problems)
		}
	}
}

const (
	attach = `{"op":"attach","cols":80,"rows":24}`
	pipe   = `{"op":"watch"}`
)

func (c *client) send(line string) { io.WriteString(c, line+"\n") }

func (c *client) keys(text string) {
	c.send(`{"op":"input","data_b64":"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"}`)
}

// frame is the next frame, nil at the end.
func (c *client) frame() termwire.Frame {
	line, err := c.in.ReadBytes('\n')
	if err != nil {
		return nil
	}
	f, err := termwire.DecodeFrame(line)
	if err != nil {
		c.Fatal(err)
	}
	switch f := f.(type) {
	case *termwire.Bytes:
		c.output.Write(f.Data)
	case *termwire.Screen:
		c.output.Write(f.Data)
	}
	return f
}

// shows waits until some text was shown.
func (c *client) shows(text string) {
	c.Helper()
	for !strings.Contains(c.output.String(), text) {
		if f := c.frame(); f == nil {
			c.Fatalf("the end, and no %q in %q", text, c.output.String())
		}
	}
}

// exit waits for the exit frame.
func (c *client) exit() int {
	c.Helper()
	for {
		switch f := c.frame().(type) {
		case nil:
			c.Fatalf("no exit after %.300q", c.output.String())
		case *termwire.Exit:
			if c.frame() != nil {
				c.Error("there is more after exit")
			}
			return f.Code
		}
	}
}

func TestServeTheWholeOutputAndTheStatus(t *testing.T) {
	for script, want := range map[string]int{
		"read x; seq 1 20000; exit 3": 3, "read x; seq 1 20000; kill -KILL $$": 137, "read x; seq 1 20000; exit": 0,
	} {
		s := serve(t, "stty -echo; echo ready; "+script)
		c, p := s.dial(attach), s.dial(pipe)
		c.shows("ready")
		p.frame()
		c.keys("\r")
		if got := c.exit(); got != want {
			t.Errorf("%s: exit %d", script, got)
		}
		if got := p.exit(); got != want {
			t.Errorf("%s: exit %d of a pipe", script, got)
		}
		if got := s.status(); got != want {
			t.Errorf("%s: status %d", script, got)
		}
		for _, o := range []string{c.output.String(), p.output.String()} {
			if n := strings.Count(o, "\n"); n < 20000 || !strings.HasSuffix(o, "\n19999\r\n20000\r\n") {
				t.Errorf("%s: %d lines", script, n)
			}
		}
		if _, err := os.Lstat(s.path); !os.IsNotExist(err) {
			t.Errorf("the socket is left: %v", err)
		}
	}
}

// What a program prints that ends at once is in the record, and so is its end.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	if s := serve(t, "printf 'all of it'; exit 4", "--dir", dir, "--size", "100x30"); s.status() != 4 {
		t.Error("status")
	}
	text, err := os.ReadFile(dir + "/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"type":"resize","cols":100,"rows":30}`, base64.StdEncoding.EncodeToString([]byte("all of it")), `"process.exit","exit_code":4}`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

func TestTypeAndResize(t *testing.T) {
	s := serve(t, `trap 'stty size' WINCH; stty -echo; echo ready; while :; do read x && echo "got $x"; test "$x" = end && exit 5; done`)
	c := s.dial(attach)
	c.shows("ready")
	c.keys("a line\r")
	c.shows("got a line")
	c.send(`{"op":"resize","cols":101,"rows":31}`)
	c.shows("31 101")
	c.keys("end\r")
	if got := c.exit(); got != 5 {
		t.Errorf("exit %d", got)
	}
}

func TestSignalsReachTheForeground(t *testing.T) {
	s := serve(t, `trap 'echo caught; exit 6' USR1; echo ready; while :; do read x; done`)
	c := s.dial(attach)
	c.shows("ready")
	c.send(`{"op":"signal","name":"USR1"}`)
	c.shows("caught")
	if got := c.exit(); got != 6 {
		t.Errorf("exit %d", got)
	}
}

// A signal to ctxterm hangs the program up, and what that still says arrives.
func TestHangUp(t *testing.T) {
	for script, want := range map[string]int{
		`trap 'echo goodbye; exit 9' HUP; echo ready; while :; do read x; done`:               9,
		`trap '' HUP; trap 'echo goodbye; exit 8' TERM; echo ready; while :; do read x; done`: 8,
		`trap '' HUP TERM; echo ready; echo goodbye; while :; do read x; done`:                137,
	} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
			s := serve(t, script)
			c := s.dial(attach)
			c.shows("ready")
			s.cmd.Process.Signal(sig)
			c.shows("goodbye")
			if got := c.exit(); got != want {
				t.Errorf("%v, %s: exit %d", sig, script, got)
			}
			if got := s.status(); got != want {
				t.Errorf("%v, %s: status %d", sig, script, got)
			}
		}
	}
}

// A program that closes its side of the terminal and lives keeps it.
func TestClosedOutput(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, `tty=$(tty); echo ready; exec <&- >&- 2>&-; read x <`+fifo+`; exec >$tty; echo back; exit 2`)
	c := s.dial(attach)
	c.shows("ready")
	hold, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.send(`{"op":"resize","cols":90,"rows":24}`)
	for {
		if _, ok := c.frame().(*termwire.Resized); ok {
			break
		}
	}
	hold.Close()
	c.shows("back")
	if got := c.exit(); got != 2 {
		t.Errorf("exit %d", got)
	}
}

// What stops the program does not stop it for good: nobody could send it on.
func TestStopped(t *testing.T) {
	s := serve(t, `kill -STOP $$; kill -TSTP $$; echo went on; read x`)
	s.dial(attach).shows("went on")
}

// Processes whose parents have ended are reaped, and the program's status is its
// own.
func TestOrphansAreReaped(t *testing.T) {
	s := serve(t, `for i in 1 2 3 4 5; do (sh -c 'exit 1' &) ; done
		zombies() { for c in $(cat /proc/$PPID/task/*/children); do grep '^State:.Z' /proc/$c/status; done 2>/dev/null; }
		while test "$(zombies)"; do :; done; exit 6`)
	if got := s.status(); got != 6 {
		t.Errorf("status %d", got)
	}
}

// The program has the terminal and no other descriptor, whatever ctxterm was
// started with, and can not look into ctxterm.
func TestTheProgramIsKeptOut(t *testing.T) {
	s := newServed(t)
	secret, err := os.Open("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	dir := t.TempDir()
	s.start([]string{"--listen", s.path, "--dir", dir, "--", "sh", "-c",
		`stty -echo; ls -l /proc/self/fd; echo "owner: $(stat -c %U /proc/$PPID/environ)"; read x`}, secret, secret)
	c := s.dial(attach)
	c.shows("owner: root")
	for _, open := range []string{"passwd", "socket:", "events", "ptmx", dir} {
		if got := c.output.String(); strings.Contains(got, open) {
			t.Errorf("the program has %s: %q", open, got)
		}
	}
}

// Whatever runs inside is refused, also when its parents have ended.
func TestInsideIsRefused(t *testing.T) {
	for name, script := range map[string]string{
		"the program": `exec env RUN_CLIENT=%s "$0"`,
		"its child":   `RUN_CLIENT=%s "$0"; read x`,
		"its orphan":  `tty=$(tty); (RUN_CLIENT=%s setsid "$0" >$tty &); read x`,
		"another one": `tty=$(tty); (trap "" HUP; setsid setsid sh -c 'exec env RUN_CLIENT=%s "$0"' "$0" >$tty 2>&1 &); read x`,
	} {
		s := newServed(t)
		s.start([]string{"--listen", s.path, "--", "sh", "-c", fmt.Sprintf(script, s.path), os.Args[0]})
		c := s.dial(attach)
		c.shows(`"code":"EACCES"`)
		if strings.Contains(c.output.String(), "hello") {
			t.Errorf("%s: %q", name, c.output.String())
		}
	}
}

// connect is what the program of a test does that connects to its own terminal.
func connect(path string) {
	c, err := net.Dial("unix", path)
	if err != nil {
		fmt.Println(err)
		return
	}
	io.WriteString(c, attach+"\n")
	line, _ := bufio.NewReader(c).ReadString('\n')
	fmt.Print(line)
	os.Stdin.Read(make([]byte, 1))
}

// A socket that was passed serves those outside of ctxterm's pid namespace, and
// nobody beside it.
func TestPassedSocket(t *testing.T) {
	for _, own := range []bool{false, true} {
		s := newServed(t)
		l, err := unixsock.Listen(s.path, unixsock.Options{Perm: 0o600, UID: -1, GID: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s.command([]string{"--listen", "fd:3", "--dir", "fd:4", "--", "sh", "-c", "echo ready; read x; exit 3"}, f, dir)
		if own {
			s.cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
			}
		}
		s.run()
		f.Close()
		dir.Close()
		c := s.dial(attach)
		if !own {
			if e, ok := c.frame().(*termwire.Error); !ok || e.Code != "EACCES" {
				t.Errorf("one beside it is told %+v", e)
			}
			continue
		}
		c.shows("ready")
		c.keys("\r")
		if got := c.exit(); got != 3 || s.status() != 3 {
			t.Errorf("exit %d", got)
		}
	}
}

// Much output, with a watcher that reads nothing, takes no memory.
func TestAFloodIsFlat(t *testing.T) {
	s := serve(t, `stty -echo; echo ready; read x; yes "a line of a flood that is long enough" | head -c 24M; echo; grep VmHWM /proc/$PPID/status; read x`)
	stopped, c := s.dial(`{"op":"watch","cols":80,"rows":24}`), s.dial(attach)
	c.shows("ready")
	stopped.frame()
	c.keys("\r")
	for last := ""; ; {
		c.output.Reset()
		if c.frame() == nil {
			t.Fatal("it has ended")
		}
		last = last[max(0, len(last)-100):] + c.output.String()
		_, line, ok := strings.Cut(last, "VmHWM:")
		if line, _, whole := strings.Cut(line, "kB"); ok && whole {
			var kb int
			if fmt.Sscan(line, &kb); kb == 0 || kb > 200_000 {
				t.Errorf("%q kB", line)
			}
			return
		}
	}
}

func TestClipboard(t *testing.T) {
	for _, flags := range [][]string{nil, {"--clipboard"}} {
		s := serve(t, `stty -echo; echo ready; read x; printf 'a\033]52;c;eA==\ab\n'; read x`, flags...)
		c := s.dial(attach)
		c.shows("ready")
		c.keys("\r")
		want := "ab"
		if flags != nil {
			want = "a\x1b]52;c;eA==\ab"
		}
		c.shows(want)
	}
}

func TestListenErrors(t *testing.T) {
	live := serve(t, "echo ready; read x")
	live.dial(attach).shows("ready")
	for name, c := range map[string]struct {
		args   []string
		says   string
		status int
	}{
		"a live socket":    {[]string{"--listen", live.path, "--", "true"}, "another process listens there", 1},
		"a closed fd":      {[]string{"--listen", "fd:9", "--", "true"}, "--listen fd:9: bad file descriptor", 2},
		"a standard fd":    {[]string{"--listen", "fd:1", "--", "true"}, "from 3", 2},
		"no number":        {[]string{"--listen", "fd:x", "--", "true"}, "from 3", 2},
		"no directory":     {[]string{"--listen", live.path + "2", "--dir", live.path + "/no", "--", "true"}, "--dir", 1},
		"no place":         {[]string{"--listen", "/nowhere/s", "--", "true"}, "/nowhere/s", 1},
		"a bad size":       {[]string{"--listen", live.path + "2", "--size", "0x0", "--", "true"}, "COLSxROWS", 2},
		"no such program":  {[]string{"--listen", live.path + "2", "--", "no-such-program"}, "no-such-program: not found", 127},
		"a directory":      {[]string{"--listen", live.path + "2", "--", "/etc"}, "permission denied", 126},
		"a record alone":   {[]string{"--dir", "/tmp", "--", "true"}, "need --listen", 2},
		"clipboards alone": {[]string{"--clipboard", "--", "true"}, "need --listen", 2},
		"no program":       {[]string{"--listen", live.path + "2"}, "/ctx/bin/tsh: ", 127},
	} {
		_, stderr, status := ctxterm(t, "", c.args...)
		if !strings.Contains(stderr, c.says) || status != c.status {
			t.Errorf("%s: %q, %d", name, stderr, status)
		}
	}
}
