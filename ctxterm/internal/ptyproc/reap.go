package ptyproc

import (
	"os"
	"os/signal"
	"syscall"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/procid"
	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of processes whose own parents below it
// have ended, so that all the program starts stays below this process: peers can
// be told by that. Whoever calls it also calls Tend.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return errdefs.New(errdefs.KindOf(err), "adopt orphans: %w", err)
	}
	return nil
}

// Tend looks after the children of this process until done is closed: those
// that were adopted are reaped when they end, which leaves the program's own
// status to Run; and the program is sent on (SIGCONT) when something has stopped
// it, since there is no shell above it that could. It needs a process that has no
// other children.
func (p *Proc) Tend(done <-chan struct{}) {
	events := make(chan os.Signal, 1)
	signal.Notify(events, syscall.SIGCHLD)
	defer signal.Stop(events)
	for {
		p.reap()
		p.sendOn()
		select {
		case <-events:
		case <-done:
			return
		}
	}
}

func (p *Proc) reap() {
	children, err := procid.Children(os.Getpid())
	if err != nil {
		return // no /proc: they stay until this process ends
	}
	for _, pid := range children {
		if pid != p.cmd.Process.Pid {
			unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

func (p *Proc) sendOn() {
	var stopped unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, &stopped, unix.WSTOPPED|unix.WNOHANG, nil)
	if err == nil && stopped.Signo != 0 {
		p.Signal(syscall.SIGCONT)
	}
}
