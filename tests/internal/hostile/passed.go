package hostile

import (
	"net"
	"os"
	"testing"

	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// Give makes a file the world's user's.
func Give(w *world.World, path string) {
	w.T.Helper()
	if os.Geteuid() == 0 {
		if err := os.Lchown(path, w.UID, w.UID); err != nil {
			w.T.Fatal(err)
		}
	}
}

// Taken is the connection that somebody passes over another one.
func Taken(t testing.TB, c *net.UnixConn) net.Conn {
	t.Helper()
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		t.Fatalf("nothing was passed: %v", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "passed")
	defer f.Close()
	got, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
