package providers

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/provider"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// SetKey keeps the key of a provider: one line of standard input, on a terminal
// asked for without showing it. words is what stood behind the provider's name
// on the command line: a key there would be in the shell's history and in the
// process list, so anything there is refused, and not repeated.
func SetKey(from *caller.Caller, name, slot string, words []string) error {
	if len(words) > 0 {
		return errdefs.New(errdefs.Invalid, "a key is never an argument, where others can read it").
			WithHint("give it on standard input: ctx provider key %s < FILE", name)
	}
	if err := ours(from); err != nil {
		return err
	}
	p, err := provider.Load(from.Layout, name)
	if err != nil {
		return err
	}
	if slot == "" {
		slot = p.Slot()
	}
	key, err := readKey(from, name)
	if err != nil {
		return err
	}
	if err := provider.SetKey(from.Layout, name, slot, key); err != nil {
		return err
	}
	switch {
	case p.Key == provider.KeyNone:
		from.Note("the key is kept, but the file of provider " + name + " says that it needs none")
	case slot != p.Slot():
		from.Note("the key is kept, but provider " + name + " uses the one in slot " + p.Slot())
	default:
		from.Note("the key is kept; try: ctx provider test " + name)
	}
	return nil
}

// readKey reads the key, without the end of its line.
func readKey(from *caller.Caller, name string) (provider.Secret, error) {
	var text []byte
	var err error
	if f, ok := from.In.(interface{ Fd() uintptr }); ok && from.Config.Stdin {
		text, err = ask(from, int(f.Fd()), "key of provider "+name+": ")
	} else {
		// The limit of a key is its package's to know; this bounds memory.
		text, err = io.ReadAll(io.LimitReader(from.In, libctx.MaxControlFile))
		if err != nil {
			err = errdefs.New(errdefs.IO, "standard input: %w", err)
		}
	}
	if err != nil {
		return provider.Secret{}, err
	}
	return provider.NewSecret(strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")), nil
}

// ask asks on the terminal for a line that is not shown: the echo is off before
// the question is there. After the line, and after Ctrl+C, the terminal is as it
// was: whoever reads the line changes nothing there.
func ask(from *caller.Caller, fd int, question string) (text []byte, err error) {
	interrupts, stop := from.Interrupts()
	defer stop() // once the terminal is as it was
	before, err := term.GetState(fd)
	if err == nil {
		err = hide(fd)
	}
	if err != nil {
		return nil, errdefs.New(errdefs.IO, "terminal: %w", err)
	}
	defer func() {
		_, _ = io.WriteString(from.Err, "\n")
		if e := term.Restore(fd, before); e != nil && err == nil {
			err = errdefs.New(errdefs.IO, "terminal: %w", e)
		}
	}()
	type line struct {
		text []byte
		err  error
	}
	got := make(chan line, 1)
	_, _ = io.WriteString(from.Err, question) // one who does not see it may still type
	go func() {                               // ends with the line, or with the program
		text, err := bufio.NewReaderSize(io.LimitReader(from.In, libctx.MaxControlFile), libctx.MaxControlFile).ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			err = nil // Ctrl+D ends a line too
		}
		got <- line{text, err}
	}()
	select {
	case l := <-got:
		if l.err != nil { // the terminal is gone
			return nil, errdefs.New(errdefs.IO, "terminal: %w", l.err)
		}
		return l.text, nil
	case <-interrupts:
		return nil, caller.ErrInterrupt
	}
}

func hide(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}
