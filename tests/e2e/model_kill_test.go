package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	provider "cortexfs.org/tests/internal/scripted"
	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// worker is a provider whose model does a job in two turns, with three calls in
// all that each leave a line, and then says so. It calls everything "same". A
// job named "then …" is done at once.
type worker struct {
	// gate is where in the answer to the turn's request something happens.
	turn, gate int
	reached    chan struct{} // somebody stands at the gate
	open       chan struct{} // and goes on
	over       chan struct{} // closed when nobody opens gates any more
}

// gates is how many places there are: before an answer, between its pieces, and
// behind it.
const gates = 6

func newWorker() *worker {
	return &worker{turn: -1, reached: make(chan struct{}), open: make(chan struct{}), over: make(chan struct{})}
}

func (k *worker) reply(r *provider.Request) provider.Answer {
	var c provider.Chat
	if err := json.Unmarshal(r.Body, &c); err != nil {
		return provider.Status(400, "text/plain", err.Error())
	}
	job, turn := "", 0
	for _, m := range c.Messages {
		switch m.Role {
		case "user":
			// What nobody answered stands in front of it.
			job, turn = m.Content[strings.LastIndex(m.Content, "\n")+1:], 0
		case "assistant":
			turn++
		}
	}
	if turn == 2 || strings.HasPrefix(job, "then ") {
		return provider.Text("done ", job)
	}
	mark := func(n int) string { return marking(fmt.Sprintf("%s-%d", job, n)) }
	first, second := mark(2), "true"
	if turn == 0 {
		first, second = mark(0), mark(1)
	}
	if strings.HasPrefix(job, "hold") && turn == 0 {
		first += "; mkfifo pipe-" + job + "; echo > begun-" + job + "; cat pipe-" + job
	}
	arguments := bash("", first).Arguments
	half := len(arguments) / 2
	pieces := []provider.Answer{
		provider.Head(),
		provider.Events(provider.Content("Working.")),
		provider.Events(provider.Tool(0, "same", "tsh", arguments[:half])),
		provider.Events(provider.Tool(0, "", "", arguments[half:]), provider.Tool(1, "same", "tsh", bash("", second).Arguments), provider.Finish("tool_calls"), provider.Usage(9, 9), provider.Done),
		provider.End(),
	}
	if turn != k.turn {
		return provider.Seq(pieces...)
	}
	k.turn = -1
	wait := provider.Then(func() {
		select {
		case k.reached <- struct{}{}:
			<-k.open
		case <-k.over:
		}
	})
	return provider.Seq(provider.Seq(pieces[:k.gate]...), wait, provider.Seq(pieces[k.gate:]...))
}

// killModel kills the process of ctxmodel, if there is one.
func killModel(w *world.World) bool {
	is := func(p int) bool {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p))
		argv0, _, _ := strings.Cut(string(line), "\x00")
		return filepath.Base(argv0) == "ctxmodel"
	}
	for _, p := range w.Processes() {
		if !is(p) {
			continue
		}
		fd, err := unix.PidfdOpen(p, 0)
		if err != nil {
			continue
		}
		defer unix.Close(fd)
		if is(p) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
			return true
		}
	}
	return false
}

// fragile is lab with a server of m that the test can kill as often as it wants:
// nobody starts it anew, and each request has a ctxmodel of its own.
func fragile(t *testing.T, k *worker) (w *world.World, s *provider.Server, restart func()) {
	t.Helper()
	w = world.NewUser(t)
	s = addLab(w, "lab", k.reply)
	t.Cleanup(func() { close(k.over) })
	credible(w)
	w.MustCtx(modelArgs("lab/m", "bash")...)
	server := serve(t, w, "m")
	return w, s, func() {
		server.Process.Kill()
		server.Wait()
		// A child of it may hold its locks for a moment more.
		w.AwaitGone("a killed server's children", w.Processes)
		server = serve(t, w, "m")
	}
}

// TestModelKilledAtEachPiece kills ctxd agent, and ctxmodel, before each piece of
// an answer with calls, in the first and in a later turn, and while a call runs.
// The next message goes to the provider, with a conversation in which every call
// has its result, and no call is made twice.
func TestModelKilledAtEachPiece(t *testing.T) {
	k := newWorker()
	w, s, restart := fragile(t, k)
	ended := func(job string) string {
		return world.Last(w.Dial("m").Ask(send(job, "s", w.Workspace, job), "done")).Str("status")
	}
	for _, program := range []string{"ctxd", "ctxmodel"} {
		for turn := range 2 {
			for gate := range gates {
				job := fmt.Sprintf("%s-%d-%d", program, turn, gate)
				k.turn, k.gate = turn, gate
				w.Dial("m").Send(send(job, "s", w.Workspace, job))
				select {
				case <-k.reached:
				case <-time.After(world.Patience):
					t.Fatalf("%s: no request", job)
				}
				if program == "ctxd" {
					restart()
				} else if !killModel(w) && gate < gates-2 { // then it has nothing more to do
					t.Errorf("%s: no process of ctxmodel", job)
				}
				k.open <- struct{}{}
				if status := ended(job); status != "error" && gate < gates-2 {
					t.Errorf("%s: %s", job, status) // later ctxmodel may have had all of it
				}
			}
		}
	}
	job := "hold"
	w.Dial("m").Send(send(job, "s", w.Workspace, job))
	w.AwaitExists(w.Workspace + "/begun-" + job)
	restart()
	if status := ended(job); status != "error" {
		t.Errorf("%s: %s", job, status)
	}
	if frames := say(w, "then end"); world.Last(frames).Str("status") != "ok" {
		t.Errorf("%s", world.JSON(frames))
	}
	if n := done(w); n < 2*gates*2+1 {
		t.Errorf("%d calls were made", n)
	}
	if n := len(s.Requests()); n < 2*(gates+2*gates)+2 {
		t.Errorf("%d requests", n)
	}
}

// life says one job after the other, from the next on that is not yet done, until
// the server is gone.
func (k *worker) life(w *world.World, next int) int {
	c, err := net.Dial("unix", filepath.Join(w.Root, "agent", "m.sock"))
	if err != nil {
		return next
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(world.Patience))
	r := bufio.NewReader(c)
	for {
		job := fmt.Sprintf("job-%d", next)
		if _, err := io.WriteString(c, send(job, "s", w.Workspace, job)+"\n"); err != nil {
			return next
		}
		var f world.Frame
		for f.Type() != "done" {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return next
			}
			f = nil
			if err := json.Unmarshal(line, &f); err != nil {
				w.T.Errorf("%v in %q", err, line)
				return next
			}
		}
		next++
	}
}

// TestModelKilledAtRandom kills one and the other at any moment of many jobs.
func TestModelKilledAtRandom(t *testing.T) {
	k := newWorker()
	w, s, restart := fragile(t, k)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	jobs := 0
	for range 12 {
		over := make(chan int)
		go func() { over <- k.life(w, jobs) }()
		for range random.IntN(4) {
			<-time.After(time.Duration(random.IntN(60)) * time.Millisecond)
			killModel(w)
		}
		<-time.After(time.Duration(random.IntN(120)) * time.Millisecond)
		restart()
		jobs = <-over
	}
	if frames := say(w, "then end"); world.Last(frames).Str("status") != "ok" {
		t.Errorf("%s", world.JSON(frames))
	}
	t.Logf("%d jobs, %d calls, %d requests", jobs, done(w), len(s.Requests()))
}
