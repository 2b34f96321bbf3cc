package bench

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cortexfs.org/tests/internal/scripted"
	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// instant is a provider that answers at once: the first so many requests of a run
// with the call `bash -c true`, the next one with a word.
type instant struct {
	*scripted.Server
	mu    sync.Mutex
	turns int
	came  []time.Time
	bytes []int
	spent []time.Duration // of processors, by the first and the last request
	look  func() time.Duration
	last  func() // when the last request is there, nil: nothing
}

func (p *instant) reply(r *scripted.Request) scripted.Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.came)
	if n == p.turns && p.look != nil {
		p.spent = append(p.spent, p.look())
	}
	p.came, p.bytes = append(p.came, time.Now()), append(p.bytes, len(r.Body))
	if n == 0 && p.look != nil {
		p.spent = append(p.spent, p.look())
	}
	if n >= p.turns {
		if p.last != nil {
			p.last()
		}
		return scripted.Text("done")
	}
	return scripted.Calls(scripted.Call{ID: "c", Name: "tsh", Arguments: `{"args":["bash","-c","true"]}`})
}

// begin is called before each run.
func (p *instant) begin(turns int, look func() time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns, p.look = turns, look
	p.came, p.bytes, p.spent = nil, nil, nil
}

// each is how long the turns of the run took, one by one.
func (p *instant) each() (s sample) {
	for i := range p.turns {
		s = append(s, p.came[i+1].Sub(p.came[i]))
	}
	return s
}

// first is when the first request came.
func (p *instant) first() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.came[0]
}

// models measures a model agent: everything but the model.
func (s *suite) models() {
	r := s.recipe()
	defer r.free()
	nothing := func() { r.run("", "/bin/bash", "-c", "true") }
	l := &suite{B: s.B, table: s.table, w: world.NewUser(s.B)}
	p := &instant{}
	p.Server = scripted.New(s.B, p.reply)
	p.Forget()
	l.w.MustCtx("provider", "add", "lab", "--base-url", p.URL, "--model", "m", "--limit", "400000", "--no-key")
	l.w.MustCtx("agent", "new", string(agent), "--model", "lab/m", "--tool", "bash")
	l.w.MustCtx("agent", "tsh", string(agent), "help")
	l.turns(p, nothing)
	l.firsts(p)
	l.inLong(p)
	l.rest(p)
}

// turns measures what one more turn costs, early and late in a run.
func (s *suite) turns(p *instant, nothing func()) {
	s.head("a turn of a model agent, in a run of so many: request, bash -c true, result")
	const what = "bwrap, the same recipe, bash -c true"
	c := s.dial()
	defer c.Close()
	for _, n := range []struct{ turns, runs int }{{1, 40}, {8, 12}, {32, 6}, {128, 4}} {
		var turns, late, floor sample
		var cpu, bare time.Duration
		for run := range n.runs + 1 {
			name := fmt.Sprintf("turns-%d-%d", n.turns, run)
			p.begin(n.turns, s.spent)
			c.ask(s, s.send(name, "go"), "done")
			if s.Failed() {
				s.FailNow()
			}
			before := children()
			floors := s.repeat(0, min(n.turns, 8), nothing)[0]
			if run == 0 {
				continue // warms up
			}
			bare += (children() - before) / time.Duration(len(floors))
			each := p.each()
			turns, floor = append(turns, each...), append(floor, floors...)
			late = append(late, each[max(0, len(each)-8):]...)
			cpu += (p.spent[1] - p.spent[0]) / time.Duration(n.turns)
		}
		name := fmt.Sprintf("of %d", n.turns)
		s.times(name, turns, floor, what)
		if n.turns > 8 {
			s.times(name+", the last eight", late, floor, what)
		}
		s.times(name+", processor time", sample{cpu / time.Duration(n.runs)}, sample{bare / time.Duration(n.runs)}, what)
	}
	first, last := p.bytes[0], p.bytes[len(p.bytes)-1]
	s.figures("bytes of the 129th request", "KB", float64(last)/1e3, float64(first)/1e3, 1, "bytes of the first")
	body := strings.Repeat("x", last)
	post := sample{}
	for range 40 {
		begun := time.Now()
		p.begin(0, nil)
		resp, err := http.Post(p.URL+"/chat/completions", "application/json", strings.NewReader(body))
		s.must(err)
		resp.Body.Close()
		post = append(post, time.Since(begun))
	}
	s.times("the 129th request alone, to the provider", post, sample{s.dialled(p)}, "a connection to it")
}

// dialled is how long a connection to the provider takes.
func (s *suite) dialled(p *instant) time.Duration {
	return s.repeat(2, 20, func() {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
		s.must(err)
		c.Close()
	})[0].median()
}

// spent is what the agent's server and ctxmodel used of the processors, with the
// children they have waited for.
func (s *suite) spent() (sum time.Duration) {
	for _, pid := range s.w.Processes() {
		words := command(pid)
		if filepath.Base(words[0]) != "ctxmodel" && !slices.Contains(words, "agent") {
			continue
		}
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, f := range fields[11:15] { // utime stime cutime cstime, in hundredths
			n, err := strconv.Atoi(f)
			s.must(err)
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}

// children is what children of this process that it has waited for used.
func children() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_CHILDREN, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// firsts measures the time from a message to the first request.
func (s *suite) firsts(p *instant) {
	s.head("from a message to the first request at the provider")
	c := s.dial()
	defer c.Close()
	var line, warm, idle, cold, one, four sample
	measure := func(to *sample, fn func()) {
		p.begin(0, nil)
		begun := time.Now()
		fn()
		if s.Failed() {
			s.FailNow()
		}
		*to = append(*to, p.first().Sub(begun))
	}
	send := func() { s.w.MustCtx("agent", "send", "--session", "first", string(agent), "hello") }
	version := func(names ...string) time.Duration {
		begun := time.Now()
		for _, name := range names {
			s.must(s.w.Command(name, "--version").Run())
		}
		return time.Since(begun)
	}
	for round := range 60 {
		measure(&line, func() { c.ask(s, s.send("first", "hello"), "done") })
		measure(&warm, send)
		one = append(one, version("ctx"))
		if round%4 != 0 {
			continue
		}
		c.Close()
		s.stopAgent()
		measure(&idle, send)
		s.stopAll()
		measure(&cold, send)
		four = append(four, version("ctx", "ctxd", "ctxd", "ctxmodel"))
		c = s.dial()
	}
	s.times("one connection, warm", line[1:], sample{s.dialled(p)}, "a connection to the provider")
	s.times("ctx agent send, warm", warm[1:], one, "ctx --version")
	s.times("ctx agent send, ctxd serve and ctxmodel alone", idle, one, "ctx --version")
	s.times("ctx agent send, no process at all", cold, four, "ctx, ctxd, ctxd, ctxmodel --version")
}

// inLong measures whether it matters how long the session is.
func (s *suite) inLong(p *instant) {
	s.head("a model agent in a session of so many entries")
	const what = "the same in a session of 10 entries"
	c := s.dial()
	defer c.Close()
	var first, turn [3]sample
	var fresh [3]sample
	lengths := []int{10, 10_000, 100_000}
	for i, n := range lengths {
		name := string(s.long(n))
		s.give()
		for range 5 {
			c.Close()
			s.stopAgent()
			c = s.dial()
			c.ask(s, `{"op":"ping"}`, "pong")
			p.begin(0, nil)
			begun := time.Now()
			c.ask(s, s.send(name, "hello"), "done")
			if s.Failed() {
				s.FailNow()
			}
			fresh[i] = append(fresh[i], p.first().Sub(begun))
		}
	}
	for range 30 {
		for i, n := range lengths {
			p.begin(1, nil)
			begun := time.Now()
			c.ask(s, s.send(fmt.Sprint("entries-", n), "hello"), "done")
			if s.Failed() {
				s.FailNow()
			}
			first[i] = append(first[i], p.first().Sub(begun))
			turn[i] = append(turn[i], p.each()...)
		}
	}
	for i, n := range lengths {
		s.times(fmt.Sprintf("%d, opened, to the first request", n), fresh[i], fresh[0], what)
		s.times(fmt.Sprintf("%d, to the first request", n), first[i], first[0], what)
		s.times(fmt.Sprintf("%d, one turn", n), turn[i], turn[0], what)
	}
}

// give makes the world's user the owner of what uid 0 made for him.
func (s *suite) give() {
	if s.w.UID == os.Geteuid() {
		return
	}
	s.must(filepath.WalkDir(s.w.Root, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, s.w.UID, s.w.UID)
		}
		return err
	}))
}

// rest looks at memory while the last of 128 turns goes on.
func (s *suite) rest(p *instant) {
	s.head("memory of an active model agent, after 128 turns")
	var all float64
	type held struct {
		name string
		mb   float64
	}
	var rows []held
	p.last = func() {
		p.last = nil
		for _, pid := range s.w.Processes() {
			words := command(pid)
			name := filepath.Base(words[0])
			switch {
			case name == "ctxd" && slices.Contains(words, "agent"):
				name = "ctxd agent"
			case name != "ctx" && name != "ctxmodel":
				continue
			}
			mb := s.megabytes(pid, "status", "VmRSS")
			all += mb
			rows = append(rows, held{name, mb})
		}
	}
	s.stopAgent()
	p.begin(128, nil)
	s.w.MustCtx("agent", "send", "--session", "memory", string(agent), "go")
	floor := s.w.Command("puppet")
	stdin, err := floor.StdinPipe()
	s.must(err)
	defer stdin.Close()
	s.must(floor.Start())
	defer floor.Process.Kill()
	bare := s.megabytes(floor.Process.Pid, "status", "VmRSS")
	const what = "a small Go program that waits"
	for _, r := range rows {
		s.figures(r.name+", RSS", "MB", r.mb, bare, 1, what)
	}
	s.figures("together", "MB", all, 3*bare, 1, "three of them")
}
