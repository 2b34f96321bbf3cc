package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/editor"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/toolshell/command"
	"cortexfs.org/tsh/internal/job"
	"golang.org/x/sys/unix"
)

// terminal is a person at a terminal: lines are edited, and tools are jobs. All of
// it belongs to one goroutine; the editor asks for completions from another, which
// change nothing.
type terminal struct {
	*shell
	editor      *editor.Editor
	jobs        *job.Table
	ends        chan os.Signal
	keys        chan os.Signal
	over        bool
	interrupted bool     // the last row was
	warned      bool     // exit was asked for while jobs are stopped
	notices     []string // about jobs, for the next moment that has room
}

// terminal carries out what is typed until exit, or the end of the terminal.
func (sh *shell) terminal() error {
	if sh.loaded == nil {
		sh.loaded = &toolshell.Memory{}
	}
	t := &terminal{shell: sh, jobs: job.NewTable(), ends: make(chan os.Signal, 1), keys: make(chan os.Signal, 8)}
	defer t.jobs.Close()
	// These are for jobs. They are caught, not ignored: what is ignored here would be
	// in everything that is started.
	signal.Notify(t.keys, unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP)
	defer signal.Stop(t.keys)
	signal.Notify(t.ends, unix.SIGHUP, unix.SIGTERM)
	defer signal.Stop(t.ends)
	defer job.Take(0)()
	var err error
	t.editor, err = editor.New(editor.Options{
		Prompt: t.prompt(), Color: sh.conf.Color, History: sh.conf.History,
		Dir: ".", Words: t.words, Special: `'"\#`,
		Whole: func(text string) bool { return !command.Open(text) },
		Lends: true,
	})
	if err != nil {
		return errdefs.New(errdefs.IO, "terminal: %w", err)
	}
	defer t.editor.Close()
	defer t.jobs.HangUp()
	sh.std.Out = t.editor
	if sh.std.ErrTerminal {
		sh.std.Err = t.editor
	}
	for !t.over {
		t.tell()
		t.editor.Prompt(t.prompt())
		t.editor.Next()
		t.typed(t.line())
	}
	return nil
}

// prompt names the agent, and the last exit code if it is not 0.
func (t *terminal) prompt() string {
	text := "tsh"
	if t.agent != nil {
		text = string(t.agent.Name) + " tsh"
	}
	if t.exit != 0 {
		text += fmt.Sprintf(" %d", t.exit)
	}
	return text + "> "
}

// line waits for the next line; meanwhile jobs end.
func (t *terminal) line() editor.Line {
	for {
		select {
		case l := <-t.editor.Lines():
			return l
		case j := <-t.jobs.Changes():
			t.jobs.Collect(j)
			t.note(j)
			t.tell()
		case s := <-t.ends:
			return editor.Line{Err: job.Ending{Signal: s}}
		}
	}
}

// typed carries out what was entered.
func (t *terminal) typed(l editor.Line) {
	var ending job.Ending
	switch {
	case errors.As(l.Err, &ending):
		t.end(ending)
		return
	case errors.Is(l.Err, editor.ErrInterrupt):
		return
	case errors.Is(l.Err, io.EOF):
		if _, err := unix.IoctlGetTermios(1, unix.TCGETS); err != nil {
			t.end(job.Ending{Signal: unix.SIGHUP})
			return
		}
		fmt.Fprintln(t.std.Out, "exit")
		t.leave()
		return
	case len(l.Text) > libctx.MaxShellLine:
		t.wrong(errdefs.New(errdefs.TooBig, "a line is longer than %d bytes", libctx.MaxShellLine))
		return
	}
	rows, err := command.Lines(l.Text)
	if err != nil {
		t.wrong(err)
		return
	}
	for _, row := range rows {
		before := t.warned
		t.interrupted = false
		if t.row(row); t.over {
			return
		}
		if before {
			t.warned = false
		}
		if t.interrupted {
			return // the rows that follow are interrupted with the one that was
		}
	}
}

// wrong reports a line that means nothing.
func (t *terminal) wrong(err error) {
	t.complain(err)
	t.exit = errdefs.Invalid.Exit()
}

// end ends the shell with the signal that ends it.
func (t *terminal) end(e job.Ending) {
	t.over = true
	if s, ok := e.Signal.(syscall.Signal); ok {
		t.exit = 128 + int(s)
	}
}

// leave ends the shell; with stopped jobs only if it is asked for twice.
func (t *terminal) leave() {
	for _, j := range t.jobs.Jobs() {
		if j.State == job.Stopped && !t.warned {
			t.complain(errdefs.New(errdefs.Busy, "there are stopped jobs").WithHint("jobs lists them; exit again leaves them"))
			t.warned = true
			return
		}
	}
	t.over = true
}

// row carries out one command.
func (t *terminal) row(l command.Line) {
	if l.Shell != "" {
		t.complain(errdefs.New(errdefs.Invalid, "%.40q is no operator here: there are no pipes, redirections or lists", l.Shell).
			WithHint("a shell as a tool has them: bash -c '…'"))
	}
	b, ours := command.FindTerminal(l.Words[0])
	switch common := command.Is(l.Words[0]); {
	case (ours || common) && l.Background:
		t.wrong(errdefs.New(errdefs.Invalid, "%s: only tools run in the background", l.Words[0]))
	case ours:
		t.control(b, l.Words[1:])
	case common:
		if t.explain(l.Words) {
			t.leave()
		}
	case t.agent == nil:
		t.run(l.Words, nil)
	default:
		t.tool(l)
	}
}

func (t *terminal) explain(words []string) (ended bool) {
	return t.builtin(words, toolshell.Shell{Topics: toolshell.TerminalTopics(), Terminal: true})
}

// tool runs a tool as a job.
func (t *terminal) tool(l command.Line) {
	p, err := t.admit(l.Words)
	if err != nil {
		t.refuse(err)
		return
	}
	name := nameOf(l)
	var j *job.Job
	t.editor.Lend(func(f *os.File) {
		if l.Background {
			j, err = t.jobs.Background(p, name, [3]*os.File{f, os.Stdout, os.Stderr})
		} else {
			j, err = t.jobs.Run(t.on(f), p, name, t.note)
		}
	})
	if l.Background && err == nil {
		t.exit = 0
		fmt.Fprintf(t.std.Out, "[%d] %s\n", j.N, name)
		return
	}
	t.after(j, err)
}

// on is the terminal as jobs have it.
func (t *terminal) on(f *os.File) job.Terminal {
	return job.Terminal{File: f, Out: [2]*os.File{os.Stdout, os.Stderr}, Ends: t.ends, Keys: t.keys}
}

// after says how a job left the foreground.
func (t *terminal) after(j *job.Job, err error) {
	var ending job.Ending
	switch {
	case errors.As(err, &ending):
		t.end(ending)
		return
	case err != nil:
		t.refuse(err)
		return
	}
	switch {
	case j.By == unix.SIGINT, j.By == unix.SIGQUIT, j.By == unix.SIGTSTP: // the key was shown
		fmt.Fprintln(t.std.Out)
	default:
		t.fresh()
	}
	t.exit = j.Code
	if j.State == job.Stopped {
		t.exit = 128 + int(j.By)
	}
	t.interrupted = t.exit == 128+int(unix.SIGINT)
	if j.State == job.Stopped || j.By != 0 && j.By != unix.SIGINT && j.By != unix.SIGPIPE {
		t.note(j)
	}
}

// fresh begins a row, if the last program left one unfinished, and marks that. What
// it writes fills the row exactly, or goes on in the next.
func (t *terminal) fresh() {
	fmt.Fprintf(t.std.Out, "\x1b[7m%%\x1b[m%s\r\x1b[K", strings.Repeat(" ", t.editor.Columns()-1))
}
