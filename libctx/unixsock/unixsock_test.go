package unixsock

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

var mine = Options{Perm: 0o600, UID: -1, GID: -1}

// deadSocket leaves a socket file nobody listens behind, as a crash does.
func deadSocket(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

func serve(t *testing.T, l *Listener) {
	t.Helper()
	go func() {
		for {
			c, _, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close() })
}

func TestListenReplacesDeadSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	deadSocket(t, path)
	l, err := Listen(path, mine)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l)
	c, err := Dial(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestListenKeepsLiveSocket(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "a.sock")
		if foreign { // a server that does not know our lock
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		} else {
			l, err := Listen(path, mine)
			if err != nil {
				t.Fatal(err)
			}
			serve(t, l)
		}
		if _, err := Listen(path, mine); !errdefs.Is(err, errdefs.Exists) {
			t.Errorf("foreign=%v: second Listen = %v, want EEXIST", foreign, err)
		}
		c, err := Dial(context.Background(), path)
		if err != nil {
			t.Fatalf("foreign=%v: the live socket is gone: %v", foreign, err)
		}
		c.Close()
	}
}

func TestListenHasOneWinner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	deadSocket(t, path)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var won []*Listener
	for range 16 {
		wg.Go(func() {
			l, err := Listen(path, mine)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won = append(won, l)
			case !errdefs.Is(err, errdefs.Exists):
				t.Errorf("loser got %v, want EEXIST", err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d starters won", len(won))
	}
	serve(t, won[0])
	c, err := Dial(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestListenModeIgnoresUmask(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	for _, umask := range []int{0, 0o777} {
		unix.Umask(umask)
		path := filepath.Join(os.TempDir(), "ctx-umask-test.sock")
		l, err := Listen(path, mine)
		if err != nil {
			t.Fatal(err)
		}
		st, err := os.Lstat(path)
		l.Close()
		os.Remove(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock"))
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm() != 0o600 {
			t.Errorf("umask %o: mode %o", umask, st.Mode().Perm())
		}
	}
}

func TestListenRefusesOtherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, mine); err == nil {
		t.Fatal("a regular file was replaced")
	}
	if b, _ := os.ReadFile(path); string(b) != "precious" {
		t.Fatalf("file now holds %q", b)
	}
}

func TestLongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, strings.Repeat("n", 62)+".sock")
	l, err := Listen(path, mine)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l)
	c, err := Dial(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestCloseLeavesForeignFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	l, err := Listen(path, mine)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(path)
	deadSocket(t, path)
	l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Fatal("Close removed a socket that was not its own")
	}
}

func TestDialNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	if _, err := Dial(context.Background(), path); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("missing: %v", err)
	}
	deadSocket(t, path)
	if _, err := Dial(context.Background(), path); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("dead: %v", err)
	}
}

func TestAcceptNamesPeer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	l, err := Listen(path, mine)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := Dial(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if peer.UID != uint32(os.Geteuid()) || int(peer.PID) != os.Getpid() {
		t.Errorf("peer %+v", peer)
	}
}

func TestInherit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	l, err := Listen(path, mine)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	in, err := Inherit(f)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		t.Fatal("closing an inherited socket removed its file")
	}
	r, _, _ := os.Pipe()
	if _, err := Inherit(r); err == nil {
		t.Fatal("a pipe was taken for a listener")
	}
}
