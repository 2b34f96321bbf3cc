package soak

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/libctx/procid"
	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// daemon is a ctxd of a world that is started again whenever it is gone, each
// time under the weather that is asked for then.
type daemon struct {
	w     *world.World
	args  []string
	tally *tally

	mu      sync.Mutex
	cmd     *exec.Cmd
	stopped bool
	over    chan struct{} // closed when the last process has been waited for
}

// startDaemon keeps "ctxd ARGS…" alive until stop.
func startDaemon(t testing.TB, w *world.World, tl *tally, weather func() string, args ...string) *daemon {
	t.Helper()
	d := &daemon{w: w, args: args, tally: tl, over: make(chan struct{})}
	log, err := os.OpenFile(w.Dir+"/ctxd.log", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	start := func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.stopped {
			return nil
		}
		cmd := w.Command("ctxd", args...)
		cmd.Env = append(cmd.Env, "CTX_FAULTS="+weather())
		cmd.Stdout, cmd.Stderr = log, log
		err := cmd.Start()
		if err == nil {
			d.cmd = cmd
		}
		return err
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(d.over)
		defer log.Close()
		for {
			d.cmd.Wait()
			tl.count("ends of ctxd " + args[0])
			d.mu.Lock()
			stopped := d.stopped
			d.mu.Unlock()
			if stopped {
				return
			}
			// One that can not start yet (its forerunner still ends) is tried again.
			wait(10 * time.Millisecond)
			if err := start(); err != nil {
				tl.wrong("ctxd %v does not start: %v", args, err)
				return
			}
		}
	}()
	return d
}

// pid is the present process.
func (d *daemon) pid() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cmd.Process.Pid
}

// kill kills the present process; another follows.
func (d *daemon) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cmd.Process.Kill()
}

// stop ends the daemon for good, with a signal, and waits for it.
func (d *daemon) stop(sig syscall.Signal) {
	d.mu.Lock()
	d.stopped = true
	d.cmd.Process.Signal(sig)
	d.mu.Unlock()
	<-d.over
}

// servers are the processes "ctxd agent …" of a world, by agent.
func servers(w *world.World) map[string]int {
	found := map[string]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if agent := serves(w, pid); agent != "" {
			found[agent] = pid
		}
	}
	return found
}

// serves is the agent that a process serves, "" if it does not.
func serves(w *world.World, pid int) string {
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if !bytes.Contains(env, []byte("CTX_ROOT="+w.Root+"\x00")) {
		return ""
	}
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	isServer := func(line []byte) bool {
		return bytes.HasPrefix(line, []byte(w.Bin+"/ctxd\x00")) && bytes.Contains(line, []byte("\x00agent\x00"))
	}
	if !isServer(line) {
		return ""
	}
	// A child that has not executed its program yet still looks like its parent.
	parent, err := procid.Parent(pid)
	if err != nil {
		return ""
	}
	if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", parent)); isServer(line) {
		return ""
	}
	words := bytes.Split(bytes.TrimSuffix(line, []byte{0}), []byte{0})
	return string(words[len(words)-1])
}

// killServer kills the process that serves an agent, if there is one.
func killServer(w *world.World, pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return serves(w, pid) != "" && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

// killModels kills the process that asks models, if there is one.
func killModels(w *world.World) bool {
	is := func(pid int) bool {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return bytes.HasPrefix(line, []byte(w.Bin+"/ctxmodel\x00")) && bytes.Contains(line, []byte("\x00"+w.Root+"\x00"))
	}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !is(pid) {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		defer unix.Close(fd)
		return is(pid) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
	}
	return false
}

// rss is the resident memory of a process in KiB, 0 if it is gone.
func rss(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}

// descriptors counts what a process has open, by kind.
func descriptors(pid int) map[string]int {
	kinds := map[string]int{}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		target, err := os.Readlink(dir + "/" + e.Name())
		if err != nil {
			continue
		}
		kind, _, _ := strings.Cut(target, ":")
		if strings.HasPrefix(target, "/") {
			kind = "file"
		}
		if kind == "anon_inode" {
			kind = target
		}
		kinds[kind]++
	}
	return kinds
}
