package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// conn is a client that looks at no more of a frame than its kind.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func (s *suite) dial() *conn {
	s.Helper()
	c, err := net.Dial("unix", s.w.Layout.AgentLink(agent))
	s.must(err)
	return &conn{c, bufio.NewReaderSize(c, 1<<20)}
}

// ask writes a request and reads up to a frame of the kind.
func (c *conn) ask(s *suite, line, kind string) {
	if _, err := c.Write([]byte(line + "\n")); err != nil {
		s.Error(err)
		return
	}
	c.until(s, kind)
}

// until reads up to a frame of the kind. An error, and a status that is not ok,
// end the benchmark: a failure is no measurement.
func (c *conn) until(s *suite, kind string) {
	for {
		frame, err := c.r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			continue // a long frame is none of those waited for
		}
		if err != nil {
			s.Error(err)
			return
		}
		if bytes.HasPrefix(frame, []byte(`{"type":"error"`)) {
			s.Errorf("%s", frame)
			return
		}
		if !bytes.HasPrefix(frame, []byte(`{"type":"`+kind+`"`)) {
			continue
		}
		var f struct{ Status string }
		if err := json.Unmarshal(frame, &f); err != nil || f.Status != "" && f.Status != "ok" {
			s.Errorf("%s", frame)
		}
		return
	}
}

var count atomic.Int64

func (s *suite) request(op, session string, more map[string]any) string {
	m := map[string]any{"op": op, "id": fmt.Sprint("b", count.Add(1)), "session": session, "workspace": s.w.Workspace}
	maps.Copy(m, more)
	return world.JSON(m)
}

func (s *suite) send(session, input string) string {
	return s.request("send", session, map[string]any{"input": input})
}

func (s *suite) tsh(session string) string {
	return s.request("tsh", session, map[string]any{"args": []string{"fs.read", "README.md"}})
}

// starts measures what every command pays before it does anything.
func (s *suite) starts() {
	s.head("start of a program, to its end")
	version := func(name string) func() {
		return func() { s.must(s.w.Command(name, "--version").Run()) }
	}
	all := s.repeat(5, 60, version("ctx"), version("ctxd"), version("tsh"), func() { s.must(exec.Command("/bin/true").Run()) })
	for i, name := range []string{"ctx", "ctxd", "tsh"} {
		s.times(name+" --version", all[i], all[3], "/bin/true")
	}
}

// sends measures a message to the agent and its answer.
func (s *suite) sends() {
	s.head("send to an echo agent, to the end of the run")
	send := func() { s.w.MustCtx("agent", "send", "--session", "echo", string(agent), "say hello") }
	send()
	var cold, idle, huge, index sample
	for range 15 {
		s.stopAgent()
		idle = append(idle, s.repeat(0, 1, send)[0]...)
		s.stopAll()
		cold = append(cold, s.repeat(0, 1, send)[0]...)
	}
	for range 9 {
		s.stopAgent()
		c := s.dial()
		c.ask(s, `{"op":"ping"}`, "pong") // the process is up, the session is not open
		all := s.repeat(0, 1, func() {
			c.ask(s, s.send(string(ledger(256)), "say hello"), "start")
		}, func() { s.read(s.dir(ledger(256)) + "/context/ledger.idx") })
		c.until(s, "done")
		c.Close()
		huge, index = append(huge, all[0]...), append(index, all[1]...)
	}
	r := s.recipe()
	defer r.free()
	c := s.dial()
	defer c.Close()
	all := s.repeat(5, 100, func() { c.ask(s, s.send("warm", "say hello"), "done") }, send, r.step)
	const what = "bwrap, the same recipe and executable"
	s.times("one connection, warm", all[0], all[2], what)
	s.times("ctx agent send, warm", all[1], all[2], what)
	s.times("ctx agent send, ctxd serve alone", idle, all[2], what)
	s.times("ctx agent send, no process at all", cold, all[2], what)
	s.times("256 MiB session, to the start frame", huge, index, "read ledger.idx")
}

// tools measures tool calls.
func (s *suite) tools() {
	s.head("one call of fs.read")
	r := s.recipe()
	defer r.free()
	c := s.dial()
	defer c.Close()
	all := s.repeat(5, 150, func() { c.ask(s, s.tsh("tools"), "done") }, r.tool, s.trivial)
	s.times("tsh, its sandbox prepared", all[0], all[1], "bwrap, the same recipe and tool")
	s.times("the same", all[0], all[2], "bwrap … true")
	// Calls in turns in two workspaces: none finds a sandbox that is like its own.
	other := s.w.Workspace + "-other"
	s.must(os.CopyFS(other, os.DirFS(s.w.Workspace)))
	read := func(workspace string) func() {
		return func() {
			c.ask(s, s.request("tsh", "tools", map[string]any{"args": []string{"fs.read", "README.md"}, "workspace": workspace}), "done")
		}
	}
	all = s.repeat(5, 75, read(s.w.Workspace), read(other), r.tool, s.trivial)
	launched := append(all[0], all[1]...)
	s.times("tsh, its sandbox launched", launched, all[2], "bwrap, the same recipe and tool")
	s.times("the same", launched, all[3], "bwrap … true")
	with := strings.Repeat(`call fs.read {"path":"README.md"}`+"\n--\n", libctx.MaxAgentCalls) + "say done"
	all = s.repeat(2, 20, func() {
		c.ask(s, s.send("turns", with), "done")
	}, func() { c.ask(s, s.send("turns", "say done"), "done") }, func() { r.tool(); r.step() })
	turn := (all[0].median() - all[1].median()) / libctx.MaxAgentCalls
	s.times("turn of a run: a call, an agent step", sample{turn}, all[2], "bwrap, twice")

	const sessions, each = 100, 3
	floor := rate(sessions, each, func(int) func() { return r.tool })
	var conns []*conn
	many := rate(sessions, each, func(i int) func() {
		c := s.dial()
		conns = append(conns, c)
		session := fmt.Sprint("many-", i)
		return func() { c.ask(s, s.tsh(session), "done") }
	})
	for _, c := range conns {
		c.Close() // an agent has few more than a hundred
	}
	s.figures("100 sessions at once", "calls/s", many, floor, sessions*each, "bwrap, 100 at once")
}

// rate runs what make returns, each times in n goroutines at once, and is in
// calls per second.
func rate(n, each int, make func(i int) func()) float64 {
	var all []func()
	for i := range n {
		all = append(all, make(i))
	}
	var wg sync.WaitGroup
	begun := time.Now()
	for _, fn := range all {
		wg.Go(func() {
			for range each {
				fn()
			}
		})
	}
	wg.Wait()
	return float64(n*each) / time.Since(begun).Seconds()
}

// memory looks at what the processes hold after all that work, idle.
func (s *suite) memory() {
	s.head("memory after all this, idle")
	floor := s.w.Command("puppet")
	stdin, err := floor.StdinPipe()
	s.must(err)
	defer stdin.Close()
	s.must(floor.Start())
	defer floor.Process.Kill()
	for _, p := range s.w.Processes() {
		words := command(p)
		if p == floor.Process.Pid || filepath.Base(words[0]) != "ctxd" {
			continue
		}
		name := "ctxd serve"
		if slices.Contains(words, "agent") {
			name = "ctxd agent"
		}
		for _, kind := range []string{"Rss", "Pss"} {
			s.figures(name+", "+strings.ToUpper(kind), "MB", s.megabytes(p, "smaps_rollup", kind), s.megabytes(floor.Process.Pid, "smaps_rollup", kind), 1, "a small Go program that waits")
		}
	}
}

func command(pid int) []string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(string(line), "\x00")
}

// megabytes is a line of a file of /proc about a process, in MB of 10⁶ bytes.
func (s *suite) megabytes(pid int, file, kind string) float64 {
	s.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	s.must(err)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == kind+":" {
			kb, err := strconv.ParseFloat(f[1], 64)
			s.must(err)
			return kb * 1024 / 1e6
		}
	}
	s.Fatal("no " + kind)
	return 0
}

// stopAgent ends the agent's process and returns when it is gone.
func (s *suite) stopAgent() {
	for _, p := range s.w.Processes() {
		if slices.Contains(command(p), "agent") {
			s.end(p)
		}
	}
}

// stopAll ends every process of the world, the activator first.
func (s *suite) stopAll() {
	for _, p := range s.w.Processes() {
		if slices.Contains(command(p), "serve") {
			s.end(p)
		}
	}
	for _, p := range s.w.Processes() {
		s.end(p)
	}
}

func (s *suite) end(pid int) {
	s.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	s.must(err)
	defer unix.Close(fd)
	unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0)
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(world.Patience.Milliseconds())); n != 1 {
		s.Fatalf("process %d does not end: %v", pid, err)
	}
}
