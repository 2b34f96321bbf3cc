// Package editor is where a person writes lines: a line editor on a terminal that
// output never disturbs and that can lend the terminal to other programs, and a
// reader of plain lines for pipes and terminals that can do nothing. It alone
// knows the library behind the editor (docs/reference/chat.md,
// docs/reference/toolshell.md).
package editor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"cortexfs.org/libctx"
	"github.com/reeflective/readline"
	"golang.org/x/term"
)

// ErrInterrupt is Ctrl+C.
var ErrInterrupt = errors.New("interrupted")

// errClosed ends an input that Close waits for.
var errClosed = errors.New("closed")

// Line is what a person entered.
type Line struct {
	Text string
	Alt  bool  // with Alt+Enter
	Err  error // instead of a line: io.EOF, ErrInterrupt, or why the input can not be read
}

// Options are what an Editor needs to know.
type Options struct {
	Prompt  string // without colour
	Color   bool
	History string      // the file of the history; "": none is kept
	Editor  string      // the command line of the person's editor; "": there is none
	Dir     string      // where file names are completed
	Failed  func(error) // told when the person's editor failed

	// Words are those that the word behind before, the line up to it, can be; with
	// files it can be the name of a file too, if none of them fits. nil: files alone.
	Words func(before, word string) (words []string, files bool)
	// Special are characters that mean something in a line: names of files with one
	// of them are not completed.
	Special string

	// Whole reports whether a line is one when Enter is pressed; else it goes on in
	// the next row. nil: it goes on behind a backslash, which is taken out then.
	Whole func(text string) bool
	// Keep lets an interrupted line come back with the next prompt, and be in the
	// history.
	Keep bool
	// Suspend lets Ctrl+Z stop the job that this process is in.
	Suspend bool
	// Lends is set for who uses Lend: what is typed behind the end of a line stays in
	// the terminal, for whoever has it then.
	Lends bool
}

// Editor owns the terminal, standard input and output, from New to Close. What
// is written to it appears above the line that is being written. All methods may
// be called from any goroutine.
type Editor struct {
	opts    Options
	shell   *readline.Shell
	history *history
	tty     *tty
	lines   chan Line
	next    chan struct{}
	stop    chan struct{}
	done    chan struct{} // the reading goroutine has ended
	stops   func()        // ends the watching of job control

	// Of the reading goroutine alone.
	alt bool

	mu      sync.Mutex
	prompt  string
	pastes  []string // of the line, behind their marks
	room    sync.Cond
	away    bool     // somebody else has the terminal
	editing bool     // the reading goroutine has the terminal
	pending []byte   // output for above the line
	tasks   []func() // for the reading goroutine, while it edits
}

// New makes an editor on standard input, output and error, which must be one
// terminal. The caller closes it.
func New(o Options) (*Editor, error) {
	e := &Editor{
		opts: o, shell: readline.NewShell(), history: openHistory(o.History),
		lines: make(chan Line), next: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	e.history.long = e.expand
	e.room.L = &e.mu
	e.Prompt(o.Prompt)
	e.configure()
	var err error
	if e.tty, err = takeTTY(func(text string) string { return e.fold(clean(text)) }, o.Lends); err != nil {
		return nil, err
	}
	e.stops = e.watchJobs()
	go e.read()
	return e, nil
}

// Lines delivers what is entered, one line for each Next.
func (e *Editor) Lines() <-chan Line { return e.lines }

// Next asks for a line: the prompt appears.
func (e *Editor) Next() {
	select {
	case e.next <- struct{}{}:
	default: // it has been asked for
	}
}

// Prompt changes the prompt, from the next line on.
func (e *Editor) Prompt(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opts.Prompt = text
	if e.prompt = text; e.opts.Color {
		e.prompt = "\x1b[1m" + text + "\x1b[0m"
	}
}

// Away reports whether the person is in another program: its keys are not for
// this one, and neither is Ctrl+C.
func (e *Editor) Away() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.away
}

// Columns is how wide the terminal is.
func (e *Editor) Columns() int {
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || columns < 1 {
		return 80
	}
	return columns
}

// Write prints above the line that is being written. It waits when much is
// waiting already, as while the person is in another editor.
func (e *Editor) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.editing && len(e.pending) > libctx.MaxShelfBytes {
		e.room.Wait()
	}
	if !e.editing {
		return os.Stdout.Write(p)
	}
	e.pending = append(e.pending, p...)
	e.shell.Keys.RequestRefresh()
	return len(p), nil
}

// Status shows one line below the input, "" none.
func (e *Editor) Status(text string) {
	switch {
	case text == "":
		e.shell.Hint.ClearTransient()
	case e.opts.Color:
		e.shell.Hint.SetTransient("\x1b[2m" + text + "\x1b[0m")
	default:
		e.shell.Hint.SetTransient(text)
	}
}

// Prefill puts text into the line, in the place of what is there. With edit the
// person's editor opens on it.
func (e *Editor) Prefill(text string, edit bool) {
	e.post(func() {
		e.set(text)
		if edit {
			e.edit()
		}
	})
}

// Close gives the terminal back as it was, and waits a moment for who reads from
// it.
func (e *Editor) Close() {
	close(e.stop)
	e.post(func() { e.accept(errClosed) })
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	select {
	case <-e.done:
	case <-patience.C: // the terminal does not answer any more
	}
	e.stops()
	e.Restore()
	e.tty.end()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.editing = false
	e.room.Broadcast()
}

// Restore gives the terminal its modes back, whatever state this editor is in.
func (e *Editor) Restore() {
	e.tty.restore()
}

// read is the goroutine that owns the terminal while a line is being written.
func (e *Editor) read() {
	defer close(e.done)
	defer e.Restore() // also when the library fails
	for {
		select {
		case <-e.next:
		case <-e.stop:
			return
		}
		e.mu.Lock()
		e.editing = true
		e.mu.Unlock()
		e.alt = false
		text, err := e.shell.Readline()
		e.mu.Lock()
		e.editing = false
		if len(e.pending) > 0 {
			_, _ = os.Stdout.Write(e.pending) // nobody could be told
		}
		e.pending = nil
		e.room.Broadcast()
		e.mu.Unlock()
		if errors.Is(err, errClosed) {
			return
		}
		select {
		case e.lines <- e.line(text, err):
		case <-e.stop:
			return
		}
	}
}

// line is what was entered.
func (e *Editor) line(text string, err error) Line {
	switch {
	case errors.Is(err, readline.ErrInterrupt):
		if text != "" && e.opts.Keep {
			_, _ = e.history.Write(text) // the history says nothing of a full disk
			whole := e.expand(text)
			e.forget()
			e.post(func() { e.set(whole) })
		}
		return Line{Err: ErrInterrupt}
	case err != nil:
		return Line{Err: io.EOF}
	}
	whole := e.expand(text)
	e.forget()
	if e.opts.Whole == nil {
		whole = strings.ReplaceAll(whole, "\\\n", "\n")
	}
	return Line{Text: whole, Alt: e.alt}
}

// post gives the reading goroutine something to do, at once if it edits.
func (e *Editor) post(task func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tasks = append(e.tasks, task)
	e.shell.Keys.RequestRefresh()
}

// due reports whether there is something for work to do.
func (e *Editor) due() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.pending) > 0 || len(e.tasks) > 0
}

// work does what came from outside, between two keys.
func (e *Editor) work() {
	e.shell.History.SkipSave()
	e.mu.Lock()
	output, tasks := e.pending, e.tasks
	e.pending, e.tasks = nil, nil
	e.room.Broadcast()
	e.mu.Unlock()
	if len(output) > 0 {
		e.above(output)
	}
	for _, task := range tasks {
		task()
	}
}

// above prints output in the place of the line, and the line below it, as one
// picture where the terminal knows of such.
func (e *Editor) above(output []byte) {
	fmt.Fprint(os.Stdout, "\x1b[?2026h")
	e.shell.Display.CursorToLineStart()
	end := ""
	if len(output) > 0 && output[len(output)-1] != '\n' {
		end = "\n"
	}
	fmt.Fprintf(os.Stdout, "\r\x1b[J%s%s", output, end)
	e.shell.Display.PrintPrimaryPrompt()
	e.shell.Display.Refresh()
	fmt.Fprint(os.Stdout, "\x1b[?2026l")
}

// accept ends the line with an error.
func (e *Editor) accept(err error) {
	e.shell.Display.AcceptLine()
	e.shell.History.Accept(false, false, err)
}

// set replaces the line.
func (e *Editor) set(text string) {
	e.shell.Line().Set([]rune(e.fold(text))...)
	e.shell.Cursor().Set(e.shell.Line().Len())
}
