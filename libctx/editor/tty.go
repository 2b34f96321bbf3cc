package editor

import (
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// tty is the terminal. The library reads standard input, and believes that what
// looks like a report of the cursor is one, wherever it comes from; and what it
// reads beside a report it loses. So standard input becomes a pipe, and this
// goroutine passes on what is typed: reports left out, pastes made harmless and
// short enough to be edited.
type tty struct {
	file   *os.File // the terminal itself
	cooked *unix.Termios
	raw    *unix.Termios
	paste  func(string) string // what stands for a paste
	lends  bool                // see Options.Lends

	pipe    int // the writing end
	control [2]int
	ended   chan struct{}

	mu      sync.Mutex
	changed sync.Cond
	want    mode // what the goroutine is to do
	have    mode // and does
	shut    bool // a line may have ended: no key is taken until one is asked for
	typed   int  // bytes that were to be passed on, ever
	passed  int  // and were
}

type mode int

const (
	reading mode = iota
	pausing      // somebody else has the terminal
	ending
)

// escapeWait is how long Escape may be the beginning of more, in milliseconds.
const escapeWait = 50

// maxAhead is how much typed text may wait for the library, in bytes.
const maxAhead = 1 << 20

// takeTTY takes standard input and puts its pipe in the place of it, until end.
func takeTTY(paste func(string) string, lends bool) (*tty, error) {
	fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	t := &tty{file: os.NewFile(uintptr(fd), "terminal"), paste: paste, lends: lends, ended: make(chan struct{})}
	t.changed.L = &t.mu
	if t.cooked, err = unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
		t.file.Close()
		return nil, err
	}
	t.raw = keys(*t.cooked)
	if lends { // Enter that is typed ahead is the end of a line for who gets it
		t.raw.Iflag |= t.cooked.Iflag & unix.ICRNL
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.file.Close()
		return nil, err
	}
	defer unix.Close(ends[0])
	t.pipe = ends[1]
	err = unix.SetNonblock(t.pipe, true)
	if err == nil {
		err = unix.Pipe2(t.control[:], unix.O_CLOEXEC|unix.O_NONBLOCK)
	}
	if err == nil {
		err = unix.Dup3(ends[0], 0, 0)
	}
	if err == nil {
		err = t.keys()
	}
	if err != nil {
		unix.Close(t.pipe)
		t.file.Close()
		return nil, err
	}
	go t.run()
	return t, nil
}

// keys are the modes in which every key comes through as it is typed; output is
// treated as before.
func keys(t unix.Termios) *unix.Termios {
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return &t
}

const (
	pasteOn  = "\x1b[?2004h"
	pasteOff = "\x1b[?2004l\x1b[?25h" // and the cursor is to be seen
)

// keys makes every key come through. Between two lines too: what is typed there
// would else be shown at once, and Ctrl+C be no key.
func (t *tty) keys() error {
	_, _ = os.Stdout.WriteString(pasteOn)
	return unix.IoctlSetTermios(int(t.file.Fd()), unix.TCSETS, t.raw)
}

// restore makes the terminal what it was before.
func (t *tty) restore() {
	_, _ = os.Stdout.WriteString(pasteOff)
	_ = unix.IoctlSetTermios(int(t.file.Fd()), unix.TCSETS, t.cooked) // there is nothing else to try
}

// set makes the goroutine read or pause, and returns when it does.
func (t *tty) set(m mode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.want = m
	_, _ = unix.Write(t.control[1], []byte{0}) // if it is full, it wakes anyway
	t.changed.Broadcast()
	for t.have != m && t.have != ending {
		t.changed.Wait()
	}
}

// more is called when the library has used all keys it read: if it has read all
// there are, none of them ended a line, and the next one is wanted.
func (t *tty) more() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.shut || t.typed != t.passed {
		return
	}
	if n, err := unix.IoctlGetInt(0, unix.TIOCINQ); err == nil && n == 0 {
		t.shut = false
		_, _ = unix.Write(t.control[1], []byte{0})
	}
}

// ready reports whether keys are to be taken.
func (t *tty) ready() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.shut
}

// queued notes that there are n more bytes to be passed on, the last of them a key
// that may end a line: nothing more is read then but on demand.
func (t *tty) queued(n int, last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.typed += n
	t.shut = t.shut || last
}

// pass writes to the library what it takes now. It can not ask for more in the
// middle of that.
func (t *tty) pass(ahead []byte) (rest []byte, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := unix.Write(t.pipe, ahead)
	if err != nil && err != unix.EAGAIN {
		return nil, err
	}
	t.passed += max(n, 0)
	return ahead[max(n, 0):], nil
}

// endsLine reports whether a key that was read alone may end a line.
func endsLine(key []byte) bool {
	return len(key) == 1 && strings.IndexByte("\r\n\x03\x04", key[0]) >= 0
}

// end gives standard input back.
func (t *tty) end() {
	t.set(ending)
	<-t.ended
	_ = unix.Dup3(int(t.file.Fd()), 0, 0)
	unix.Close(t.control[0])
	unix.Close(t.control[1])
	t.file.Close()
}

// turn is what to do now; while somebody else has the terminal it waits.
func (t *tty) turn() mode {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		if t.have != t.want {
			t.have = t.want
			t.changed.Broadcast()
		}
		if t.have != pausing {
			return t.have
		}
		t.changed.Wait()
	}
}

// run passes on what is typed, until end or until the terminal is gone; then the
// pipe is at its end.
func (t *tty) run() {
	defer close(t.ended)
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.have = ending
		t.changed.Broadcast()
	}()
	defer unix.Close(t.pipe)
	defer t.restore()
	var typed keystream
	var ahead []byte // for the pipe
	buf := make([]byte, 32<<10)
	for t.turn() != ending {
		fds := []unix.PollFd{
			{Fd: int32(t.control[0]), Events: unix.POLLIN},
			{Fd: int32(t.file.Fd()), Events: unix.POLLIN},
			{Fd: int32(t.pipe), Events: unix.POLLOUT},
		}
		if len(ahead) == 0 {
			fds[2].Fd = -1
		}
		if len(ahead) > maxAhead || !t.ready() {
			fds[1].Fd = -1
		}
		patience := -1
		if typed.waiting() {
			patience = escapeWait
		}
		n, err := unix.Poll(fds, patience)
		if err != nil && err != unix.EINTR {
			return
		}
		if n == 0 {
			n := len(ahead)
			ahead = typed.release(ahead)
			t.queued(len(ahead)-n, false)
			continue
		}
		if fds[0].Revents != 0 {
			_, _ = unix.Read(t.control[0], buf)
			continue
		}
		if fds[2].Revents != 0 {
			if ahead, err = t.pass(ahead); err != nil {
				return
			}
		}
		if fds[1].Revents != 0 {
			room := len(buf)
			if t.lends {
				room = typed.sure()
			}
			n, err := unix.Read(int(t.file.Fd()), buf[:room])
			if err == unix.EINTR || err == unix.EAGAIN {
				continue
			}
			if err != nil || n <= 0 {
				t.flush(ahead)
				return
			}
			if t.lends && !typed.pasting && buf[0] == '\n' {
				buf[0] = '\r' // Enter for the library, however it came
			}
			last, before := t.lends && !typed.pasting && endsLine(buf[:n]), len(ahead)
			ahead = typed.take(ahead, buf[:n], t.paste)
			t.queued(len(ahead)-before, last)
		}
	}
}

// flush passes on what was typed before the terminal went, as far as there is
// room.
func (t *tty) flush(ahead []byte) { _, _ = unix.Write(t.pipe, ahead) }
