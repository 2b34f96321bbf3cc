package soak

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// private says that this process is alone in a mount namespace.
const private = "CORTEXFS_SOAK_PRIVATE"

// TestDisk fills the disk below the sessions of an agent, makes it read-only,
// and gives it back, while clients go on. Only uid 0 can mount: its disk is a
// small tmpfs in a mount namespace that ends with a second process of this test.
// For everybody else, and for errors no file system gives on request, writes
// fail at fault points.
func TestDisk(t *testing.T) {
	if os.Getenv(private) == "" {
		failing(t)
		if os.Geteuid() != 0 {
			return
		}
		cmd := exec.Command("unshare", "--mount", "--propagation", "private", os.Args[0], "-test.run=^TestDisk$", "-test.v", "-test.timeout=4m")
		cmd.Env = append(os.Environ(), private+"=1")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Errorf("in a mount namespace: %v", err)
		}
		return
	}
	mounted(t)
}

// rounds lets clients go on while the disk is bad for a while and then good
// again, some times over.
func rounds(t *testing.T, a *arena, turns int, bad, good func()) {
	a.start(t, 6, seed(t), "d")
	for range turns {
		refused := a.tally.of("refused ENOSPC") + a.tally.of("refused EIO") + a.tally.of("ended without a record")
		done := a.tally.of("messages")
		bad()
		a.await(t, func() bool {
			return a.tally.of("refused ENOSPC")+a.tally.of("refused EIO")+a.tally.of("ended without a record") > refused
		}, "nobody was told of the bad disk")
		good()
		done = max(done, a.tally.of("messages"))
		a.await(t, func() bool { return a.tally.of("messages") > done+6 }, "nothing goes on once the disk is good")
	}
	a.finish(t)
	a.visit(t, 7)
}

// await looks at what clients count until it is so.
func (a *arena) await(t *testing.T, so func() bool, otherwise string) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); wait(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s:\n%s", otherwise, a.tally)
		}
	}
}

// failing has writes refused at fault points, of a daemon that lives.
func failing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	a := newArena(t, newTally(), 1, 2)
	var sky atomic.Value
	sky.Store("")
	d := startDaemon(t, a.w, a.tally, func() string { return fmt.Sprintf("%s,seed=%d", sky.Load(), random.Uint64()) }, "agent", "a0")
	turn := func(next string) func() {
		return func() {
			sky.Store(next)
			d.kill()
		}
	}
	rounds(t, a, 2, turn("session.commit.write=enospc:0.3,session.commit.sync=eio:0.2,session.events.write=enospc:0.3,atomicfile.write=edquot:0.5"), turn(""))
	d.stop(syscall.SIGTERM)
	t.Logf("at fault points: %s", a.check(t))
}

// mounted has a real disk that is full or read-only below the sessions.
func mounted(t *testing.T) {
	a := newArena(t, newTally(), 1, 2)
	sessions := filepath.Dir(a.w.Session("a0", "x"))
	if err := os.MkdirAll(sessions, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", sessions, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=8m,mode=700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(sessions, unix.MNT_DETACH) })
	d := startDaemon(t, a.w, a.tally, func() string { return "" }, "agent", "a0")
	ballast := sessions + "/.ballast"
	writable := true
	rounds(t, a, 4, func() {
		if writable = !writable; writable {
			if err := fill(ballast); err != nil {
				t.Fatal(err)
			}
			return
		}
		// A file open for writing keeps a file system from becoming read-only:
		// the daemon that has some dies, as it would with the machine.
		d.kill()
		for end := time.Now().Add(patience); ; d.kill() {
			err := unix.Mount("", sessions, "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
			if err == nil {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("read-only: %v", err)
			}
			wait(time.Millisecond)
		}
	}, func() {
		if err := unix.Mount("", sessions, "", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
			t.Fatal(err)
		}
		os.Remove(ballast)
	})
	d.stop(syscall.SIGTERM)
	t.Logf("on a small tmpfs: %s", a.check(t))
}

// fill writes a file until nothing fits any more.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	return nil
}

// TestLogFails refuses every write of the log of events behind its commit. Whatever
// a client was told under an id, it can go on from there.
func TestLogFails(t *testing.T) {
	a := newArena(t, newTally(), 1, 1)
	d := startDaemon(t, a.w, a.tally, func() string { return "session.events.write=enospc:1" }, "agent", "a0")
	a.w.AwaitExists(a.w.Root + "/agent/a0.sock")
	c, err := newClient(a.w, a.tally, "l", rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	a.clients = append(a.clients, c)
	for i := range 4 {
		m := &message{agent: "a0", session: "long", id: fmt.Sprint("l-", i), op: "tsh", args: []string{"fs.read", "README.md"}}
		if out, err := c.exchange(m, manner{name: "plain"}); err != nil || out.status != "error" || out.kept {
			t.Errorf("%d: %+v, %v", i, out, err)
		}
		if c.seen["a0/long"] == "" {
			t.Fatalf("%d: nothing was told", i)
		}
		// The first time the run is settled, which fails behind its commit too.
		for _, want := range []string{"ENOSPC", ""} {
			k, err := c.dial("a0")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(k, world.JSON(map[string]any{"op": "resume", "session": "long", "after": c.seen["a0/long"]})+"\n"); err != nil {
				t.Fatal(err)
			}
			var f world.Frame
			for f.Type() != "end" && (f.Type() != "error" || f.Str("run") != "") {
				var line string
				if line, f, err = k.read(); err != nil {
					t.Fatal(err)
				}
				c.frame("a0", "long", line, f)
			}
			k.Close()
			if f.Str("code") != want {
				t.Errorf("%d: after %s: %v", i, c.seen["a0/long"], f)
			}
		}
	}
	d.stop(syscall.SIGTERM)
	t.Logf("without a log: %s", a.check(t))
}
