package world

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Await waits until ready is true, looking again whenever something changes in
// dir.
func (w *World) Await(dir string, ready func() bool) {
	w.T.Helper()
	w.AwaitWithin(Patience, dir, ready)
}

// AwaitWithin is Await for what may take longer, as a measurement does.
func (w *World) AwaitWithin(patience time.Duration, dir string, ready func() bool) {
	w.T.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		w.T.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_MODIFY|unix.IN_CLOSE_WRITE|unix.IN_ATTRIB); err != nil {
		w.T.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for !ready() {
		left := time.Until(deadline)
		if left <= 0 {
			w.T.Fatalf("%s: what was awaited did not happen", dir)
		}
		unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		unix.Read(fd, make([]byte, 4096))
	}
}

// AwaitExists waits until a file is there.
func (w *World) AwaitExists(path string) {
	w.T.Helper()
	w.Await(filepath.Dir(path), func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
}
