// Package screen is a terminal for tests: a program runs on a pseudo-terminal,
// what it writes is drawn by a terminal emulator that nothing of the suite made,
// and tests look at what a person would see.
package screen

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"cortexfs.org/tests/internal/world"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Screen is a terminal with a program on it.
type Screen struct {
	t    testing.TB
	cmd  *exec.Cmd
	tty  *os.File // the master
	line *os.File // the slave, kept open so that its modes can be asked after the end
	ends chan struct{}

	mu      sync.Mutex
	changed sync.Cond
	em      *vt.Emulator
	over    bool // nothing more will be drawn
	raw     strings.Builder
	modes   modes
	likes   []*Screen // that wait to look like this one
	heard   int       // how often one that this waits to look like was drawn
}

// Start runs a program in a new session on a new terminal of that size. At the
// end of the test it is killed if it is still there.
func Start(t testing.TB, cmd *exec.Cmd, columns, rows int) *Screen {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &unix.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	s := &Screen{t: t, cmd: cmd, tty: master, line: slave, em: vt.NewEmulator(columns, rows), ends: make(chan struct{})}
	s.changed.L = &s.mu
	s.modes.follow(s.em)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.draw()
	go s.reply()
	go func() {
		_ = cmd.Wait() // Exit looks at the state
		close(s.ends)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.ends
		s.line.Close()
		s.tty.Close()
		s.em.Close()
	})
	return s
}

// draw takes what the program writes to the emulator.
func (s *Screen) draw() {
	buf := make([]byte, 32<<10)
	for {
		n, err := s.tty.Read(buf)
		s.mu.Lock()
		_, _ = s.em.Write(buf[:n])
		s.raw.Write(buf[:n])
		s.over = err != nil
		s.changed.Broadcast()
		s.mu.Unlock()
		s.hear()
		if err != nil {
			return
		}
	}
}

// reply takes what the emulator answers to the program, as to where its cursor
// is.
func (s *Screen) reply() {
	buf := make([]byte, 256)
	for {
		n, err := s.em.Read(buf)
		if err != nil {
			return
		}
		_, _ = s.tty.Write(buf[:n])
	}
}

// Type types.
func (s *Screen) Type(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// Paste pastes as a terminal does that was asked to say so.
func (s *Screen) Paste(text string) {
	s.t.Helper()
	s.Type("\x1b[200~" + strings.ReplaceAll(text, "\n", "\r") + "\x1b[201~")
}

// Resize changes the size of the terminal.
func (s *Screen) Resize(columns, rows int) {
	s.t.Helper()
	s.mu.Lock()
	s.em.Resize(columns, rows)
	s.mu.Unlock()
	if err := pty.Setsize(s.tty, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)}); err != nil {
		s.t.Fatal(err)
	}
}

// Text is what was ever drawn and is still to be seen by scrolling back, without
// blanks at the ends of lines and empty lines at the end.
func (s *Screen) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text()
}

func (s *Screen) text() string {
	var lines []string
	for y := range s.em.ScrollbackLen() {
		lines = append(lines, s.row(func(x int) string {
			if c := s.em.ScrollbackCellAt(x, y); c != nil {
				return c.Content
			}
			return ""
		}))
	}
	for y := range s.em.Height() {
		lines = append(lines, s.row(func(x int) string {
			if c := s.em.CellAt(x, y); c != nil {
				return c.Content
			}
			return ""
		}))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// row is one line of cells; behind a wide character stands an empty one.
func (s *Screen) row(cell func(x int) string) string {
	var b strings.Builder
	for x := range s.em.Width() {
		b.WriteString(cell(x))
	}
	return strings.TrimRight(b.String(), " ")
}

// Cursor is the line and column of the cursor on the visible screen.
func (s *Screen) Cursor() (row, column int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.em.CursorPosition()
	return p.Y, p.X
}

// Raw is every byte the program wrote.
func (s *Screen) Raw() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String()
}

// Await waits until what is to be seen is as wanted; what says it in words.
func (s *Screen) Await(what string, ready func(text string) bool) {
	s.t.Helper()
	s.await(what, func() bool { return ready(s.text()) })
}

// Wrote waits until the program has written these bytes.
func (s *Screen) Wrote(bytes string) {
	s.t.Helper()
	s.await(fmt.Sprintf("%q", bytes), func() bool { return strings.Contains(s.raw.String(), bytes) })
}

// half reports whether the program is in the middle of a picture that it wants to
// be seen as a whole.
func (s *Screen) half() bool {
	all := s.raw.String()
	return strings.LastIndex(all, "\x1b[?2026h") > strings.LastIndex(all, "\x1b[?2026l")
}

// WroteAfter is Wrote for what comes behind the first n bytes.
func (s *Screen) WroteAfter(n int, bytes string) {
	s.t.Helper()
	s.await(fmt.Sprintf("%q", bytes), func() bool { return strings.Contains(s.raw.String()[n:], bytes) })
}

func (s *Screen) await(what string, ready func() bool) {
	s.t.Helper()
	s.awaitOr(func() string { return what }, ready)
}

// awaitOr waits until ready, called with mu held, returns true; what says what
// did not come.
func (s *Screen) awaitOr(what func() string, ready func() bool) {
	s.t.Helper()
	late := false
	timer := time.AfterFunc(world.Patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		late = true
		s.changed.Broadcast()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.half() || !ready() {
		if late || s.over {
			s.t.Fatalf("%s: did not come; the screen is\n%s", what(), s.text())
		}
		s.changed.Wait()
	}
}

// See waits until a text is to be seen.
func (s *Screen) See(text string) {
	s.t.Helper()
	s.Await(text, func(all string) bool { return strings.Contains(all, text) })
}

// Last waits until the last line is this one.
func (s *Screen) Last(line string) {
	s.t.Helper()
	s.Await("as the last line: "+line, func(all string) bool { return all[strings.LastIndexByte(all, '\n')+1:] == line })
}

// Exit waits until the program ends, and returns its exit code.
func (s *Screen) Exit() int {
	s.t.Helper()
	select {
	case <-s.ends:
	case <-time.After(world.Patience):
		s.t.Fatalf("the program does not end; the screen is\n%s", s.Text())
	}
	return s.cmd.ProcessState.ExitCode()
}

// PID is the program's process.
func (s *Screen) PID() int { return s.cmd.Process.Pid }

// Signal sends a signal to the program.
func (s *Screen) Signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Cooked reports whether the terminal edits lines itself, as it did before the
// program.
func (s *Screen) Cooked() bool {
	s.t.Helper()
	modes, err := unix.IoctlGetTermios(int(s.line.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return modes.Lflag&unix.ICANON != 0 && modes.Lflag&unix.ECHO != 0 && modes.Lflag&unix.ISIG != 0
}
