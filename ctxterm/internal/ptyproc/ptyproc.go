// Package ptyproc runs one program on a pseudo-terminal of its own: it is the
// only package that makes pseudo-terminals, and the only one of ctxterm that
// starts a process.
package ptyproc

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Config says what to run. Env is the whole environment; Dir is the working
// directory, "" for the caller's.
type Config struct {
	Argv []string
	Env  []string
	Dir  string
	Size termwire.Size
	// Third is what the program finds open at descriptor 3, nil for nothing. The
	// caller keeps and closes its own.
	Third *os.File
}

// Proc is a program on its pseudo-terminal. It leads a session of its own and
// is hung up when the Proc is closed or this process ends. Its methods may be
// called from any goroutine.
type Proc struct {
	cmd    *exec.Cmd
	master *os.File // non-blocking, so that a read can have a deadline
	// slave is the program's own side, held as long as it lives: a program may
	// close all of its descriptors, and open the terminal again later.
	slave  *os.File
	ended  atomic.Bool
	gone   chan struct{} // closed when the program has ended and is reaped
	hangup sync.Once
}

// Start starts the program. A program that can not be found is
// errdefs.NotFound, one that can not be executed errdefs.Denied. The caller
// calls Run and then closes the Proc.
func Start(c Config) (*Proc, error) {
	if len(c.Argv) == 0 {
		return nil, errdefs.New(errdefs.Invalid, "no program to run")
	}
	p := &Proc{gone: make(chan struct{})}
	if err := p.open(c.Size); err != nil {
		p.Close()
		return nil, errdefs.New(errdefs.KindOf(err), "terminal: %w", err)
	}
	p.cmd = exec.Command(c.Argv[0], c.Argv[1:]...)
	p.cmd.Env, p.cmd.Dir = c.Env, c.Dir
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = p.slave, p.slave, p.slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if c.Third != nil {
		p.cmd.ExtraFiles = []*os.File{c.Third}
	}
	if err := p.cmd.Start(); err != nil {
		p.Close()
		return nil, startError(c.Argv[0], err)
	}
	return p, nil
}

// open makes the pseudo-terminal.
func (p *Proc) open(size termwire.Size) error {
	opened, slave, err := pty.Open()
	if err != nil {
		return err
	}
	defer opened.Close()
	p.slave = slave
	// The library leaves its descriptor in blocking mode; a second one on the
	// same terminal goes through the poller.
	fd, err := unix.FcntlInt(opened.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = unix.SetNonblock(fd, true)
	p.master = os.NewFile(uintptr(fd), "pty")
	if err != nil {
		return err
	}
	return p.Resize(size)
}

func startError(program string, err error) error {
	kind := errdefs.KindOf(err)
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		kind = errdefs.NotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		kind = errdefs.Denied
	}
	var cause syscall.Errno
	if errors.As(err, &cause) {
		err = cause
	} else if errors.Is(err, exec.ErrNotFound) {
		err = errors.New("not found")
	}
	return errdefs.New(kind, "%s: %w", program, err)
}

// Close hangs the terminal up and lets go of it. The program gets SIGHUP.
func (p *Proc) Close() error {
	var err error
	p.hangup.Do(func() {
		p.slave.Close() // of none it is an error, and nothing else
		err = p.master.Close()
	})
	return err
}

// Resize tells the terminal, and by SIGWINCH the program, its new size.
func (p *Proc) Resize(s termwire.Size) error {
	return p.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(s.Cols), Row: uint16(s.Rows)})
	})
}

func (p *Proc) control(do func(fd int) error) error {
	conn, err := p.master.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}
