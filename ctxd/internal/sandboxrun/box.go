package sandboxrun

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/procid"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// box is one sandbox's processes: bwrap, which we started, and the inner init,
// which is pid 1 in there and whose end is the end of everything.
type box struct {
	proc    *os.Process
	init    *procid.Handle // nil until it is known
	id      procid.ID
	records *jsontext.Decoder
	over    chan struct{} // closed when bwrap was collected and the init is gone
	state   *os.ProcessState
}

// find learns the inner init from bwrap's first record. bwrap is alive and not
// collected yet, and the init is its only child, so a process that has this pid
// and this parent is it.
func (b *box) find(status *os.File) error {
	b.records = jsontext.NewDecoder(io.LimitReader(status, libctx.MaxSandboxPipe))
	pid, err := number(b.records, "child-pid")
	if err != nil {
		return err
	}
	h, err := procid.Open(pid)
	if errdefs.Is(err, errdefs.NotFound) {
		return errdefs.New(errdefs.Unavailable, "the first process ended") // bwrap says why
	}
	if err != nil {
		return err
	}
	b.id, err = procid.Of(pid)
	parent, err2 := procid.Parent(pid)
	if err != nil || err2 != nil || parent != b.proc.Pid || h.Ended() {
		h.Close()
		return errdefs.New(errdefs.Unavailable, "the first process ended")
	}
	b.init = h
	return nil
}

// number reads the next record and returns its member of that name.
func number(records *jsontext.Decoder, name string) (int, error) {
	if _, err := records.ReadToken(); err != nil {
		return 0, err
	}
	n, found := 0, false
	for records.PeekKind() != jsontext.KindEndObject {
		key, err := records.ReadToken()
		if err != nil {
			return 0, err
		}
		member := key.String()
		value, err := records.ReadValue()
		if err != nil {
			return 0, err
		}
		if member == name {
			_, err := fmt.Sscan(string(value), &n)
			found = err == nil
		}
	}
	if _, err := records.ReadToken(); err != nil {
		return 0, err
	}
	if !found {
		return 0, errdefs.New(errdefs.Protocol, "no %s in bwrap's record", name)
	}
	return n, nil
}

// await collects bwrap and waits for the init, in a goroutine that ends with
// them and closes over.
func (b *box) await() {
	b.over = make(chan struct{})
	go func() {
		defer close(b.over)
		b.state, _ = b.proc.Wait() // ours alone to collect
		if b.init != nil {
			b.init.Wait(context.Background())
			b.init.Reap() // it is ours if we are the reaper of orphans here
		}
	}()
}

// abandon ends a launch whose gate is closed, and returns when nothing of it is
// left. bwrap is not collected yet, so the group is still its own.
func (b *box) abandon() {
	if b.init != nil {
		b.init.Signal(syscall.SIGKILL)
	}
	syscall.Kill(-b.proc.Pid, syscall.SIGKILL)
	if b.init == nil {
		b.reapGroup()
	}
	b.await()
	<-b.over
}

// reapGroup collects what bwrap leaves to us if we are the reaper of orphans
// here. Before its gate everything is in its group, whose number is taken as long
// as bwrap is not collected itself.
func (b *box) reapGroup() {
	group := b.proc.Pid
	for err := unix.EINTR; err == unix.EINTR; {
		err, _ = unix.Waitid(unix.P_PID, group, nil, unix.WEXITED|unix.WNOWAIT, nil).(syscall.Errno)
	}
	children, _ := procid.Children(os.Getpid())
	for _, pid := range children {
		if of, err := unix.Getpgid(pid); pid == group || err != nil || of != group {
			continue
		}
		if h, err := procid.Open(pid); err == nil {
			h.Wait(context.Background())
			h.Reap()
			h.Close()
		}
	}
}

// kill ends everything at once. Only after find.
func (b *box) kill() { b.init.Signal(syscall.SIGKILL) }

// stop asks the payload to end, and ends everything if that takes longer than
// wait; 0 is libctx.TermGrace.
func (b *box) stop(wait time.Duration) {
	if wait == 0 {
		wait = libctx.TermGrace
	}
	if b.term() {
		grace := time.NewTimer(wait)
		defer grace.Stop()
		select {
		case <-b.over:
			return
		case <-grace.C:
		}
	}
	b.kill()
}

// term sends SIGTERM to the payload: the second process of the namespace, and
// a child of the first, which itself ignores the signal.
func (b *box) term() bool {
	children, err := procid.Children(b.id.PID)
	if err != nil || len(children) == 0 {
		return false
	}
	payload, err := procid.Open(children[0])
	if err != nil {
		return false
	}
	defer payload.Close()
	parent, err := procid.Parent(children[0])
	if err != nil || parent != b.id.PID || inner(children[0]) != "2" || b.init.Ended() {
		return false
	}
	return payload.Signal(syscall.SIGTERM) == nil
}

// inner is the pid a process has in a pid namespace below ours; "" if it is in
// none.
func inner(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "NSpid:"); ok {
			if f := strings.Fields(list); len(f) > 1 {
				return f[len(f)-1]
			}
		}
	}
	return ""
}

// exitCode is how the payload ended. bwrap records it; without the record the
// whole namespace was killed.
func (b *box) exitCode() int {
	if code, err := number(b.records, "exit-code"); err == nil {
		return code
	}
	if ws, ok := b.state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return b.state.ExitCode()
}

// close lets go of a box that is over.
func (b *box) close() {
	if b.init != nil {
		b.init.Close()
	}
}
