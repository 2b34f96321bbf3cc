package editor

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// edit opens the person's editor on the line. What is saved there is the line
// then; if the editor fails, the line stays.
func (e *Editor) edit() {
	if e.opts.Editor == "" {
		e.shell.History.SkipSave()
		return
	}
	e.shell.History.Save()
	text := e.expand(string(*e.shell.Line()))
	var err error
	e.outside(func() { text, err = external(e.tty.file, e.opts.Editor, text) })
	if err != nil {
		if e.opts.Failed != nil {
			e.opts.Failed(err)
		}
		return
	}
	e.forget()
	e.set(text)
}

// external runs an editor on a text, in a file of this user alone, and returns
// what was saved, without the last LF.
func external(terminal *os.File, command, text string) (string, error) {
	words := strings.Fields(command)
	if len(words) == 0 {
		return "", errdefs.New(errdefs.Invalid, "no editor is named").WithHint("set EDITOR")
	}
	f, err := os.CreateTemp("", "ctx-line-*.md")
	if err != nil {
		return "", errdefs.New(errdefs.KindOf(err), "text for the editor: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := io.WriteString(f, text); err != nil {
		return "", errdefs.New(errdefs.KindOf(err), "text for the editor: %w", err)
	}
	cmd := exec.Command(words[0], append(words[1:], f.Name())...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", errdefs.New(errdefs.IO, "editor %s: %w", words[0], err)
	}
	// Many editors put another file in the place of the one they were given.
	saved, err := os.Open(f.Name())
	if err != nil {
		return "", errdefs.New(errdefs.KindOf(err), "text from the editor: %w", err)
	}
	defer saved.Close()
	b, err := io.ReadAll(io.LimitReader(saved, libctx.MaxPaste+1))
	switch {
	case err != nil:
		return "", errdefs.New(errdefs.IO, "text from the editor: %w", err)
	case len(b) > libctx.MaxPaste:
		return "", errdefs.New(errdefs.TooBig, "text from the editor: longer than %d bytes", libctx.MaxPaste)
	case !utf8.Valid(b):
		return "", errdefs.New(errdefs.Invalid, "text from the editor: is not UTF-8 text")
	}
	return clean(strings.TrimSuffix(string(b), "\n")), nil
}
