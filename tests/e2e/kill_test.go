package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cortexfs.org/tests/internal/world"
)

// killClient is a client that goes on after its server died: it sends the same
// message again until it has seen its done frame, then the next one.
type killClient struct {
	name    string
	session string
	next    int
	seen    map[string]string // durable frames by id, as they came
	runs    map[string]string // client id to the run that its start frame named
	fault   string            // what was wrong with what it was told
}

func (k *killClient) request(workspace string) string {
	id := fmt.Sprintf("%s-%d", k.name, k.next)
	switch {
	case k.name == "tsh":
		return tsh(id, k.session, workspace, "shell.exec", marking(id))
	case k.next%2 == 0:
		return send(id, k.session, workspace, "delta some\nsay "+id)
	}
	return send(id, k.session, workspace, `call shell.exec {"cmd":"`+marking(id)+`"}`+"\n--\nsay "+id)
}

// life is one life of the server as this client sees it.
func (k *killClient) life(socket, workspace string, saw func()) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(world.Patience))
	r := bufio.NewReader(c)
	for {
		if _, err := io.WriteString(c, k.request(workspace)+"\n"); err != nil {
			return
		}
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			var f world.Frame
			if err := json.Unmarshal(line, &f); err != nil {
				k.fault = fmt.Sprintf("%v in %q", err, line)
				return
			}
			k.take(f)
			saw()
			if f.Type() == "done" {
				break
			}
		}
		k.next++
	}
}

func (k *killClient) take(f world.Frame) {
	if f.Type() == "error" && f.Str("run") == "" {
		k.fault = world.JSON(f)
	}
	id := f.Str("id")
	if id == "" {
		return
	}
	text := world.JSON(f)
	if was, ok := k.seen[id]; ok && was != text {
		k.fault = "frame " + id + " was " + was + ", then " + text
	}
	k.seen[id] = text
	if f.Type() != "start" {
		return
	}
	client, run := f.Str("client_id"), f.Str("run")
	if was, ok := k.runs[client]; ok && was != run {
		k.fault = "message " + client + " was run " + was + ", then " + run
	}
	k.runs[client] = run
}

// TestKilledAnywhere kills the server at random moments of a loop of messages
// from several clients. What any client was told is true for ever.
func TestKilledAnywhere(t *testing.T) {
	w := world.New(t)
	w.Puppet("a", "shell.exec")
	socket := filepath.Join(w.Root, "agent", "a.sock")
	clients := []*killClient{{name: "one", session: "s"}, {name: "two", session: "s"}, {name: "tsh", session: "s"}, {name: "other", session: "o"}}
	for _, k := range clients {
		k.seen, k.runs = map[string]string{}, map[string]string{}
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for range 12 {
		server := serve(t, w, "a")
		// After so many frames, and a moment more, so that it also hits between two.
		var frames atomic.Int64
		limit := random.Int64N(30) + 1
		moment := time.Duration(random.IntN(30)) * time.Millisecond / 3
		reached := make(chan struct{})
		var all sync.WaitGroup
		for _, k := range clients {
			all.Go(func() {
				k.life(socket, w.Workspace, func() {
					if frames.Add(1) == limit {
						close(reached)
					}
				})
			})
		}
		select {
		case <-reached:
		case <-time.After(world.Patience):
			t.Fatalf("%d frames of %d", frames.Load(), limit)
		}
		time.AfterFunc(moment, func() { server.Process.Kill() })
		server.Wait()
		all.Wait()
		for _, k := range clients {
			if k.fault != "" {
				t.Fatalf("%s: %s", k.name, k.fault)
			}
		}
	}
	w.AwaitGone("killed servers' sandboxes", w.Inside)

	serve(t, w, "a")
	for _, s := range []string{"s", "o"} {
		have := map[string]string{}
		for _, f := range durable(w.Dial("a").Ask(world.JSON(map[string]any{"op": "resume", "session": s}), "end")) {
			if have[f.Str("id")] != "" {
				t.Errorf("frame %s comes twice", f.Str("id"))
			}
			have[f.Str("id")] = world.JSON(f)
		}
		for _, k := range clients {
			if k.session != s {
				continue
			}
			for id, text := range k.seen {
				if have[id] != text {
					t.Errorf("%s was told %s, recorded is %s", k.name, text, have[id])
				}
			}
		}
		began, starts := map[string]int{}, map[string]int{}
		for _, r := range ledger(t, w, "a", s) {
			if r.Role == "user" {
				began[r.Client]++
			}
			if r.Frame.Type == "start" {
				starts[r.Run]++
			}
			if r.Type == "checkpoint" {
				starts[r.Run]--
			}
		}
		for run, n := range starts {
			if n != 0 {
				t.Errorf("run %s: %d starts without an end", run, n)
			}
		}
		for id, n := range began {
			if n != 1 {
				t.Errorf("message %s is recorded %d times", id, n)
			}
		}
		for line := range strings.Lines(w.Read(w.Session("a", s) + "/events.jsonl")) {
			if !json.Valid([]byte(line)) {
				t.Errorf("events.jsonl: %.300q", line)
			}
		}
	}
	// No call ran twice, whatever was asked again.
	if done(w) == 0 {
		t.Error("no tool ran at all")
	}
	refold(t, w, "a", "s")
}
