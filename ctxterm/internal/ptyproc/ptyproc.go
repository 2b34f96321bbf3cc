// Package ptyproc runs one program on a pseudo-terminal of its own: it is the
// only package that makes pseudo-terminals, and the only one of ctxterm that
// starts a process.
package ptyproc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Size of a terminal, in character cells.
type Size struct{ Cols, Rows uint16 }

// DefaultSize is the size of a terminal that nobody sized.
var DefaultSize = Size{80, 24}

// ParseSize reads COLSxROWS, each from 1 to libctx.MaxTermSide. Errors are
// errdefs.Invalid.
func ParseSize(s string) (Size, error) {
	cols, rows, ok := strings.Cut(s, "x")
	c, cerr := side(cols)
	r, rerr := side(rows)
	if !ok || cerr != nil || rerr != nil {
		return Size{}, errdefs.New(errdefs.Invalid, "size %.40q is not COLSxROWS, each 1 to %d", s, libctx.MaxTermSide)
	}
	return Size{c, r}, nil
}

func side(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err == nil && (n < 1 || n > libctx.MaxTermSide || strconv.FormatUint(n, 10) != s) {
		err = strconv.ErrRange
	}
	return uint16(n), err
}

func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Cols, s.Rows) }

// Config says what to run. Env is the whole environment; Dir is the working
// directory, "" for the caller's.
type Config struct {
	Argv []string
	Env  []string
	Dir  string
	Size Size
}

// Proc is a program on its pseudo-terminal. It leads a session of its own and
// is hung up when the Proc is closed or this process ends.
type Proc struct {
	cmd    *exec.Cmd
	master *os.File // non-blocking, so that a read can have a deadline
	ended  atomic.Bool
	hangup sync.Once
}

// Start starts the program. A program that can not be found is
// errdefs.NotFound, one that can not be executed errdefs.Denied. The caller
// closes the Proc.
func Start(c Config) (*Proc, error) {
	if len(c.Argv) == 0 {
		return nil, errdefs.New(errdefs.Invalid, "no program to run")
	}
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	opened, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: c.Size.Cols, Rows: c.Size.Rows})
	if err != nil {
		return nil, startError(c.Argv[0], err)
	}
	defer opened.Close()
	// The library leaves its descriptor in blocking mode; a second one on the
	// same terminal goes through the poller.
	fd, err := unix.FcntlInt(opened.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return nil, errdefs.New(errdefs.KindOf(err), "terminal: %w", err)
	}
	return &Proc{cmd: cmd, master: os.NewFile(uintptr(fd), "pty")}, nil
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
	p.hangup.Do(func() { err = p.master.Close() })
	return err
}

// Resize tells the terminal, and by SIGWINCH the program, its new size.
func (p *Proc) Resize(s Size) error {
	return p.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: s.Cols, Row: s.Rows})
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

// Signal sends a signal to the program's process group.
func (p *Proc) Signal(s syscall.Signal) error { return syscall.Kill(-p.cmd.Process.Pid, s) }

// Feed types everything from in, then ends the program's input as Ctrl+D does,
// as long as the program reads whole lines; a program in raw mode has no end of
// input. Feed returns when in ends or the terminal is gone.
func (p *Proc) Feed(in io.Reader) error {
	t := &typist{w: p.master}
	if _, err := io.Copy(t, in); err != nil {
		return gone(err)
	}
	return p.control(func(fd int) error {
		mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil || mode.Lflag&unix.ICANON == 0 {
			return err
		}
		end := []byte{mode.Cc[unix.VEOF]}
		if t.middle { // the first one only sends the unfinished line off
			end = append(end, end...)
		}
		_, err = unix.Write(fd, end)
		return err
	})
}

// typist remembers whether it stopped in the middle of a line.
type typist struct {
	w      io.Writer
	middle bool
}

func (t *typist) Write(b []byte) (int, error) {
	n, err := t.w.Write(b)
	if n > 0 {
		t.middle = b[n-1] != '\n'
	}
	return n, err
}

// Run copies the program's output to out until the program has ended and its
// output is drained. Processes it left behind on the terminal are listened to
// until they are silent for libctx.DrainAfterExit, for libctx.MaxTermDrain bytes
// at most. If out fails, the terminal is hung up and the error is returned. The
// status is the exit code, or 128 plus the number of the signal that ended the
// program. Run is called once.
func (p *Proc) Run(out io.Writer) (status int, err error) {
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(out, &reader{p, libctx.MaxTermDrain})
		if err != nil {
			p.Close()
		}
		copied <- err
	}()
	p.cmd.Wait() // how it ended is in ProcessState
	p.ended.Store(true)
	p.patience()
	err = <-copied
	p.Close()
	ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal()), err
	}
	return ws.ExitStatus(), err
}

// patience limits how long the present or next read may wait.
func (p *Proc) patience() {
	if p.master.SetReadDeadline(time.Now().Add(libctx.DrainAfterExit)) != nil {
		p.Close()
	}
}

// reader ends where the terminal does, or when what is left of an ended program
// is read. Time spent in writing does not count.
type reader struct {
	p    *Proc
	left int // bytes still read after the end of the program
}

func (r *reader) Read(b []byte) (int, error) {
	ended := r.p.ended.Load()
	if ended {
		if r.left <= 0 {
			return 0, io.EOF
		}
		b = b[:min(len(b), r.left)]
		r.p.patience()
	}
	n, err := r.p.master.Read(b)
	if ended {
		r.left -= n
	}
	if err != nil && gone(err) == nil {
		err = io.EOF
	}
	return n, err
}

// gone turns the ways in which a terminal ends into no error.
func gone(err error) error {
	for _, end := range []error{io.EOF, syscall.EIO, os.ErrDeadlineExceeded, os.ErrClosed} {
		if errors.Is(err, end) {
			return nil
		}
	}
	return err
}
