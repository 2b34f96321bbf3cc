package world

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Inside lists the processes in sandboxes of this world: those in another mount
// namespace that has something of the world's directory mounted.
func (w *World) Inside() []int {
	own, _ := os.Readlink("/proc/self/ns/mnt")
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		ns, err := os.Readlink("/proc/" + e.Name() + "/ns/mnt")
		if err != nil || ns == own {
			continue
		}
		mounts, err := os.ReadFile("/proc/" + e.Name() + "/mountinfo")
		if err == nil && strings.Contains(string(mounts), "/"+filepath.Base(w.Dir)+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Working is Inside without what may be a sandbox that waits for the next call.
func (w *World) Working() []int {
	return slices.DeleteFunc(w.Inside(), func(pid int) bool {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		return err != nil || len(line) == 0 || strings.HasPrefix(string(line), "bwrap\x00") ||
			strings.HasPrefix(string(line), "/ctx/bin/ctxtool\x00entry\x00")
	})
}

// AwaitGone waits until list is empty, watching the processes it names.
func (w *World) AwaitGone(what string, list func() []int) {
	w.T.Helper()
	deadline := time.Now().Add(Patience)
	for pids := list(); len(pids) > 0; pids = list() {
		if time.Now().After(deadline) {
			w.T.Fatalf("%s: processes %v are still there", what, pids)
		}
		waitExit(pids)
	}
}

// Kill kills a process and waits until it is gone.
func (w *World) Kill(pid int) {
	w.T.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		w.T.Fatalf("process %d: %v", pid, err)
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		w.T.Fatalf("kill %d: %v", pid, err)
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(Patience.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			w.T.Fatalf("process %d survives SIGKILL: %v", pid, err)
		}
		return
	}
}

// NewFor makes a world of a uid, the present user's or, for uid 0, any.
func NewFor(t testing.TB, uid int) *World {
	t.Helper()
	if uid == os.Geteuid() {
		return New(t)
	}
	return NewAs(t, uid)
}

// NewUser makes a world whose configuration is its own: that of an ordinary user,
// the present one or, for uid 0, another.
func NewUser(t testing.TB) *World {
	t.Helper()
	if os.Geteuid() == 0 {
		return NewAs(t, 60001)
	}
	return New(t)
}

// DialPath connects to a socket wherever it lies.
func (w *World) DialPath(path string) *Conn {
	w.T.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { c.Close() })
	return &Conn{w, c, bufio.NewReaderSize(c, 2<<20)}
}
