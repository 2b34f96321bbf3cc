package activate

import (
	"bufio"
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/wire"
)

// serve runs an activator whose servers are the given command, for the one agent
// a and for one other socket, and returns both sockets.
func serve(t *testing.T, command ...string) [2]string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "act")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := paths.Layout{Root: dir}
	if err := os.MkdirAll(filepath.Join(dir, "agent/a.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	held := func(path string) Socket {
		return Socket{
			Name: path, Command: command,
			Bind: func() (*unixsock.Listener, error) {
				return unixsock.Listen(path, unixsock.Options{Perm: 0o600, UID: -1, GID: -1})
			},
			Refusal: func(why error) []byte {
				line, err := wire.MarshalFrame(&wire.Error{
					Head: wire.Head{Type: "error"}, Code: errdefs.Unavailable, Message: why.Error(),
				})
				if err != nil {
					t.Error(err)
				}
				return line
			},
		}
	}
	paths := [2]string{filepath.Join(dir, "a.sock"), filepath.Join(dir, "other.sock")}
	ctx, cancel := context.WithCancel(context.Background())
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- Run(ctx, Config{
			Layout: l, Log: log.Discard(), Ready: func() { close(ready) },
			Agent:  func(libctx.Agent) Socket { return held(paths[0]) },
			Others: []Socket{held(paths[1])},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-ready
	return paths
}

// TestHopelessServer: a client of a server that dies whenever it is started is
// told so; it does not wait for ever.
func TestHopelessServer(t *testing.T) {
	for _, socket := range serve(t, "/bin/false") {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(`{"op":"ping"}` + "\n")); err != nil {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(time.Minute))
		line, err := bufio.NewReader(c).ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		f, err := wire.DecodeFrame(line)
		if e, ok := f.(*wire.Error); err != nil || !ok || e.Code != errdefs.Unavailable {
			t.Errorf("%s: got %s (%v)", socket, line, err)
		}
	}
}

// TestQueueOutlivesServers: connections wait in the kernel while servers end and
// start; none is lost.
func TestQueueOutlivesServers(t *testing.T) {
	// Each server answers one connection and ends.
	sockets := serve(t, "/usr/bin/python3", "-c", `
import socket
s = socket.socket(fileno=3)
s.setblocking(True)
c, _ = s.accept()
c.sendall(b"served\n")
c.close()`)
	var conns []net.Conn
	for i := range 8 {
		c, err := net.Dial("unix", sockets[i%2])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	for i, c := range conns {
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if line, err := bufio.NewReader(c).ReadString('\n'); line != "served\n" {
			t.Errorf("connection %d: %q %v", i, line, err)
		}
	}
}
