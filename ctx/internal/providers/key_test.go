package providers

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/provider"
	"golang.org/x/sys/unix"
)

// terminal is a new one: what a person has, and what the program has.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	person = os.NewFile(uintptr(fd), "ptmx")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close(); program.Close() })
	return person, program
}

func echoes(t *testing.T, f *os.File) bool {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return s.Lflag&unix.ECHO != 0
}

// asked is a world whose command is just asking for the key of p.
func asked(t *testing.T, interrupts <-chan os.Signal) (w *world, person, program *os.File, over <-chan error) {
	t.Helper()
	w = newWorld(t)
	o := local("m")
	o.NoKey = false
	w.ok(Add(&w.Caller, "p", o))
	person, program = terminal(t)
	question, err := io.Pipe()
	w.In, w.Config.Stdin = program, true
	w.Printer.Err = err
	w.Interrupts = func() (<-chan os.Signal, func()) { return interrupts, func() {} }
	done := make(chan error, 1)
	go func() {
		done <- SetKey(&w.Caller, "p", "", nil)
		err.Close()
	}()
	lines := bufio.NewReader(question)
	text, readErr := lines.ReadString(' ') // of "key of provider p: "
	for readErr == nil && !strings.HasSuffix(text, ": ") {
		var more string
		more, readErr = lines.ReadString(' ')
		text += more
	}
	if readErr != nil || text != "key of provider p: " {
		t.Fatalf("asked %q, %v", text, readErr)
	}
	go io.Copy(io.Discard, lines)
	return w, person, program, done
}

func TestKeyOnATerminal(t *testing.T) {
	w, person, program, over := asked(t, nil)
	if echoes(t, program) {
		t.Error("the terminal shows what is typed")
	}
	if _, err := person.WriteString(secret + "\n"); err != nil {
		t.Fatal(err)
	}
	w.ok(<-over)
	if !echoes(t, program) {
		t.Error("the terminal is left as it was while asking")
	}
	key, err := provider.Key(w.Layout, "p", "default")
	if err != nil || key.Reveal() != secret {
		t.Errorf("%v, %v", key, err)
	}
	program.Close()
	shown := make([]byte, 4096)
	if n, _ := person.Read(shown); strings.Contains(string(shown[:n]), secret[:4]) {
		t.Errorf("shown: %q", shown[:n])
	}
}

func TestInterruptWhileAsking(t *testing.T) {
	interrupts := make(chan os.Signal, 1)
	w, person, program, over := asked(t, interrupts)
	interrupts <- os.Interrupt
	if err := <-over; !errors.Is(err, caller.ErrInterrupt) {
		t.Error(err)
	}
	if !echoes(t, program) {
		t.Error("the terminal is left as it was while asking")
	}
	if _, err := provider.Key(w.Layout, "p", "default"); !errdefs.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
	if _, err := person.WriteString("\n"); err != nil { // so that the reader ends
		t.Fatal(err)
	}
}
