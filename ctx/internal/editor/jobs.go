package editor

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// watchJobs answers to job control from outside: a stop gives the terminal back
// first, and whoever continues finds the line as it was. The answer to Ctrl+Z,
// which is a key here, is suspend as well.
func (e *Editor) watchJobs() (stop func()) {
	signals := e.signals
	signal.Notify(signals, unix.SIGTSTP, unix.SIGCONT)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-quit:
				return
			case s := <-signals:
				e.job(s)
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(quit)
		<-ended
	}
}

func (e *Editor) job(s os.Signal) {
	e.mu.Lock()
	editing := e.editing
	e.mu.Unlock()
	switch {
	case s == unix.SIGTSTP && editing:
		e.post(e.suspend)
	case s == unix.SIGTSTP:
		e.stopSelf()
	case editing:
		e.post(e.again)
	}
}

// suspend stops the whole job, as the terminal does with Ctrl+Z where it is
// allowed to, and goes on when the job does.
func (e *Editor) suspend() {
	e.shell.History.SkipSave()
	e.outside(func() {
		signal.Ignore(unix.SIGTSTP)
		_ = unix.Kill(0, unix.SIGTSTP) // the others of the job
		e.stopSelf()
	})
}

// outside does something while the terminal is as it was before this editor.
func (e *Editor) outside(do func()) {
	e.shell.Display.AcceptLine()
	e.Restore()
	do()
	e.again()
}

// again takes the terminal, whoever had it meanwhile, and draws the line anew.
func (e *Editor) again() {
	_ = term.Restore(int(os.Stdin.Fd()), e.raw) // of a terminal that is gone the next read tells
	fmt.Fprint(os.Stdout, "\r\x1b[?2004h")
	e.shell.Display.PrintPrimaryPrompt()
}

// stopSelf stops this process, unless nobody could continue it. It returns when
// it was continued.
func (e *Editor) stopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signal.Reset(unix.SIGTSTP)
	// To this very thread: the kernel stops the process before the call returns.
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGTSTP)
	signal.Notify(e.signals, unix.SIGTSTP, unix.SIGCONT)
}
