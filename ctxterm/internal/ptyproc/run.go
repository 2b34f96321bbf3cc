package ptyproc

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"cortexfs.org/libctx"
)

// Run copies the program's output to out until the program has ended and its
// output is drained. A program that closes the terminal and lives is waited for.
// Processes it left behind on the terminal are listened to until they are silent
// for libctx.DrainAfterExit, for libctx.MaxTermDrain bytes at most. If out fails,
// the terminal is hung up and the error is returned. The status is the exit code,
// or 128 plus the number of the signal that ended the program. Run is called
// once.
func (p *Proc) Run(out io.Writer) (status int, err error) {
	copied := make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(out, &reader{p, libctx.MaxTermDrain}, make([]byte, 64<<10))
		if err != nil {
			p.Close()
		}
		copied <- err
	}()
	p.cmd.Wait() // how it ended is in ProcessState
	close(p.gone)
	p.ended.Store(true)
	p.patience()
	p.slave.Close()
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
