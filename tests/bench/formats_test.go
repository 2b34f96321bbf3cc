package bench

import (
	"bytes"
	"fmt"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/tests/internal/scripted"
	"cortexfs.org/tests/internal/world"
	"github.com/creack/pty"
)

// conversation is what the formats are compared by: so many turns of a run, each
// with some text and one call.
const conversation = 8

// formats measures the same conversation with tools through every format that
// providers have, and how soon a person sees the answer begin.
func (s *suite) formats() {
	r := s.recipe()
	defer r.free()
	s.head("a turn of the same conversation, by the format of the provider: text, bash -c true, result")
	fns := []func(){func() { r.run("", "/bin/bash", "-c", "true") }}
	turns := make([]sample, len(scripted.Formats()))
	for i, f := range scripted.Formats() {
		l := &suite{B: s.B, table: s.table, w: world.NewUser(s.B)}
		calls := scripted.Call{ID: "id_1", Name: "tsh", Arguments: `{"args":["bash","-c","true"]}`}
		var came []time.Time // one request at a time
		p := scripted.New(s.B, func(*scripted.Request) scripted.Answer {
			came = append(came, time.Now())
			if len(came) > conversation {
				return f.Answer([]string{"do", "ne"})
			}
			return f.Answer([]string{"I ", "look."}, calls)
		})
		p.Forget()
		l.w.MustCtx("provider", "add", "lab", "--base-url", p.URL, "--format", f.Name, "--model", "m", "--limit", "200000", "--no-key")
		l.w.MustCtx("agent", "new", string(agent), "--model", "lab/m", "--tool", "bash")
		l.w.MustCtx("agent", "tsh", string(agent), "help")
		c := l.dial()
		defer c.Close()
		run := 0
		fns = append(fns, func() {
			came = nil
			run++
			c.ask(l, l.send(fmt.Sprint("formats-", run), "go"), "done")
			if run == 1 || len(came) != conversation+1 {
				return // warms up, or has failed
			}
			for n := range conversation {
				turns[i] = append(turns[i], came[n+1].Sub(came[n]))
			}
		})
	}
	floor := s.repeat(1, 15, fns...)[0]
	for i, f := range scripted.Formats() {
		s.times(f.Name, turns[i], floor, "bwrap, the same recipe, bash -c true")
	}
	for i, f := range scripted.Formats()[1:] {
		s.times(f.Name+", beside the first", turns[i+1], turns[0], scripted.Formats()[0].Name)
	}
}

// deltas measures the time from the start of `ctx agent send` to the first piece
// of the answer on a terminal, with a provider that answers at once.
func (s *suite) deltas() {
	s.head("from the start of ctx agent send to the first text of the answer on a terminal")
	l := &suite{B: s.B, table: s.table, w: world.NewUser(s.B)}
	p := scripted.New(s.B, func(*scripted.Request) scripted.Answer {
		return scripted.OpenAIChat.Answer([]string{"first", " second"})
	})
	p.Forget()
	l.w.MustCtx("provider", "add", "lab", "--base-url", p.URL, "--model", "m", "--limit", "200000", "--no-key")
	l.w.MustCtx("agent", "new", string(agent), "--model", "lab/m")
	send := func() time.Duration {
		return l.seen("first", "agent", "send", "--session", "deltas", string(agent), "hello")
	}
	version := func() time.Duration { return l.seen(libctx.Version, "--version") }
	var warm, idle, cold, floor sample
	for round := range 61 {
		if round == 0 {
			send() // warms up
			continue
		}
		warm, floor = append(warm, send()), append(floor, version())
		if round%4 != 0 {
			continue
		}
		l.stopAgent()
		idle = append(idle, send())
		l.stopAll()
		cold = append(cold, send())
	}
	const what = "ctx --version, to its text on the terminal"
	s.times("warm", warm, floor, what)
	s.times("ctxd serve and ctxmodel alone", idle, floor, what)
	s.times("no process at all", cold, floor, what)
}

// seen is how long it takes until ctx has written a text to its terminal.
func (s *suite) seen(text string, args ...string) time.Duration {
	s.Helper()
	master, slave, err := pty.Open()
	s.must(err)
	defer master.Close()
	cmd := s.w.Command("ctx", args...)
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	begun := time.Now()
	s.must(cmd.Start())
	slave.Close()
	late := time.AfterFunc(world.Patience, func() { cmd.Process.Kill() })
	defer late.Stop()
	var took time.Duration
	var all bytes.Buffer
	buf := make([]byte, 4096)
	for {
		n, err := master.Read(buf)
		all.Write(buf[:n])
		if took == 0 && bytes.Contains(all.Bytes(), []byte(text)) {
			took = time.Since(begun)
		}
		if err != nil { // the program has ended
			break
		}
	}
	s.must(cmd.Wait())
	if took == 0 {
		s.Fatalf("ctx %q did not say %q: %s", args, text, &all)
	}
	return took
}
