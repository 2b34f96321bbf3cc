package editor

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// watchJobs draws the line anew when a job that was stopped goes on: somebody
// else had the terminal meanwhile.
func (e *Editor) watchJobs() (stop func()) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-quit:
				return
			case <-continued:
			}
			e.mu.Lock()
			mine := e.editing && !e.away
			e.mu.Unlock()
			if mine {
				e.post(e.again)
			}
		}
	}()
	return func() {
		signal.Stop(continued)
		close(quit)
		<-ended
	}
}

// Lend gives the terminal, with the modes it had before this editor, to whoever do
// lets have it, and takes it back. It is called between a line and the next Next,
// by who set Options.Lends; what is written to the editor meanwhile goes to
// standard output at once.
func (e *Editor) Lend(do func(terminal *os.File)) {
	e.lent(func() { do(e.tty.file) })
	e.tty.set(reading)
}

// suspend stops the whole job, as the terminal does with Ctrl+Z where keys have
// their meaning. A job that nobody could continue is not stopped: the kernel
// sees to that. This process may be stopped a moment after it went on here;
// whoever continues it makes it draw everything anew.
func (e *Editor) suspend() {
	e.shell.History.SkipSave()
	if !e.opts.Suspend {
		return
	}
	e.outside(func() { _ = unix.Kill(0, unix.SIGTSTP) })
}

// outside does something while the terminal is as it was before this editor.
func (e *Editor) outside(do func()) {
	e.shell.Display.AcceptLine()
	e.lent(do)
	fmt.Fprint(os.Stdout, "\r")
	e.shell.Display.PrintPrimaryPrompt()
	e.tty.set(reading)
}

// lent does something while the terminal has the modes it had before this editor; who
// calls it reads on then.
func (e *Editor) lent(do func()) {
	e.tty.set(pausing)
	e.Restore()
	e.mu.Lock()
	e.away = true
	e.mu.Unlock()
	do()
	e.mu.Lock()
	e.away = false
	e.mu.Unlock()
	_ = e.tty.keys() // of a terminal that is gone the next read tells
}

// again takes the terminal back and draws the line where the cursor is.
func (e *Editor) again() {
	_ = e.tty.keys() // as above
	e.above(nil)
}
