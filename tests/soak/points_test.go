package soak

import (
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/tests/internal/world"
)

// TestEveryPoint kills a daemon at every fault point there is, each in a life of
// its own, and looks what its successor makes of it.
func TestEveryPoint(t *testing.T) {
	tl := newTally()
	var plainly, modelled []string
	for _, name := range points(t) {
		// The loop of a model has points of its own, and goes through some others in
		// its own way.
		switch group, _, _ := strings.Cut(name, "."); {
		case group == "engine", name == "calls.wave.begun":
			modelled = append(modelled, name)
		case group == "calls" && name != "calls.committed":
			modelled = append(modelled, name)
			fallthrough
		default:
			plainly = append(plainly, name)
		}
	}
	slots := make(chan struct{}, 4)
	each(t, newArena(t, tl, len(plainly), 1), plainly, slots)
	lab := newLab(t, tl, len(modelled), 1, 1)
	lab.lab.kind.Store(true)
	each(t, lab, modelled, slots)
}

// each lets the daemon of an agent die at each of these points.
func each(t *testing.T, a *arena, names []string, slots chan struct{}) {
	var all sync.WaitGroup
	for i, name := range names {
		c, err := newClient(a.w, a.tally, "p"+a.agents[i], rand.New(rand.NewPCG(1, uint64(i))))
		if err != nil {
			t.Fatal(err)
		}
		a.clients = append(a.clients, c)
		if strings.HasPrefix(name, "activate.") {
			dieStarting(t, a, a.agents[i], name)
			continue
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			dieAt(t, a, c, a.agents[i], name)
		})
	}
	all.Wait()
	t.Log(a.check(t))
}

// dieAt lets an agent's daemon die at one point while it serves a session that
// has a past, which ends in half a line, and a new one.
func dieAt(t *testing.T, a *arena, c *client, agent, point string) {
	args := []string{"agent", agent}
	log := a.w.Dir + "/killed-" + agent
	weather := point + "=kill,log=" + log
	plain := func() manner { return manner{name: "plain"} }
	never := make(chan struct{})
	one := func(session, op string) *message {
		m := a.message(c, agent, session)
		m.op, m.cancels = op, false
		m.input, m.args = "", []string{"mark", m.id + ".0", "bad"}
		if op == "send" {
			m.args, m.input = nil, a.marking(m.id)
		}
		return m
	}
	if strings.HasPrefix(point, "question.") {
		if r := a.w.Ctx("agent", "set", agent, "approval", "ask"); r.Code != 0 {
			t.Errorf("%+v", r)
		}
	}
	clear := ""
	d := startDaemon(t, a.w, a.tally, func() string { return clear }, args...)
	c.deliver(one("old", "send"), never, plain)
	d.stop(syscall.SIGKILL)
	ledger := a.w.Session(agent, "old") + "/messages.jsonl"
	f, err := os.OpenFile(ledger, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Error(err)
		return
	}
	f.WriteString(`{"seq":8,"ts":"2026-`)
	f.Close()

	// The faulty life, or several of them: it dies at the first or at a later step.
	dead := func() bool { _, err := os.Stat(log); return err == nil }
	d = startDaemon(t, a.w, a.tally, func() string {
		if dead() {
			return clear
		}
		return weather
	}, args...)
	var work sync.WaitGroup
	for _, m := range []*message{one("old", "send"), one("old", "tsh"), one("new", "send"), one("new", "tsh")} {
		mine := *c // each has cursors of its own; the notes are shared
		mine.seen, mine.known = map[string]string{}, map[string]bool{}
		mine.random = rand.New(rand.NewPCG(2, 2))
		work.Go(func() { mine.deliver(m, never, plain) })
	}
	work.Wait()
	for range 20 { // a sandbox for the next call is there in time or not
		if dead() {
			break
		}
		c.deliver(one("new", "tsh"), never, plain)
	}
	if !dead() {
		d.stop(syscall.SIGTERM) // some steps come only at the end
		if !dead() {
			t.Errorf("nothing died at %s", point)
		}
		d = startDaemon(t, a.w, a.tally, func() string { return clear }, args...)
	}
	c.deliver(one("old", "send"), never, plain)
	c.deliver(one("new", "tsh"), never, plain)
	d.stop(syscall.SIGTERM)
}

// TestTrial: that no sandbox could be started once is not said for ever.
func TestTrial(t *testing.T) {
	a := newArena(t, newTally(), 1, 1)
	d := startDaemon(t, a.w, a.tally, func() string { return "sandbox.trial=eio:1:1" }, "agent", "a0")
	defer d.stop(syscall.SIGTERM)
	a.w.AwaitExists(a.w.Root + "/agent/a0.sock")
	for end := time.Now().Add(patience); ; wait(10 * time.Millisecond) {
		c := a.w.Dial("a0")
		f := c.Ask(`{"op":"ping"}`, "")[0]
		c.Close()
		a.tally.count(f.Type() + f.Str("code"))
		if f.Type() == "pong" {
			break
		}
		if time.Now().After(end) {
			t.Fatal(world.JSON(f))
		}
	}
	if a.tally.of("errorECONNREFUSED") == 0 {
		t.Errorf("the trial did not fail:\n%s", a.tally)
	}
}

// dieStarting lets the activator die around the start of a server.
func dieStarting(t *testing.T, a *arena, agent, point string) {
	w := newWorld(t)
	w.Puppet(agent)
	log := w.Dir + "/killed"
	weather := point + "=kill,log=" + log
	d := startDaemon(t, w, a.tally, func() string {
		if _, err := os.Stat(log); err == nil {
			return ""
		}
		return weather
	}, "serve")
	defer d.stop(syscall.SIGTERM)
	c, err := newClient(w, a.tally, "starting", rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Error(err)
		return
	}
	late := time.AfterFunc(patience, func() { t.Errorf("%s: no server", weather) })
	c.deliver(&message{agent: agent, session: "s", id: "m", op: "send", input: "say m"}, make(chan struct{}), func() manner { return manner{name: "plain"} })
	late.Stop()
	c.notes.close()
	if _, err := os.Stat(log); err != nil {
		t.Errorf("nothing died of %s", weather)
	}
}
