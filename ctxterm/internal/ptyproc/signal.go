package ptyproc

import (
	"errors"
	"syscall"
	"time"

	"cortexfs.org/libctx"
	"golang.org/x/sys/unix"
)

// Signal sends a signal to the program's process group. After the program's end
// it does nothing: the number may be another's.
func (p *Proc) Signal(s syscall.Signal) error {
	select {
	case <-p.gone:
		return nil
	default:
		return syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// SignalForeground sends a signal to the group that the terminal's keys act on:
// a job of the program if it is a shell, else its own.
func (p *Proc) SignalForeground(s syscall.Signal) error {
	var group int
	err := p.control(func(fd int) (err error) {
		group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	if err != nil || group <= 0 {
		return p.Signal(s)
	}
	// Groups of this session only: none has a number of 1 or our own.
	if err := syscall.Kill(-group, s); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return p.Signal(s)
}

// HangUp ends the program as a terminal that goes away does, and then with
// more force: SIGHUP to it and to the foreground group, SIGTERM to both
// after libctx.TermHangup, SIGKILL after as long again. It returns when the
// program has ended; Run, which has to go on meanwhile, then still reads what is
// left.
func (p *Proc) HangUp() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGKILL} {
		p.SignalForeground(s)
		p.Signal(s)
		// One that is stopped learns of it only when it goes on.
		p.SignalForeground(syscall.SIGCONT)
		p.Signal(syscall.SIGCONT)
		timer.Reset(libctx.TermHangup)
		select {
		case <-p.gone:
			return
		case <-timer.C:
		}
	}
	<-p.gone
}
