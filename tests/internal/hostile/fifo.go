package hostile

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// FIFO is a way to meet a program in a sandbox: it opens the FIFO for reading,
// and so waits for the test, and the test for it.
type FIFO struct {
	w      *world.World
	path   string
	Inside string // where the program finds it
}

// NewFIFO makes one in the workspace.
func NewFIFO(w *world.World, name string) FIFO {
	w.T.Helper()
	f := FIFO{w, filepath.Join(w.Workspace, name), "/workspace/" + name}
	if err := unix.Mkfifo(f.path, 0o600); err != nil {
		w.T.Fatal(err)
	}
	Give(w, f.path)
	return f
}

// Await waits until the program has opened it. What it reads ends with Close.
func (f FIFO) Await() *os.File {
	f.w.T.Helper()
	// Opening it without waiting fails as long as nobody reads, and nothing tells
	// when somebody does but an open that waits.
	late := time.AfterFunc(world.Patience, func() {
		if r, err := os.OpenFile(f.path, os.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
			time.AfterFunc(time.Second, func() { r.Close() })
		}
	})
	file, err := os.OpenFile(f.path, os.O_WRONLY, 0)
	if !late.Stop() {
		err = errors.Join(err, errors.New("nobody opened it"))
	}
	if err != nil {
		f.w.T.Fatalf("%s: %v", f.path, err)
	}
	return file
}
