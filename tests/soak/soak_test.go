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
	"syscall"
	"testing"
	"time"

	"cortexfs.org/tests/internal/checker"
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

// TestSoak is the storm. Two worlds suffer it at once: in one everything is
// killed all the time, in the other nothing is, so that what one process gathers
// over the time can be seen.
func TestSoak(t *testing.T) {
	s := seed(t)
	long := *howLong > time.Minute
	clients, agents, sessions := 8, 2, 3
	if long {
		clients, agents, sessions = 16, 3, 5
	}
	wild := newArena(t, newTally(), agents, sessions)
	calm := newArena(t, newTally(), 1, sessions)
	log := wild.w.Dir + "/kills"
	skies := rand.New(rand.NewPCG(s, 1))
	serve := startDaemon(t, wild.w, wild.tally, func() string {
		sky := weathers[skies.IntN(len(weathers))]
		wild.tally.count("weather " + cmp.Or(sky, "fair"))
		return fmt.Sprintf("%s,seed=%d,log=%s", sky, skies.Uint64(), log)
	}, "serve")
	agent := startDaemon(t, calm.w, calm.tally, func() string { return "" }, "agent", "a0")

	begun := time.Now()
	wild.start(t, clients, s, "w")
	calm.start(t, 4, s+1, "c")
	memory := storm(wild, calm, serve, agent, rand.New(rand.NewPCG(s, 2)))
	wild.finish(t)
	calm.finish(t)
	took := time.Since(begun).Round(time.Second)

	// Whatever the last daemons suffer from, their successors do not.
	serve.stop(syscall.SIGKILL)
	wild.w.AwaitGone("killed daemons", wild.w.Processes)
	serve = startDaemon(t, wild.w, wild.tally, func() string { return "" }, "serve")
	wild.visit(t, s)
	calm.visit(t, s+1)
	open := leftOpen(t, wild, calm)
	for agent, pid := range servers(wild.w) {
		t.Logf("memory of %s: %d KiB", agent, rss(pid))
	}
	serve.stop(syscall.SIGTERM)
	agent.stop(syscall.SIGTERM)
	for _, a := range []*arena{wild, calm} {
		a.w.AwaitGone("ended daemons", a.w.Processes)
	}
	leftFiles(t, wild, calm)
	var kills string
	if text, err := os.ReadFile(log); err == nil {
		kills = string(text)
	}
	reports := []*checker.Report{wild.check(t), calm.check(t)}
	t.Logf("storm of %s, seed %d\nkilled at points:\n%swild:\n%s  %s\ncalm:\n%s  %s\nopen at the end: %s",
		took, s, byPoint(kills), wild.tally, reports[0], calm.tally, reports[1], open)
	t.Logf("summary: %s of seed %d, %d kills, %d runs, %d calls, %d problems; memory of ctxd agent: %s",
		took, s, strings.Count(kills, "\n")+wild.tally.of("kills of serve")+wild.tally.of("kills of an agent"),
		reports[0].Runs+reports[1].Runs, reports[0].Calls+reports[1].Calls,
		len(reports[0].Problems)+len(reports[1].Problems), memory)
	if reports[0].Marks == 0 || reports[0].Acknowledged == 0 {
		t.Error("nothing happened")
	}
	memory.check(t)
}

// storm kills daemons of the wild world until the time is over and returns what
// the calm one used of memory.
func storm(wild, calm *arena, serve, agent *daemon, random *rand.Rand) memory {
	const look = 250 * time.Millisecond
	var m memory
	begun := time.Now()
	gap := func() time.Duration { return time.Duration(100+random.IntN(500)) * time.Millisecond }
	generation := max(20*time.Second, *howLong/30)
	next, age := gap(), generation
	for now := time.Duration(0); now < *howLong; now = time.Since(begun) {
		wait(min(look, max(next-now, time.Millisecond)))
		m.add(now, rss(agent.pid()))
		if now > age {
			age += generation
			wild.age.Add(1)
			calm.age.Add(1)
		}
		if now < next {
			continue
		}
		next = now + gap()
		if random.IntN(5) == 0 {
			serve.kill()
			wild.tally.count("kills of serve")
			continue
		}
		live := servers(wild.w)
		name := wild.agents[random.IntN(len(wild.agents))]
		if pid := live[name]; pid != 0 && killServer(wild.w, pid) {
			wild.tally.count("kills of an agent")
		}
	}
	return m
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
