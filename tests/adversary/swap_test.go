package adversary

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cortexfs.org/tests/internal/hostile"
	"cortexfs.org/tests/internal/world"
)

// TestSwappedDirectories: directories of sessions and links that lead elsewhere
// change places while sessions are made, opened, written and renamed, for
// thousands of rounds.
func TestSwappedDirectories(t *testing.T) {
	t.Parallel()
	r := hostile.NewRace(t, uint32(os.Geteuid()))
	r.Run(1000)
}

// TestSwappedByAnAgent: an agent lets a directory of its home, in which ctxd makes
// others, and a link to one of the person's change places.
func TestSwappedByAnAgent(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) (done []string) {
		victim := w.Home + "/victim"
		w.Mkdir(victim, 0o700)
		fifo := hostile.NewFIFO(w, "up")
		attacker := w.Dial("a")
		attacker.Send(hostile.Send(w, "cd ~/data && mkdir -p workspace && ln -s "+victim+" link && "+hostile.Intruder+" exchange workspace link <"+fifo.Inside))
		up := fifo.Await()
		c := w.Dial("a")
		refused := 0
		rounds := 0
		for began := time.Now(); rounds < 100 || (refused == 0 || refused == rounds) && time.Since(began) < world.Patience; rounds++ {
			f := c.Ask(world.JSON(map[string]any{"op": "tsh", "id": hostile.ID(), "session": fmt.Sprint("private", rounds), "args": []string{"tools"}}), "")
			if f[0].Type() == "error" {
				refused++
				continue
			}
			c.Until("done")
		}
		up.Close()
		f := attacker.Until("done")
		if refused == 0 || refused == rounds {
			t.Errorf("%d of %d refused: there was no race: %s", refused, rounds, world.JSON(f))
		}
		entries, err := os.ReadDir(victim)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			done = append(done, "make "+e.Name())
		}
		return done
	}, "atomicfile:links")
}

// TestSwappedWorkspace: the workspace and a link into the tree change places while
// sandboxes are made of it.
func TestSwappedWorkspace(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) (done []string) {
		link := w.Workspace + ".link"
		if err := os.Symlink(w.Root+"/agent", link); err != nil {
			t.Fatal(err)
		}
		hostile.Give(w, link)
		exchange := w.Command("intruder", "exchange", w.Workspace, link)
		in, err := exchange.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := exchange.Start(); err != nil {
			t.Fatal(err)
		}
		c := w.Dial("a")
		began, rounds := time.Now(), 0
		// Without the check it takes some rounds, since others are in the way too.
		for rounds < 40 || hostile.Weak(w) && time.Since(began) < world.Patience {
			rounds++
			f := c.Ask(hostile.Tsh(w, "shell.exec", "ls; touch a.d/owned"), "")
			if f[0].Type() == "error" {
				continue
			}
			f = c.Until("done")
			if _, err := os.Stat(w.Root + "/agent/a.d/owned"); err == nil || strings.Contains(hostile.Result(f).Str("content"), "a.sock") {
				done = append(done, "work in the tree")
				break
			}
		}
		in.Close()
		exchange.Wait()
		return done
	}, "sandbox:identity")
}

// TestSwappedTool: a tool and one that must not be trusted, because others can
// write it, change places while it is called.
func TestSwappedTool(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) (done []string) {
		at := filepath.Join(w.Root, "tool", "shell.exec")
		hostile.Script(w, at+".evil", "#!/bin/sh\ntouch /workspace/made\n")
		if err := os.Chmod(at+".evil", 0o777); err != nil {
			t.Fatal(err)
		}
		exchange := w.Command("intruder", "exchange", at, at+".evil")
		in, err := exchange.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := exchange.Start(); err != nil {
			t.Fatal(err)
		}
		c := w.Dial("a")
		began, rounds, allowed, refused := time.Now(), 0, 0, 0
		for rounds < 40 || (hostile.Weak(w) || allowed == 0 || refused == 0) && time.Since(began) < world.Patience {
			rounds++
			f := c.Ask(hostile.Tsh(w, "shell.exec", "true"), "done")
			if strings.Contains(world.JSON(f), `"allowed":true`) {
				allowed++
			} else {
				refused++
			}
			if exists(w.Workspace + "/made") {
				done = append(done, "run what others can write")
				break
			}
		}
		in.Close()
		exchange.Wait()
		if !hostile.Weak(w) && (allowed == 0 || refused == 0) {
			t.Errorf("%d allowed, %d refused: there was no race", allowed, refused)
		}
		return done
	}, "trust:files")
}

// BenchmarkLinkSwap is how many rounds of the race a second has.
func BenchmarkLinkSwap(b *testing.B) {
	r := hostile.NewRace(b, uint32(os.Geteuid()))
	stop := r.Attack("session/s")
	rounds := 0
	for b.Loop() {
		r.Round("s")
		rounds++
	}
	swaps := stop()
	b.ReportMetric(float64(rounds)/b.Elapsed().Seconds(), "rounds/s")
	b.ReportMetric(float64(swaps)/b.Elapsed().Seconds(), "swaps/s")
	if harm := r.Harm(); len(harm) > 0 {
		b.Error(harm)
	}
}

// BenchmarkApproval is a question and its answer over the agent's socket: from the
// request for a call until its end, beside a call that nobody is asked about.
func BenchmarkApproval(b *testing.B) {
	w := hostile.User(b)
	round := func(b *testing.B, asked bool) {
		c := w.Dial("a")
		for b.Loop() {
			if !asked {
				c.Ask(hostile.Tsh(w, "tools"), "done")
				continue
			}
			q := world.Last(c.Ask(hostile.Tsh(w, "fs.read", "README.md"), "approval_request"))
			c.Ask(approve(q.Str("run"), q.Str("call"), "deny"), "done")
		}
	}
	b.Run("not asked", func(b *testing.B) { round(b, false) })
	w.MustCtx("agent", "set", "a", "approval", "ask")
	b.Run("asked and denied", func(b *testing.B) { round(b, true) })
	b.Run("question until decision", func(b *testing.B) {
		c := w.Dial("a")
		var spent time.Duration
		n := 0
		for b.Loop() {
			q := world.Last(c.Ask(hostile.Tsh(w, "fs.read", "README.md"), "approval_request"))
			began := time.Now()
			c.Ask(approve(q.Str("run"), q.Str("call"), "deny"), "approval_result")
			spent += time.Since(began)
			n++
			c.Until("done")
		}
		b.ReportMetric(float64(spent.Microseconds())/float64(n), "µs/answer")
	})
}
