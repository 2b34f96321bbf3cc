package output

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

// Pager is the program by which a person reads what is longer than the screen.
type Pager struct {
	Command string   // words, run without a shell; "" for none
	Env     []string // what its environment has beside that of this program
	Chosen  bool     // by the person, who is told if it can not be started
}

// paging is a pager at work.
type paging struct {
	Pager
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   io.Writer // of the printer, before
	err   io.Writer
	stops chan os.Signal
}

// Page sends what is printed until end through a pager, if a person at a terminal
// is to read it; docs/reference/cli.md says when. The pager starts with the first
// data, so that a command which has none needs none. end waits until the person
// has read.
func (p *Printer) Page(with Pager) (end func()) {
	if !p.OutTTY || p.JSON || with.Command == "" {
		return func() {}
	}
	p.pager = &paging{Pager: with}
	return p.endPage
}

// Paged reports whether a pager had the output. Then a reader that went away is
// a person who has read enough.
func (p *Printer) Paged() bool { return p.paged }

// startPage starts the pager that waits for data. Where it can not be started the
// data goes where it would have gone without one.
func (p *Printer) startPage() {
	g := p.pager
	words := strings.Fields(g.Command)
	g.cmd = exec.Command(words[0], words[1:]...)
	g.cmd.Env = append(g.cmd.Environ(), g.Env...)
	g.cmd.Stdout, g.cmd.Stderr = p.Out, p.Err
	in, err := g.cmd.StdinPipe()
	if err == nil {
		err = g.cmd.Start()
	}
	if err != nil {
		p.pager = nil
		if g.Chosen {
			p.Warn("pager " + words[0] + ": " + err.Error())
		}
		return
	}
	// Ctrl+C is for the pager, to which this program has to stay.
	if !signal.Ignored(os.Interrupt) {
		g.stops = make(chan os.Signal, 1)
		signal.Notify(g.stops, os.Interrupt)
	}
	g.in, g.out, g.err = in, p.Out, p.Err
	p.Out, p.paged = in, true
	if p.ErrTTY {
		p.Err = in // or it would be written across the pager's screen
	}
}

func (p *Printer) endPage() {
	g := p.pager
	p.pager = nil
	if g == nil || g.in == nil {
		return
	}
	p.Out, p.Err = g.out, g.err
	_ = g.in.Close()
	_ = g.cmd.Wait() // how it ends is between the person and the pager
	if g.stops != nil {
		signal.Stop(g.stops)
	}
}
