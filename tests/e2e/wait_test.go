package e2e

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// awaitFile waits until ready is true, looking again whenever something changes
// in dir.
func awaitFile(t *testing.T, dir string, ready func() bool) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_MODIFY|unix.IN_CLOSE_WRITE|unix.IN_ATTRIB); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(world.Patience)
	for !ready() {
		left := time.Until(deadline)
		if left <= 0 {
			t.Fatalf("%s: what was awaited did not happen", dir)
		}
		unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		unix.Read(fd, make([]byte, 4096))
	}
}

// awaitSocket waits until an agent's own socket accepts: a server writes its pid
// control once it does.
func awaitSocket(t *testing.T, w *world.World, agent string) {
	t.Helper()
	path := filepath.Join(w.Root, "agent", agent)
	awaitFile(t, path+".d", func() bool {
		c, err := net.Dial("unix", path+".sock")
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// awaitExists waits until a file is there.
func awaitExists(t *testing.T, path string) {
	t.Helper()
	awaitFile(t, filepath.Dir(path), func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
}
