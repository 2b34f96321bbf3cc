package bench

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/session"
)

// entries are the lengths of the sessions that a run is measured in.
var entries = []int{10, 1_000, 10_000, 100_000}

// newest is how many entries all of them end in alike. They are as much as an
// agent is given of its history, so that all runs do the same work.
const newest = 10

// long makes a session of n entries.
func (s *suite) long(n int) libctx.Session {
	name := libctx.Session(fmt.Sprint("entries-", n))
	o := s.open(name)
	have := 0
	for ; have+81+newest <= n; have += 81 {
		s.commit(o, turn(libctx.ClientID(fmt.Sprint("m", have)))...)
	}
	for ; have < n; have += 2 {
		run := libctx.NewRun()
		records := append(begin(run, libctx.ClientID(fmt.Sprint("m", have))), says(run, 2*libctx.MaxContextText/newest),
			&session.Checkpoint{Run: run, Outcome: session.Completed})
		s.commit(o, records...)
	}
	s.must(o.Close())
	return name
}

// lengths measures whether a run costs more the longer its session is.
func (s *suite) lengths() {
	s.head("one run, in a session of so many entries")
	r := s.recipe()
	defer r.free()
	c := s.dial()
	defer c.Close()
	fns := []func(){r.step, r.tool}
	for _, n := range entries {
		name := string(s.long(n))
		fns = append(fns,
			func() { c.ask(s, s.send(name, "say hello"), "done") },
			func() { c.ask(s, s.tsh(name), "done") })
	}
	all := s.repeat(3, 60, fns...)
	for i, n := range entries {
		s.times(fmt.Sprintf("%d, send", n), all[2+2*i], all[0], "bwrap, the same recipe and executable")
	}
	for i, n := range entries {
		s.times(fmt.Sprintf("%d, tsh fs.read", n), all[3+2*i], all[1], "bwrap, the same recipe and tool")
	}
}

// crowd sends to 100 sessions at once, ten messages to each, all of them under
// way at the same time.
func (s *suite) crowd() {
	s.head("1,000 messages at once, to 100 sessions")
	const sessions, each = 100, 10
	r := s.recipe()
	defer r.free()
	floor := rate(sessions, each, func(int) func() { return r.step })
	conns := make([]*conn, sessions)
	for i := range conns {
		conns[i] = s.dial()
		defer conns[i].Close()
		conns[i].ask(s, `{"op":"ping"}`, "pong")
	}
	pid := s.agentPID()
	before := s.megabytes(pid, "status", "VmRSS")
	s.must(os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)) // the most begins anew
	begun := time.Now()
	var all sync.WaitGroup
	for i, c := range conns {
		all.Go(func() {
			for range each {
				if _, err := c.Write([]byte(s.send(fmt.Sprint("crowd-", i), "say hello") + "\n")); err != nil {
					s.Error(err)
				}
			}
			for range each {
				c.until(s, "done")
			}
		})
	}
	all.Wait()
	took := time.Since(begun)
	most := s.megabytes(pid, "status", "VmHWM")
	if s.Failed() {
		s.FailNow() // a message that is lost or fails is no measurement
	}
	for i := range sessions {
		if n := s.answers(libctx.Session(fmt.Sprint("crowd-", i))); n != each {
			s.Fatalf("session crowd-%d has %d answers, not %d", i, n, each)
		}
	}
	const what = "bwrap, the same recipe and executable, 100 at once"
	s.figures("sends", "sends/s", sessions*each/took.Seconds(), floor, sessions*each, what)
	s.figures("until the last has ended", "s", took.Seconds(), sessions*each/floor, 1, what)
	s.figures("ctxd agent, most resident memory", "MB", most, before, 1, "the same process, before")
}

// answers counts the runs of a session that ended well, as a replay tells them.
func (s *suite) answers(name libctx.Session) (n int) {
	s.Helper()
	text, err := os.ReadFile(s.dir(name) + "/events.jsonl")
	s.must(err)
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte(`{"type":"done"`)) && bytes.Contains(line, []byte(`"status":"ok"`)) {
			n++
		}
	}
	return n
}

// agentPID is the process that serves the agent.
func (s *suite) agentPID() int {
	s.Helper()
	for _, p := range s.w.Processes() {
		if slices.Contains(command(p), "agent") {
			return p
		}
	}
	s.Fatal("no ctxd agent")
	return 0
}
