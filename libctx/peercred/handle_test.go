package peercred_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/peercred"
)

// accepted is the daemon's end of a connection that fn makes to the socket.
func accepted(t *testing.T, fn func(path string)) (*net.UnixConn, peercred.Peer) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fn(filepath.Join(dir, "s"))
	c, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	p, err := peercred.Of(c)
	if err != nil {
		t.Fatal(err)
	}
	return c, p
}

func TestHold(t *testing.T) {
	c, p := accepted(t, func(path string) {
		client, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
	})
	h, err := p.Hold(c)
	if err != nil || h.PID() != os.Getpid() || h.Ended() {
		t.Fatalf("%v", err)
	}
	h.Close()
}

// TestHoldOfTheDead: a peer that connected and ended is nobody, whoever has its
// number.
func TestHoldOfTheDead(t *testing.T) {
	c, p := accepted(t, func(path string) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestConnectAndEnd$")
		cmd.Env = append(os.Environ(), "PEERCRED_TEST_CONNECT="+path)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	})
	if p.PID == int32(os.Getpid()) {
		t.Fatal("the helper did not connect")
	}
	h, err := p.Hold(c)
	if err == nil {
		defer h.Close()
		if !h.Ended() {
			t.Error("a process that is gone is held, alive")
		}
	} else if !errdefs.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
}

// TestConnectAndEnd is the helper of the other test; by itself it does nothing.
func TestConnectAndEnd(t *testing.T) {
	if path := os.Getenv("PEERCRED_TEST_CONNECT"); path != "" {
		if _, err := net.Dial("unix", path); err != nil {
			t.Fatal(err)
		}
	}
}
