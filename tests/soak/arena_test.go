package soak

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cortexfs.org/tests/internal/checker"
	"cortexfs.org/tests/internal/world"
)

// mark is a tool that leaves a line for each execution: its key, given once a
// call, and the run. Then it does what its second word says.
const mark = `#!/bin/sh
echo "$1 $CTX_RUN_ID" >> /workspace/marks
case $2 in
slow) sleep 0.2 ;;
brood) (trap '' TERM; while :; do date >> /workspace/brood; sleep 0.05; done) & setsid sh -c 'while :; do date >> /workspace/brood; sleep 0.05; done' & ;;
big) head -c 90000 /dev/zero | tr '\0' b ;;
bad) exit 3 ;;
esac
echo "marked $1"
`

// arena is a world under a storm: agents, sessions and clients.
type arena struct {
	w        *world.World
	agents   []string
	sessions int // of each agent at a time
	tally    *tally
	until    chan struct{} // closed when no new message is begun
	age      atomic.Int64  // of the sessions: all but the first are new ones with each
	clients  []*client
	work     sync.WaitGroup
	lab      *lab // the provider of its agents' model; nil: they are executables
}

// newArena makes a world with agents that have the tool mark.
func newArena(t testing.TB, tl *tally, agents, sessions int) *arena {
	t.Helper()
	a := furnished(t, newWorld(t), tl, sessions)
	for i := range agents {
		name := fmt.Sprintf("a%d", i)
		a.w.Puppet(name, "mark", "fs.read")
		a.agents = append(a.agents, name)
	}
	return a
}

// furnished is an arena without agents.
func furnished(t testing.TB, w *world.World, tl *tally, sessions int) *arena {
	t.Helper()
	a := &arena{w: w, sessions: sessions, tally: tl, until: make(chan struct{})}
	tool := a.w.Root + "/tool/mark"
	a.w.Mkdir(tool+".d", 0o755)
	a.w.Write(tool+".d/effect", "host_process\n")
	a.w.Write(tool, mark)
	a.w.Write(a.w.Workspace+"/marks", "")
	if err := os.Chmod(tool, 0o755); err != nil {
		t.Fatal(err)
	}
	return a
}

// session picks a session; the first of an agent lasts as long as the storm.
func (a *arena) session(random *rand.Rand) string {
	n := random.IntN(a.sessions)
	if n == 0 {
		return "long"
	}
	return fmt.Sprintf("s%d-%d", n, a.age.Load())
}

// start lets n clients loose.
func (a *arena) start(t testing.TB, n int, seed uint64, prefix string) {
	t.Helper()
	for i := range n {
		c, err := newClient(a.w, a.tally, fmt.Sprintf("%s%d", prefix, i), rand.New(rand.NewPCG(seed, uint64(i))))
		if err != nil {
			t.Fatal(err)
		}
		a.clients = append(a.clients, c)
		a.work.Go(func() { a.loop(c) })
	}
}

// loop is the life of a client.
func (a *arena) loop(c *client) {
	var last *message // the last one that is done
	for {
		select {
		case <-a.until:
			return
		default:
		}
		agent := a.agents[c.random.IntN(len(a.agents))]
		session := a.session(c.random)
		switch dice := c.random.IntN(100); {
		case dice < 8:
			if c.resume(agent, session, 1+c.random.IntN(200)) != nil {
				wait(10 * time.Millisecond)
			}
		case dice < 14 && last != nil:
			a.again(c, last)
		case dice < 18:
			a.torn(c, agent, session)
		case dice < 21 && a.lab != nil:
			c.next++
			c.tell(agent, session, sayings[c.random.IntN(len(sayings))], fmt.Sprintf("%s-%d", c.name, c.next), a.until)
		default:
			m := a.message(c, agent, session)
			if c.deliver(m, a.until, a.manners(c, m)) {
				last = m
			}
			if c.random.IntN(4) == 0 { // what it was told last is found at once
				_ = c.resume(agent, session, 1)
			}
		}
	}
}

// manners is how a client behaves in each attempt at a message.
func (a *arena) manners(c *client, m *message) func() manner {
	first := true
	return func() manner {
		was := first
		first = false
		if m.cancels {
			stop := 1
			if was {
				stop += c.random.IntN(2)
			}
			return manner{name: "cancel", stop: stop}
		}
		switch dice := c.random.IntN(100); {
		case dice >= 60 && a.lab != nil && m.op == "send" && was:
			return manner{name: "tells", tell: sayings[c.random.IntN(len(sayings))]}
		case dice < 10:
			return manner{name: "half closed", half: true}
		case dice < 18:
			return manner{name: "slow", pause: time.Duration(1+c.random.IntN(20)) * time.Millisecond}
		case dice < 26 && was:
			return manner{name: "leaves", leave: 1 + c.random.IntN(6)}
		case dice < 36:
			return manner{name: "cancels", stop: 1 + c.random.IntN(5)}
		}
		return manner{name: "plain"}
	}
}

// message makes a message nobody has sent yet.
func (a *arena) message(c *client, agent, session string) *message {
	c.next++
	m := &message{agent: agent, session: session, op: "send", id: fmt.Sprintf("%s-%d", c.name, c.next)}
	marked := func(step int, words ...string) string {
		args := append([]string{fmt.Sprintf("%s.%d", m.id, step)}, words...)
		return `call mark ` + world.JSON(map[string]any{"args": args})
	}
	if a.lab != nil {
		a.job(c, m)
		return m
	}
	say := "say " + m.id
	var steps []string
	switch dice := c.random.IntN(100); {
	case dice < 20:
		m.op, m.args = "tsh", []string{"mark", m.id + ".0"}
		if dice < 8 {
			m.args = append(m.args, []string{"slow", "brood", "bad", "big"}[dice/2])
		}
		return m
	case dice < 25:
		m.op, m.args = "tsh", []string{"fs.read", "README.md"}
		return m
	case dice < 40:
		steps = []string{say}
	case dice < 55:
		steps = []string{marked(0), say}
	case dice < 65:
		steps = []string{"delta a\nsay b\n" + marked(0), marked(1, "slow"), "observe\n" + say}
	case dice < 72:
		steps = []string{marked(0, "brood"), marked(1, "bad"), marked(2), say}
	case dice < 76:
		steps = []string{marked(0, "big"), "observe"}
	case dice < 80:
		steps = []string{`call nosuch {"args":[]}`, `call fs.read {"path":"/etc/none"}`, marked(2), say}
	case dice < 84:
		steps = []string{marked(0), "exit 3"}
	case dice < 87:
		steps = []string{marked(0), "raw what is this"}
	case dice < 90:
		steps = []string{"flood 600000\n" + say}
	case dice < 93:
		steps = []string{"orphan /workspace/brood\n" + marked(0), say}
	case dice < 95:
		steps = []string{"say " + strings.Repeat("é long ", 12000)}
	default:
		m.cancels = true
		steps = []string{marked(0), "sleep"}
		if dice < 97 {
			steps = []string{marked(0), "sleep deaf"}
		}
	}
	m.input = strings.Join(steps, "\n--\n")
	return m
}

// again repeats a message that is done: the same frames come, nothing runs; with
// another input it is refused.
func (a *arena) again(c *client, m *message) {
	a.tally.count("repeated")
	c.exchange(m, manner{name: "plain"})
	other := *m
	if m.op != "send" {
		return
	}
	other.input += " and more"
	k, err := c.dial(m.agent)
	if err != nil {
		return
	}
	defer k.Close()
	if _, err := k.Write([]byte(other.line(c.w.Workspace) + "\n")); err != nil {
		return
	}
	line, f, err := k.read()
	if err != nil {
		c.judge("repeat", err)
		return
	}
	if code := f.Str("code"); code != "EINVAL" && !excused(f) {
		a.tally.wrong("%s: another message under the id %s got %s", c.name, m.id, line)
	}
}

// torn hangs up in the middle of a request, which then was none.
func (a *arena) torn(c *client, agent, session string) {
	m := a.message(c, agent, session)
	k, err := c.dial(agent)
	if err != nil {
		return
	}
	line := m.line(c.w.Workspace)
	k.Write([]byte(line[:c.random.IntN(len(line))]))
	k.Close()
	a.tally.count("torn requests")
}

// finish waits until every client is done with its last message.
func (a *arena) finish(t testing.TB) {
	t.Helper()
	close(a.until)
	done := make(chan struct{})
	go func() {
		a.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(3 * patience):
		t.Fatal("clients hang")
	}
}

// visit opens every session that is on disk, reads it to its end and lets it
// answer once more.
func (a *arena) visit(t testing.TB, seed uint64) {
	t.Helper()
	c, err := newClient(a.w, a.tally, "last", rand.New(rand.NewPCG(seed, 1<<32)))
	if err != nil {
		t.Fatal(err)
	}
	a.clients = append(a.clients, c)
	for _, agent := range a.agents {
		for end := time.Now().Add(patience); ; wait(5 * time.Millisecond) {
			k, err := c.dial(agent)
			if err == nil {
				k.Close()
				break
			}
			if time.Now().After(end) {
				t.Fatalf("agent %s: %v", agent, err)
			}
		}
	}
	plain := func() manner { return manner{name: "plain"} }
	for _, agent := range a.agents {
		dirs, _ := filepath.Glob(filepath.Dir(a.w.Session(agent, "x")) + "/*/messages.jsonl")
		if len(dirs) == 0 { // the storm was over too soon for this one
			dirs = []string{a.w.Session(agent, "long") + "/messages.jsonl"}
		}
		for _, path := range dirs {
			session := filepath.Base(filepath.Dir(path))
			if _, err := os.Stat(path); err == nil {
				if err := c.resume(agent, session, 0); err != nil {
					t.Errorf("session %s of %s: %v", session, agent, err)
				}
			}
			c.next++
			m := &message{agent: agent, session: session, op: "send", id: fmt.Sprintf("last-%d", c.next)}
			m.input = a.marking(m.id)
			if out, err := c.exchange(m, plain()); err != nil || out.status != "ok" || !out.kept {
				t.Errorf("session %s of %s does not answer: %+v %v", session, agent, out, err)
			}
			c.notes.add(checker.Note{Agent: agent, Session: session, Client: m.id, Input: m.input})
		}
	}
}

// check closes the clients' notes and reads everything as a stranger.
func (a *arena) check(t testing.TB) *checker.Report {
	t.Helper()
	o := checker.Options{Dirs: []string{a.w.Root + "/home"}, Marks: a.w.Workspace + "/marks"}
	for _, c := range a.clients {
		if err := c.notes.close(); err != nil {
			t.Fatal(err)
		}
		o.Told = append(o.Told, c.notes.f.Name())
	}
	r, err := checker.Check(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		t.Error(p)
	}
	a.tally.mu.Lock()
	defer a.tally.mu.Unlock()
	for _, f := range a.tally.faults {
		t.Error(f)
	}
	if a.tally.more > 0 {
		t.Errorf("and %d more", a.tally.more)
	}
	a.tally.faults = nil
	if t.Failed() {
		a.keep(t)
	}
	return r
}

// keep copies what a failed storm left to where somebody can look at it.
func (a *arena) keep(t testing.TB) {
	if *keepDir == "" {
		return
	}
	to := filepath.Join(*keepDir, filepath.Base(a.w.Dir))
	if err := os.CopyFS(to, os.DirFS(a.w.Dir)); err != nil {
		t.Logf("keep: %v", err)
	}
	t.Logf("kept in %s", to)
}
