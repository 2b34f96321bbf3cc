package chat

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/client"
	"cortexfs.org/ctx/internal/markdown"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/editor"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
)

// Options are the flags of `ctx agent chat`.
type Options struct {
	Session   string // "": the agent's current one
	Workspace string // an absolute host directory

	// Signals delivers the signals that end a program, for as long as it lives.
	Signals func() <-chan os.Signal
}

// input is where lines come from.
type input interface {
	Lines() <-chan editor.Line
	Next()
	Prompt(string)
	Close()
}

// chat is one conversation. All of it belongs to the goroutine of Run, to which
// the others send.
type chat struct {
	*caller.Caller
	agent   libctx.Agent
	session libctx.Session
	options Options

	input  input
	editor *editor.Editor // nil: lines are plain
	asked  bool           // a line is being waited for

	state  State
	script transcript
	run    *follow   // nil: none is followed
	since  time.Time // when the message was sent
	failed error     // of the last run

	heard  chan heard
	said   chan said
	saying int      // says under way
	says   []saying // that wait for one another
	ctx    context.Context

	question *open // nil: none is open
	decided  chan decided
}

// said is the outcome of saying something into a run.
type said struct {
	saying
	err error
}

type saying struct{ text, op string }

// Run is a chat until the person leaves. Who talks line by line from a pipe
// learns how the last run ended: its error is that of the command.
func Run(ctx context.Context, from *caller.Caller, a libctx.Agent, o Options) error {
	name, err := from.Session(a, o.Session)
	if err != nil {
		return err
	}
	if _, err := from.Place(a); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &chat{
		Caller: from, agent: a, session: name, options: o, ctx: ctx,
		heard: make(chan heard), said: make(chan said), decided: make(chan decided),
	}
	if v, err := view.Load(from.Layout, a); err == nil {
		c.script.model = string(v.Model)
	}
	signals := c.options.Signals() // before the terminal has other modes, which a signal gives back
	interrupts, _ := c.Interrupts()
	if err := c.open(); err != nil {
		return err
	}
	defer c.input.Close()
	defer c.shut()
	if o.Session != "" {
		if err := c.current(); err != nil {
			return err
		}
	}
	return c.loop(signals, interrupts)
}

// open chooses the input. On a terminal that can do nothing, and with one that
// is not all of ours, lines are plain.
func (c *chat) open() error {
	t := c.Config
	if !t.Stdin || !t.Stdout || !t.Stderr || t.Dumb {
		prompt := ""
		if t.Stdin && t.Stdout {
			prompt = c.prompt()
		}
		c.state.Script = !t.Stdin
		c.input = editor.NewPlain(c.In, c.Out, prompt)
		return nil
	}
	ed, err := editor.New(editor.Options{
		Prompt: c.prompt(), Color: c.Color, History: c.Config.History(c.agent), Editor: t.Editor, Dir: t.Cwd,
		Words: words, Keep: true, Suspend: true,
		Failed: func(err error) { c.Warn(err.Error()) },
	})
	if err != nil {
		return errdefs.New(errdefs.IO, "terminal: %w", err)
	}
	c.input, c.editor = ed, ed
	own := *c.Caller
	own.Printer = &output.Printer{
		Out: ed, Err: ed, OutTTY: true, ErrTTY: true, JSON: c.JSON, Quiet: c.Quiet, Verbose: c.Verbose, Color: c.Color,
	}
	c.Caller = &own
	return nil
}

func (c *chat) prompt() string { return fmt.Sprintf("%s/%s ❯ ", c.agent, c.session) }

// loop is everything that happens, one after another.
func (c *chat) loop(signals, interrupts <-chan os.Signal) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var cancelled bool
	c.ask()
	for c.state.Phase != Left {
		var actions []Action
		select {
		case l := <-c.input.Lines():
			c.asked = false
			actions = c.line(l)
		case h := <-c.heard:
			actions = c.hear(h)
		case s := <-c.said:
			actions = c.answer(s)
		case d := <-c.decided:
			actions = c.decide(d)
		case <-interrupts:
			if c.editor == nil || !c.editor.Away() {
				actions = c.next(Interrupt{})
			}
		case s := <-signals:
			return errdefs.New(errdefs.Cancelled, "%v", s)
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		case <-tick.C:
			c.progress()
		}
		for len(actions) > 0 {
			a := actions[0]
			actions = append(actions[1:], c.do(a)...)
			if l, ok := a.(Leave); ok {
				cancelled = l.Cancelled
			}
		}
		if err := c.Failed(); err != nil {
			return err
		}
		c.ask()
	}
	switch {
	case cancelled:
		return caller.ErrInterrupt
	case c.state.Script:
		return c.failed
	}
	return nil
}

// ask asks for the next line: always with the editor, else when nothing runs.
func (c *chat) ask() {
	if !c.asked && c.state.Phase != Left && (c.editor != nil || !c.state.Active()) {
		c.asked = true
		c.input.Next()
	}
}

func (c *chat) next(e Event) []Action {
	var actions []Action
	c.state, actions = c.state.Next(e)
	return actions
}

// line is what a line means.
func (c *chat) line(l editor.Line) []Action {
	switch {
	case l.Err == editor.ErrInterrupt:
		return c.next(Interrupt{})
	case l.Err == io.EOF:
		return c.next(Hangup{})
	case l.Err != nil:
		c.failed = l.Err
		return c.next(Hangup{})
	case strings.TrimSpace(l.Text) == "":
		return nil
	}
	command, text, err := Parse(l.Text)
	switch {
	case err != nil:
		c.problem(err)
		return nil
	case command != nil:
		return c.command(command)
	case l.Alt:
		return c.next(Entered{text, Steer})
	}
	return c.next(Entered{text, FollowUp})
}

// problem reports what did not work. A script that ends with it fails.
func (c *chat) problem(err error) {
	c.failed = err
	c.Warn(err.Error())
	if hint := errdefs.HintOf(err); hint != "" {
		c.Warn("hint: " + hint)
	}
}

// do carries an action out, and returns what follows at once.
func (c *chat) do(a Action) []Action {
	switch a := a.(type) {
	case Send:
		c.send(a.Text)
	case Say:
		c.says = append(c.says, saying{a.Text, a.Op})
		c.say()
	case Cancel:
		c.cancel()
	case Detach:
		c.shut()
		c.run.stop()
		c.run = nil
		c.progress()
	case Drop:
		c.Warn(fmt.Sprintf("%d waiting messages are not sent", a.N))
	case Tell:
		c.Warn(a.Text)
	}
	return nil
}

func (c *chat) send(text string) {
	c.script.begin()
	c.since, c.failed = time.Now(), nil
	c.run = &follow{from: c.Caller, agent: c.agent, out: c.heard, request: &wire.Send{
		ID: libctx.ClientID(libctx.NewRun()), Session: c.session, Workspace: c.options.Workspace, Input: text,
	}}
	c.run.ctx, c.run.stop = context.WithCancel(c.ctx)
	c.beside(c.run.run)
	c.progress()
}

// beside runs something beside the chat. If it fails as only a defect can, the
// terminal is given back before the program ends.
func (c *chat) beside(do func()) {
	go func() {
		whole := false
		defer func() {
			if !whole && c.editor != nil {
				c.editor.Restore()
			}
		}()
		do()
		whole = true
	}()
}

// hear takes what comes of the run.
func (c *chat) hear(h heard) []Action {
	if h.of != c.run {
		return nil
	}
	if h.over {
		c.shut()
		c.run.stop()
		c.run = nil
		c.progress()
		if h.err == nil {
			return c.next(Ended{})
		}
		return c.broken(h)
	}
	for _, b := range c.script.frame(h.frame) {
		c.print(b)
	}
	switch f := h.frame.(type) {
	case *wire.Start:
		if c.state.Phase == Cancelling {
			c.cancel() // the first came before there was a run
		}
		return c.next(Began{})
	case *wire.ApprovalRequest:
		c.put(f)
	case *wire.ApprovalResult:
		c.shut()
	case *wire.Done:
		switch {
		case f.Status == "cancelled":
			c.failed = errdefs.New(errdefs.Cancelled, "the run was cancelled")
		case f.Status != "ok" && c.script.failure != nil:
			c.failed = client.FrameError(c.script.failure)
		case f.Status != "ok":
			c.failed = errdefs.New(errdefs.IO, "the run failed")
		}
	}
	c.progress()
	return nil
}

// broken is a run that did not end as runs do.
func (c *chat) broken(h heard) []Action {
	if errdefs.Is(h.err, errdefs.Interrupted) && h.sent {
		c.failed = h.err
		c.Warn("interrupted: " + h.err.Error() + " before the run was over")
		c.Note("what it did is kept: /history shows it; the next message connects anew")
		return c.next(Lost{})
	}
	c.problem(h.err)
	if errdefs.Is(h.err, errdefs.TooBig) && c.editor != nil {
		c.editor.Prefill(c.request(h), false)
	}
	return c.next(Ended{})
}

func (c *chat) request(h heard) string { return h.of.request.Input }

// progress shows what the run does, where there is a place for it.
func (c *chat) progress() {
	if c.editor == nil {
		return
	}
	if c.run == nil || c.Quiet {
		c.editor.Status("")
		return
	}
	c.editor.Status(c.script.progress(time.Since(c.since), c.editor.Columns()-1))
}

// print shows a block: answers as Markdown on a terminal, the other ones beside
// them.
func (c *chat) print(b block) {
	switch {
	case b.answer && c.editor != nil:
		_, _ = io.WriteString(c, markdown.Render(b.text, c.editor.Columns(), c.Color)+"\n") // the printer keeps the error
	case b.answer:
		_ = c.Text(strings.TrimRight(b.text, "\n") + "\n")
	case b.loud:
		c.aside(b.text)
	case !c.Quiet:
		c.aside(b.text)
	}
}

// aside is a line that is not the assistant's.
func (c *chat) aside(text string) {
	if c.editor != nil && c.Color {
		_, _ = io.WriteString(c, "\x1b[2m"+inert.Line(text)+"\x1b[0m\n")
		return
	}
	c.Warn(text)
}

// place is the number of a durable frame in its run, 0 for none.
func place(e libctx.Event) int {
	_, n, _ := strings.Cut(string(e), ".")
	i, _ := strconv.Atoi(n)
	return i
}
