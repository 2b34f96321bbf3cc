// Package output is how ctx talks: tables and records on one stream, everything
// that is about the work on the other, nothing of either able to harm a
// terminal.
package output

import (
	"errors"
	"io"
	"strings"
	"syscall"

	"cortexfs.org/libctx/inert"

	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// Printer writes what a command has to say. Out takes data, Err everything
// else. Write errors of Out are kept (Failed), so that commands need not look
// after each line.
type Printer struct {
	Out, Err       io.Writer
	OutTTY, ErrTTY bool
	JSON           bool // one object a line instead of tables
	Quiet          bool // no notes
	Verbose        bool // more notes
	Color          bool

	failed error
	pager  *paging // nil: none
	paged  bool
}

// Failed is the first error of writing data, nil if there was none. It is kind
// errdefs.IO or errdefs.NoSpace; Closed tells the reader that went away.
func (p *Printer) Failed() error { return p.failed }

// Closed reports whether err means that the reader of the output went away.
func Closed(err error) bool { return errors.Is(err, syscall.EPIPE) }

// Write writes data as it is.
func (p *Printer) Write(b []byte) (int, error) {
	if p.failed != nil {
		return 0, p.failed
	}
	if p.pager != nil && p.pager.in == nil {
		p.startPage()
	}
	n, err := p.Out.Write(b)
	if err != nil {
		p.failed = errdefs.New(errdefs.KindOf(err), "standard output: %w", err)
		return n, p.failed
	}
	return n, nil
}

// Row is one entry of a listing: its cells for people and the object that
// --json prints.
type Row struct {
	Cells  []string
	Object any
}

// Table prints a listing.
func (p *Printer) Table(head []string, rows []Row) error {
	if p.JSON {
		for _, r := range rows {
			if err := p.Object(r.Object); err != nil {
				return err
			}
		}
		return nil
	}
	cells := make([][]string, len(rows))
	for i, r := range rows {
		cells[i] = r.Cells
	}
	if p.OutTTY && len(rows) == 0 {
		return nil
	}
	_, err := io.WriteString(p, render.Table(head, cells, p.OutTTY, p.bold))
	return err
}

// Record prints one thing: its names and values, or with --json the object.
func (p *Printer) Record(object any, pairs ...string) error {
	if p.JSON {
		return p.Object(object)
	}
	var rows [][]string
	for i := 0; i+1 < len(pairs); i += 2 {
		rows = append(rows, []string{pairs[i], pairs[i+1]})
	}
	_, err := io.WriteString(p, render.Table(nil, rows, p.OutTTY, nil))
	return err
}

// Object prints one object as a line of JSON.
func (p *Printer) Object(v any) error {
	line, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	return p.Line(line)
}

// Line prints one line of JSON, LF included: exactly, except that on a terminal
// characters that could harm it become escapes, which changes no value.
func (p *Printer) Line(line []byte) error {
	if p.OutTTY {
		line = inert.JSON(line)
	}
	_, err := p.Write(line)
	return err
}

// Text prints text from outside, inert.
func (p *Printer) Text(s string) error {
	_, err := io.WriteString(p, inert.Text(s))
	return err
}

// Exact prints text from outside: inert on a terminal, byte for byte elsewhere.
// On a terminal a line is ended.
func (p *Printer) Exact(s string) error {
	if !p.OutTTY {
		_, err := io.WriteString(p, s)
		return err
	}
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return p.Text(s)
}

// Note says something about the work on one line, unless --quiet.
func (p *Printer) Note(line string) {
	if !p.Quiet {
		p.say(line)
	}
}

// Detail is a note for --verbose.
func (p *Printer) Detail(line string) {
	if p.Verbose {
		p.say(line)
	}
}

// Warn says something that must not be missed, on one line.
func (p *Printer) Warn(line string) { p.say(line) }

func (p *Printer) say(line string) {
	// Nobody is left to tell if this fails.
	_, _ = io.WriteString(p.Err, inert.Line(line)+"\n")
}

// Error reports why the program fails: one line, then the hint if there is one.
func (p *Printer) Error(what string, err error) {
	text := err.Error()
	if what != "" {
		text = what + ": " + text
	}
	p.say("ctx: " + text)
	if hint := errdefs.HintOf(err); hint != "" {
		p.say("hint: " + hint)
	}
}

func (p *Printer) bold(s string) string {
	if !p.Color {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}
