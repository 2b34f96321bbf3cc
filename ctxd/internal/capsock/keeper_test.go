package capsock

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/capwire"
	"cortexfs.org/libctx/errdefs"
)

// TestSweep: what another server of this agent left is removed, and nothing else.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	live := w.run().Path()
	dir := w.layout.Capabilities()
	tag := "0123456789abcdef01234567"
	for _, name := range []string{"coder-" + tag + ".sock", "coder-x-" + tag + ".sock", "x-coder-" + tag + ".sock", "coder-short.sock", "coder-" + tag + ".sock.d"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
		must(t, err)
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	must(t, os.WriteFile(filepath.Join(dir, "coder-"+tag[:23]+"x.sock"), nil, 0o600)) // no socket
	again := New(w.keeper.cfg)
	defer again.Close()
	var left []string
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	for name, want := range map[string]bool{
		"coder-" + tag + ".sock": false, filepath.Base(live): true, "coder-x-" + tag + ".sock": true, "x-coder-" + tag + ".sock": true,
	} {
		if slices.Contains(left, name) != want {
			t.Errorf("%s: there is %v", name, left)
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
		entries, err := os.ReadDir(w.layout.Capabilities())
		must(t, err)
		return len(entries)
	}
	w.run().Close()
	before := open()
	for range 20 {
		var runs sync.WaitGroup
		for range 10 {
			runs.Go(func() {
				c, err := w.keeper.Open("default", libctx.NewRun())
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
	if got := b.ask(c, w.request(c)); got != "" {
		t.Errorf("%q", got)
	}
	id := b.id()
	b.end()
	if err := c.Register(id, ""); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("one that is over: %v", err)
	}
}
