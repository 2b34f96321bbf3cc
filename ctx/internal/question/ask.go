package question

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// quiet is how long nothing may be typed before the question is one: who is in the
// middle of a word does not answer it.
const quiet = 300 * time.Millisecond

// page is what a person sees of one question on a terminal.
type page struct {
	tty   *os.File
	q     *wire.ApprovalRequest
	color bool
	wake  int // an eventfd: the size changed, or the question is over
	over  context.Context
	keys  keys
	typed []byte // keys that came and are not used
	alone bool   // the last one that was used came by itself
	stale bool   // the size changed, and with it what is still to be seen
}

// Ask shows a question on a terminal and returns Yes, No or Cancel, as the person
// says; None if it was over before, which the context tells. What was typed before it
// was to be seen is dropped. The terminal has the modes it had.
func Ask(over context.Context, tty *os.File, q *wire.ApprovalRequest, color bool) Key {
	p := &page{tty: tty, q: q, color: color, over: over}
	cooked, err := unix.IoctlGetTermios(p.fd(), unix.TCGETS)
	if err != nil {
		return No
	}
	raw := *cooked
	raw.Iflag &^= unix.ICRNL | unix.IXON
	raw.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return No
	}
	defer unix.Close(p.wake)
	defer p.watch()()
	if unix.IoctlSetTermios(p.fd(), unix.TCSETS, &raw) != nil {
		return No
	}
	defer func() {
		p.print("\x1b[?2004l")
		p.drop()
		_ = unix.IoctlSetTermios(p.fd(), unix.TCSETS, cooked) // of a terminal that is gone nobody is told
	}()
	p.print("\x1b[?2004h")
	return p.ask()
}

func (p *page) fd() int { return int(p.tty.Fd()) }

func (p *page) print(s string) { _, _ = p.tty.WriteString(s) } // if it is gone the next read says so

// drop forgets what was typed and not read.
func (p *page) drop() { _ = unix.IoctlSetInt(p.fd(), unix.TCFLSH, unix.TCIFLUSH) }

// watch wakes who waits for keys when the size changes or the question is over.
func (p *page) watch() (stop func()) {
	sizes, quit, ended := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(sizes, unix.SIGWINCH)
	go func() {
		defer close(ended)
		over := p.over.Done()
		for {
			select {
			case <-sizes:
			case <-over:
				over = nil
			case <-quit:
				return
			}
			_, _ = unix.Write(p.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		}
	}()
	return func() {
		signal.Stop(sizes)
		close(quit)
		<-ended
	}
}

// size is that of the terminal.
func (p *page) size() (columns, rows int) {
	ws, err := unix.IoctlGetWinsize(p.fd(), unix.TIOCGWINSZ)
	if err != nil || ws.Col < 2 || ws.Row < 2 {
		return 80, 24
	}
	return int(ws.Col), int(ws.Row)
}

// errSize and errOver say why there is no key.
var (
	errSize = errors.New("the size has changed")
	errOver = errors.New("the question is over")
	errWait = errors.New("nothing was typed")
)

// key waits for a key; a negative patience is endless.
func (p *page) key(patience time.Duration) (byte, error) {
	if len(p.typed) > 0 {
		return p.pop(), nil
	}
	wait := -1
	if patience >= 0 {
		wait = int(patience.Milliseconds())
	}
	fds := []unix.PollFd{{Fd: int32(p.fd()), Events: unix.POLLIN}, {Fd: int32(p.wake), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, wait)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, errWait
		case fds[1].Revents != 0:
			var count [8]byte
			_, _ = unix.Read(p.wake, count[:])
			if p.over.Err() != nil {
				return 0, errOver
			}
			p.stale = true
			return 0, errSize
		}
		buf := make([]byte, 4096)
		n, err = unix.Read(p.fd(), buf)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, unix.EIO
		}
		if p.typed = p.keys.take(buf[:n]); len(p.typed) > 0 {
			p.alone = len(p.typed) == 1
			return p.pop(), nil
		}
	}
}

func (p *page) pop() byte {
	c := p.typed[0]
	p.typed = p.typed[1:]
	return c
}

// settle drops what is typed until nothing is for a moment. Ctrl+C counts.
func (p *page) settle() (cancel bool, err error) {
	for {
		switch c, err := p.key(quiet); {
		case errors.Is(err, errWait):
			p.drop()
			return false, nil
		case err != nil && !errors.Is(err, errSize):
			return false, err
		case c == 0x03:
			return true, nil
		}
	}
}

// ask shows the call, as much of it as has room, and waits for the answer.
func (p *page) ask() Key {
	p.introduce()
	switch cancel, err := p.settle(); {
	case cancel:
		return p.say(Cancel)
	case err != nil:
		return p.lost(err)
	}
	p.prompt()
	for {
		c, err := p.key(-1)
		if errors.Is(err, errSize) {
			p.prompt()
			continue
		}
		if err != nil {
			return p.lost(err)
		}
		switch k := asked(c, p.alone); k {
		case Yes, No, Cancel:
			return p.say(k)
		case View:
			if k, err := p.view(); err != nil {
				return p.lost(err)
			} else if k == Cancel {
				return p.say(k)
			}
			p.prompt()
		}
	}
}

// lost is the answer where none can be had.
func (p *page) lost(err error) Key {
	if errors.Is(err, errOver) {
		return p.say(None)
	}
	return No
}

// say ends the line of the prompt with what was answered.
func (p *page) say(k Key) Key {
	p.print(map[Key]string{Yes: "yes", No: "no", Cancel: "cancel", None: "over"}[k] + "\n")
	return k
}

// head is what is asked, without the arguments.
func (p *page) head() string {
	return fmt.Sprintf("May %s run? (%s)", inert.Line(string(p.q.Name)), inert.Line(p.q.Effect))
}

// introduce prints the question above its prompt.
func (p *page) introduce() {
	p.stale = false
	columns, rows := p.size()
	lines, room := Lines(p.q.Arguments, columns-1), max(rows-5, 3)
	cut := len(lines) - room
	if cut > 0 {
		lines = lines[:room]
	}
	b := p.bold(p.head()) + "\n"
	for _, line := range lines {
		b += line + "\n"
	}
	if cut > 0 {
		b += p.bold(fmt.Sprintf("… %d more lines: v shows all", cut)) + "\n"
	}
	p.print(b + inert.Line(p.q.Digest) + "\n")
}

// prompt begins the last line anew, and with it the question where a new size may
// have cost some of it.
func (p *page) prompt() {
	p.print("\r\x1b[J")
	if p.stale {
		p.introduce()
	}
	p.print(p.bold("Run it once? y/n, v shows all, Ctrl+C cancels the run: "))
}

func (p *page) bold(s string) string {
	if !p.color {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

// view shows all lines, a screen at a time, on the other screen of the terminal.
func (p *page) view() (Key, error) {
	p.print("\x1b[?1049h")
	defer p.print("\x1b[?1049l")
	for at := 0; ; {
		columns, rows := p.size()
		lines, room := Lines(p.q.Arguments, columns-1), max(rows-2, 1)
		at = max(0, min(at, len(lines)-room))
		shown := lines[at:min(at+room, len(lines))]
		foot := fmt.Sprintf("lines %d-%d of %d: Space, b, q back", at+1, at+len(shown), len(lines))
		p.print("\x1b[H\x1b[2J" + p.bold(p.head()) + "\n" + strings.Join(shown, "\n") + "\n" + p.bold(foot))
		c, err := p.key(-1)
		if err != nil && !errors.Is(err, errSize) {
			return None, err
		}
		switch viewed(c) {
		case Down:
			at += room
		case Up:
			at -= room
		case Back:
			return Back, nil
		case Cancel:
			return Cancel, nil
		}
	}
}
