// Package soak storms the suite: many clients, sessions and agents, while the
// daemons are killed at random moments and at every step of a commit, the disk
// is full or fails, and the clock is wrong. Afterwards a checker that shares no
// code with the suite reads every ledger. docs/endurance.md has the whole list.
package soak

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/tests/internal/world"
)

var (
	howLong = flag.Duration("time", 4*time.Second, "how long the storm lasts")
	seedOf  = flag.Uint64("seed", 0, "seed of the storm; 0: a random one")
	keepDir = flag.String("keep", "", "directory for the files of a storm that failed")
)

func TestMain(m *testing.M) {
	flag.Parse()
	world.Main(m)
}

func seed(t testing.TB) uint64 {
	s := *seedOf
	if s == 0 {
		s = rand.Uint64()>>1 | 1
	}
	t.Logf("seed %d (again with SEED=%d)", s, s)
	return s
}

// weathers are what a daemon of the storm may be made to suffer from its start
// on, most often nothing.
var weathers = []string{
	"", "", "", "",
	"*=kill:0.002",
	"session.*=kill:0.01",
	"session.commit.*=kill:0.02",
	"calls.*=kill:0.03,run.*=kill:0.01",
	"sandbox.*=kill:0.02,activate.*=kill:0.1",
	"session.commit.write=enospc:0.02,session.events.write=enospc:0.02,atomicfile.write=enospc:0.1",
	"session.commit.sync=eio:0.02,session.commit.write=eio:0.01,atomicfile.write=eio:0.1",
	"session.events.write=eio:0.05,session.commit.written=kill:0.01",
	"clock=+3h",
	"clock=-72h,session.commit.*=kill:0.01",
	"clock=jump:9000h",
}

// TestSoak is the storm. Two pairs of worlds suffer it at once, one of executable
// agents and one of model agents. In one world of each everything is killed all
// the time, in the other nothing is, so that what one process gathers over the
// time can be seen.
func TestSoak(t *testing.T) {
	s := seed(t)
	clients, agents, sessions := 8, 2, 3
	if *howLong > time.Minute {
		clients, agents, sessions = 16, 3, 5
	}
	calm := newArena(t, newTally(), 1, sessions)
	still := newLab(t, newTally(), 1, sessions, s+2)
	pairs := []*pair{
		{name: "executables", wild: newArena(t, newTally(), agents, sessions), calm: calm},
		{name: "models", wild: newLab(t, newTally(), agents, sessions, s+3), calm: still},
	}
	begun := time.Now()
	var over sync.WaitGroup
	for i, p := range pairs {
		p.start(t, clients>>i, s+uint64(10*i))
		over.Go(p.storm)
	}
	over.Wait()
	var arenas []*arena
	for _, p := range pairs {
		p.wild.finish(t)
		p.calm.finish(t)
		arenas = append(arenas, p.wild, p.calm)
	}
	took := time.Since(begun).Round(time.Second)
	for i, p := range pairs {
		p.recover(t, s+uint64(10*i))
	}
	open := leftOpen(t, arenas...)
	for _, p := range pairs {
		p.stop()
	}
	leftFiles(t, arenas...)
	kills, runs, calls, problems := 0, 0, 0, 0
	var memories []string
	for _, p := range pairs {
		log, _ := os.ReadFile(p.log)
		kills += strings.Count(string(log), "\n")
		t.Logf("%s: killed at points:\n%s", p.name, byPoint(string(log)))
		for _, a := range []*arena{p.wild, p.calm} {
			r := a.check(t)
			t.Logf("%s of %s:\n%s  %s", map[bool]string{true: "wild", false: "calm"}[a == p.wild], p.name, a.tally, r)
			kills += a.tally.of("kills of serve") + a.tally.of("kills of an agent") + a.tally.of("kills of ctxmodel")
			runs, calls, problems = runs+r.Runs, calls+r.Calls, problems+len(r.Problems)
			if r.Marks == 0 || r.Acknowledged == 0 {
				t.Error("nothing happened")
			}
		}
		memories = append(memories, p.memory.String())
		p.memory.check(t)
	}
	t.Logf("open at the end: %s", open)
	t.Logf("summary: %s of seed %d, %d kills, %d runs, %d calls, %d problems; memory of ctxd agent: %s",
		took, s, kills, runs, calls, problems, strings.Join(memories, "; of models: "))
}

// pair is two worlds of the storm, and what serves them.
type pair struct {
	name         string
	wild, calm   *arena
	log          string // of kills at fault points
	random       *rand.Rand
	serve, agent *daemon
	memory       memory
}

// start begins the work on both.
func (p *pair) start(t testing.TB, clients int, s uint64) {
	p.log = p.wild.w.Dir + "/kills"
	p.random = rand.New(rand.NewPCG(s, 2))
	skies := rand.New(rand.NewPCG(s, 1))
	p.serve = startDaemon(t, p.wild.w, p.wild.tally, func() string {
		sky := weathers[skies.IntN(len(weathers))]
		p.wild.tally.count("weather " + cmp.Or(sky, "fair"))
		return fmt.Sprintf("%s,seed=%d,log=%s", sky, skies.Uint64(), p.log)
	}, "serve")
	p.agent = startDaemon(t, p.calm.w, p.calm.tally, func() string { return "" }, "agent", p.calm.agents[0])
	p.wild.start(t, clients, s, "w")
	p.calm.start(t, max(2, clients/2), s+1, "c")
}

// recover starts the wild world anew. Whatever its last daemons suffer from,
// their successors do not; and every session answers.
func (p *pair) recover(t testing.TB, s uint64) {
	p.serve.stop(syscall.SIGKILL)
	p.wild.w.AwaitGone("killed daemons", p.wild.w.Processes)
	p.serve = startDaemon(t, p.wild.w, p.wild.tally, func() string { return "" }, "serve")
	for i, a := range []*arena{p.wild, p.calm} {
		if a.lab != nil {
			a.lab.kind.Store(true)
		}
		a.visit(t, s+uint64(i))
	}
	for agent, pid := range servers(p.wild.w) {
		t.Logf("memory of %s: %d KiB", agent, rss(pid))
	}
}

// stop ends both worlds for good.
func (p *pair) stop() {
	p.serve.stop(syscall.SIGTERM)
	p.agent.stop(syscall.SIGTERM)
	for _, a := range []*arena{p.wild, p.calm} {
		a.w.AwaitGone("ended daemons", a.w.Processes)
	}
}

// storm kills daemons of the wild world until the time is over, and measures what
// the calm one uses of memory.
func (p *pair) storm() {
	const look = 250 * time.Millisecond
	wild, random := p.wild, p.random
	begun := time.Now()
	gap := func() time.Duration { return time.Duration(100+random.IntN(500)) * time.Millisecond }
	generation := max(20*time.Second, *howLong/30)
	next, age := gap(), generation
	for now := time.Duration(0); now < *howLong; now = time.Since(begun) {
		wait(min(look, max(next-now, time.Millisecond)))
		p.memory.add(now, rss(p.agent.pid()))
		if now > age {
			age += generation
			wild.age.Add(1)
			p.calm.age.Add(1)
		}
		if now < next {
			continue
		}
		next = now + gap()
		switch dice := random.IntN(10); {
		case dice < 2:
			p.serve.kill()
			wild.tally.count("kills of serve")
			continue
		case dice < 6 && wild.lab != nil:
			if killModels(wild.w) {
				wild.tally.count("kills of ctxmodel")
			}
			continue
		}
		live := servers(wild.w)
		name := wild.agents[random.IntN(len(wild.agents))]
		if pid := live[name]; pid != 0 && killServer(wild.w, pid) {
			wild.tally.count("kills of an agent")
		}
	}
}

// byPoint counts the kills that fault points did.
func byPoint(log string) string {
	counts := map[string]int{}
	for line := range strings.Lines(log) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			counts[name]++
		}
	}
	var lines []string
	for name, n := range counts {
		lines = append(lines, fmt.Sprintf("  %-34s %d\n", name, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// memory is the resident memory of one process over a storm, KiB.
type memory struct {
	first, last, most int // first: the most of the first minute, or third
	samples           []int
}

func (m *memory) add(at time.Duration, kib int) {
	if kib == 0 {
		return
	}
	m.samples = append(m.samples, kib)
	m.most = max(m.most, kib)
	if at < min(time.Minute, *howLong/3) {
		m.first = max(m.first, kib)
	}
	tail := m.samples[max(0, len(m.samples)-20):]
	m.last = slices.Max(tail)
}

func (m memory) String() string {
	return fmt.Sprintf("%d MiB in the first minute, %d MiB at the end (%.2f×), never more than %d MiB",
		m.first>>10, m.last>>10, float64(m.last)/float64(max(m.first, 1)), m.most>>10)
}

// check bounds the memory: caches may fill, but nothing may be kept for each run.
func (m memory) check(t testing.TB) {
	t.Helper()
	if m.last > m.first*3/2+24<<10 || m.most > 200<<10 {
		t.Errorf("memory grows: %s", m)
	}
}

// leftOpen checks that agents without work hold nothing but their sockets, a few
// idle sessions, and one sandbox each that is prepared for a call to come: two
// processes, with two handles, a channel, and three pipes here.
func leftOpen(t testing.TB, arenas ...*arena) string {
	t.Helper()
	var all []string
	for _, a := range arenas {
		for agent, pid := range servers(a.w) {
			// The connections of the last visit are being closed: look until they are.
			var kinds map[string]int
			for range 200 {
				if kinds = descriptors(pid); kinds["socket"] <= 3 && kinds["anon_inode:[pidfd]"] <= 2 {
					break
				}
				wait(10 * time.Millisecond)
			}
			all = append(all, fmt.Sprintf("%s %v", agent, kinds))
			total := 0
			for _, n := range kinds {
				total += n
			}
			if kinds["socket"] > 3 || kinds["anon_inode:[pidfd]"] > 2 || kinds["pipe"] > 4 || total > 60 {
				t.Errorf("agent %s has open without work: %v", agent, kinds)
			}
		}
		if pids := a.w.Inside(); len(pids) > 2*len(servers(a.w)) {
			t.Errorf("processes in sandboxes without work: %v", pids)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// leftFiles checks that no half-written file is left where sessions were opened.
func leftFiles(t testing.TB, arenas ...*arena) {
	t.Helper()
	for _, a := range arenas {
		for _, agent := range a.agents {
			for _, path := range find(t, strings.TrimSuffix(a.w.Session(agent, ""), "/"), ".tmp-") {
				if !strings.Contains(path, "/index/") {
					t.Errorf("%s is left", path)
				}
			}
		}
	}
}
