package attach

import (
	"errors"
	"os"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
	"golang.org/x/sys/unix"
)

// tty is the terminal of the person.
type tty struct {
	in, out *os.File
	typing  bool          // in is a terminal too: keys come from there
	fd      int           // of the terminal whose modes are changed
	cooked  *unix.Termios // its modes before
	wake    int           // an eventfd that ends the reader
}

// open looks at the terminal, which out has to be. The caller closes it.
func open(in, out *os.File) (*tty, error) {
	t := &tty{in: in, out: out, fd: int(in.Fd())}
	mode, err := unix.IoctlGetTermios(t.fd, unix.TCGETS)
	if t.typing = err == nil; !t.typing {
		t.fd = int(out.Fd())
		if mode, err = unix.IoctlGetTermios(t.fd, unix.TCGETS); err != nil {
			return nil, errdefs.New(errdefs.Invalid, "standard output is not a terminal")
		}
	}
	t.cooked = mode
	if t.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "terminal: %w", err)
	}
	return t, nil
}

func (t *tty) close() { unix.Close(t.wake) }

// raw lets every byte out as it is written and every key through as it is typed;
// where nobody reads the keys, those that make signals still do.
func (t *tty) raw() error {
	m := *t.cooked
	m.Oflag &^= unix.OPOST
	m.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.IEXTEN
	if t.typing {
		m.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
		m.Lflag &^= unix.ISIG
		m.Cflag = m.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
		m.Cc[unix.VMIN], m.Cc[unix.VTIME] = 1, 0
	}
	return t.set(&m)
}

// restore gives the terminal back. What was typed or reported and is not read
// yet was meant for the program inside, and is dropped.
func (t *tty) restore() {
	unix.IoctlSetInt(t.fd, unix.TCFLSH, unix.TCIFLUSH)
	_ = t.set(t.cooked) // nobody is there to be told if the terminal is gone
}

func (t *tty) set(m *unix.Termios) error {
	for {
		err := unix.IoctlSetTermios(t.fd, unix.TCSETS, m)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// size of the terminal, as far as one can have it.
func (t *tty) size() termwire.Size {
	s, ok := SizeOf(t.out)
	if !ok {
		return termwire.DefaultSize
	}
	return s
}

// SizeOf is the size of the terminal behind f, at most libctx.MaxTermSide each
// way; false if f is none, or one without a size.
func SizeOf(f *os.File) (termwire.Size, bool) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || ws.Col == 0 || ws.Row == 0 {
		return termwire.Size{}, false
	}
	return termwire.Size{Cols: min(int(ws.Col), libctx.MaxTermSide), Rows: min(int(ws.Row), libctx.MaxTermSide)}, true
}

// read waits for keys and reads them. It returns no error and nothing when
// stop was called, and an error when the terminal is gone.
func (t *tty) read(b []byte) (int, error) {
	fds := []unix.PollFd{{Fd: int32(t.in.Fd()), Events: unix.POLLIN}, {Fd: int32(t.wake), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case fds[1].Revents != 0:
			return 0, nil
		}
		n, err := unix.Read(int(t.in.Fd()), b)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, unix.EIO
		}
		return n, nil
	}
}

// stop ends a read, now or later.
func (t *tty) stop() {
	unix.Write(t.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}
