package soak

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/tests/internal/checker"
)

// TestCrowd sends to a hundred sessions of one agent at once, several messages
// each, all of them under way at the same time. None is lost, none refused.
func TestCrowd(t *testing.T) {
	const sessions = 100
	each := 2
	if *howLong > time.Minute {
		each = 10
	}
	a := newArena(t, newTally(), 1, 1)
	d := startDaemon(t, a.w, a.tally, func() string { return "" }, "agent", "a0")
	a.w.AwaitExists(a.w.Root + "/agent/a0.sock")
	var all sync.WaitGroup
	begun := time.Now()
	for i := range sessions {
		c, err := newClient(a.w, a.tally, fmt.Sprintf("crowd%d", i), rand.New(rand.NewPCG(1, uint64(i))))
		if err != nil {
			t.Fatal(err)
		}
		a.clients = append(a.clients, c)
		all.Go(func() { c.crowd(fmt.Sprintf("s%d", i), each) })
	}
	all.Wait()
	took := time.Since(begun)
	memory := rss(d.pid())
	d.stop(syscall.SIGTERM)
	r := a.check(t)
	if r.Runs != sessions*each || a.tally.of("done ok") != sessions*each {
		t.Errorf("%d messages, of which are done:\n%s", sessions*each, a.tally)
	}
	t.Logf("%d messages to %d sessions at once in %s, %d MiB: %s", sessions*each, sessions, took.Round(time.Millisecond), memory>>10, r)
}

// crowd sends messages to one session over one connection, all at once, and
// reads until all are done.
func (c *client) crowd(session string, n int) {
	k, err := c.dial("a0")
	if err != nil {
		c.tally.wrong("%s: %v", c.name, err)
		return
	}
	defer k.Close()
	var lines strings.Builder
	for i := range n {
		m := &message{agent: "a0", session: session, op: "send", id: fmt.Sprintf("%s-%d", c.name, i)}
		m.input = "say " + m.id
		c.notes.add(checker.Note{Agent: "a0", Session: session, Client: m.id, Input: m.input})
		lines.WriteString(m.line(c.w.Workspace) + "\n")
	}
	if _, err := io.WriteString(k, lines.String()); err != nil {
		c.tally.wrong("%s: %v", c.name, err)
		return
	}
	for done := 0; done < n; {
		line, f, err := k.read()
		if err != nil {
			c.tally.wrong("%s: after %d of %d: %v", c.name, done, n, err)
			return
		}
		c.frame("a0", session, line, f)
		switch f.Type() {
		case "error", "lagged":
			c.tally.wrong("%s: %s", c.name, line)
			return
		case "done":
			done++
			c.tally.count("done " + f.Str("status"))
		}
	}
}
