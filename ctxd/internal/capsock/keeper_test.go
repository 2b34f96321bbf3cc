package capsock

import (
	"net"
	"os"
	"sync"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/capwire"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/rundir"
)

// TestSweep: what another server of this agent left is removed, and nothing else.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	live := w.run().Path()
	dir := w.layout.Capabilities("coder")
	other := w.layout.Capabilities("other")
	must(t, rundir.EnsureCapabilities(w.layout, "other"))
	for _, path := range []string{dir + "/0123.sock", dir + "/.0123.sock.77", other + "/0123.sock"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		must(t, err)
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	again := New(w.keeper.cfg)
	defer again.Close()
	for path, want := range map[string]bool{
		dir + "/0123.sock": false, dir + "/.0123.sock.77": false, other + "/0123.sock": true, live: true,
	} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestManyRuns: runs beside each other have sockets of their own, one of which is
// kept; nothing is left of the others, and nothing at the end.
func TestManyRuns(t *testing.T) {
	w := newWorld(t)
	b := newBox(t)
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(entries)
	}
	sockets := func() int {
		entries, err := os.ReadDir(w.layout.Capabilities("coder"))
		must(t, err)
		return len(entries)
	}
	w.run().Close()
	before := open()
	for range 20 {
		var runs sync.WaitGroup
		for range 10 {
			runs.Go(func() {
				c, err := w.keeper.Open("default", libctx.NewRun(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				for range 3 {
					if err := c.Register(b.id(), ""); err != nil {
						t.Error(err)
					}
				}
			})
		}
		runs.Wait()
	}
	if now := open(); now != before {
		t.Errorf("%d descriptors, %d before", now, before)
	}
	if n := sockets(); n != 1 {
		t.Errorf("%d sockets are kept", n)
	}
	one, two := w.run(), w.run()
	if one.Path() == two.Path() {
		t.Error("two runs at a time have one socket")
	}
	must(t, one.Register(b.id(), ""))
	w.keeper.Close()
	if got := b.ask(one, capwire.Request{Op: capwire.Ping, ID: "x", Agent: "coder", Session: one.session, Run: one.run}); got != "" {
		t.Errorf("a run that goes on while its server ends: %q", got)
	}
	one.Close()
	two.Close()
	if n := sockets(); n != 0 {
		t.Errorf("%d sockets are left", n)
	}
}

// TestRootsThatAreOver: a run may have any number of sandboxes, of which only those
// that live are remembered.
func TestRootsThatAreOver(t *testing.T) {
	w := newWorld(t)
	c := w.run()
	for range 5 {
		b := newBox(t)
		must(t, c.Register(b.id(), ""))
		b.end()
	}
	b := newBox(t)
	must(t, c.Register(b.id(), ""))
	if n := len(c.roots); n != 1 {
		t.Errorf("%d are remembered", n)
	}
	if got := b.ask(c, w.request(c)); got != "" || len(w.frames) != 1 {
		t.Errorf("%q, recorded %v", got, w.frames)
	}
	id := b.id()
	b.end()
	if err := c.Register(id, ""); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("one that is over: %v", err)
	}
}
