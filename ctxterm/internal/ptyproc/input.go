package ptyproc

import (
	"io"

	"golang.org/x/sys/unix"
)

// Write types b. It waits as long as the program does not read what was typed,
// until the terminal is gone.
func (p *Proc) Write(b []byte) (int, error) { return p.master.Write(b) }

// TryWrite types as much of b as can be typed without waiting.
func (p *Proc) TryWrite(b []byte) (n int, err error) {
	conn, err := p.master.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := conn.Write(func(fd uintptr) bool {
		n, err = unix.Write(int(fd), b)
		return true
	})
	if cerr != nil {
		return 0, cerr
	}
	if n < 0 || err == unix.EAGAIN || err == unix.EINTR {
		return max(n, 0), nil
	}
	return n, err
}

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
