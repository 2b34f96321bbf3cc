package chat

import (
	"context"
	"strconv"
	"strings"

	"cortexfs.org/ctx/internal/agents"
	"cortexfs.org/ctx/internal/client"
	"cortexfs.org/ctx/internal/sessions"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// finishText is what /finish says without words.
const finishText = "Come to an end now: answer with what you have, without any more tools."

// say sends the first of what waits to be said, unless one is under way: the
// order is the person's.
func (c *chat) say() {
	if c.saying > 0 || len(c.says) == 0 {
		return
	}
	s := c.says[0]
	c.says = c.says[1:]
	c.saying++
	r := spoken(s, c.session)
	c.tellOnce(r, s)
}

func spoken(s saying, session libctx.Session) wire.Request {
	id := libctx.ClientID(libctx.NewRun())
	switch s.op {
	case Steer:
		return &wire.Steer{ID: id, Session: session, Input: s.text}
	case Finish:
		return &wire.Finish{ID: id, Session: session, Input: s.text}
	}
	return &wire.FollowUp{ID: id, Session: session, Input: s.text}
}

// tellOnce makes a request beside the chat, which hears the outcome.
func (c *chat) tellOnce(r wire.Request, s saying) {
	c.beside(func() {
		err := c.once(r)
		select {
		case c.said <- said{s, err}:
		case <-c.ctx.Done():
		}
	})
}

// once makes a request on a connection of its own. It brings up nothing: without
// a process there is no run.
func (c *chat) once(r wire.Request) error {
	conn, err := client.Dialer{Layout: c.Layout}.Dial(c.ctx, c.agent)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(c.ctx, func() { conn.Close() })()
	_, _, err = conn.Ask(r)
	return err
}

// answer takes the outcome of saying something. What the run did not take is a
// message of its own.
func (c *chat) answer(s said) []Action {
	c.saying--
	defer c.say()
	if s.op == "" { // a cancel
		if s.err != nil && !errdefs.Is(s.err, errdefs.Already) && !errdefs.Is(s.err, errdefs.NotFound) {
			c.problem(s.err)
		}
		return nil
	}
	switch {
	case s.err == nil:
		c.Note(map[string]string{FollowUp: "comes after this run's answer", Steer: "the model is told next", Finish: "the run ends without more tools"}[s.op])
		return nil
	case s.op != Finish && (errdefs.Is(s.err, errdefs.NotFound) || errdefs.Is(s.err, errdefs.Already) ||
		errdefs.Is(s.err, errdefs.Unsupported) || errdefs.Is(s.err, errdefs.Unavailable)):
		return c.next(Unheard{s.text})
	}
	c.problem(s.err)
	return nil
}

// cancel asks for the end of the run.
func (c *chat) cancel() {
	r := &wire.Cancel{ID: string(c.run.request.ID), Session: c.session}
	c.saying++
	c.tellOnce(r, saying{})
	c.script.doing = "cancelling"
	c.progress()
}

// command carries a command out.
func (c *chat) command(k *Command) []Action {
	var err error
	switch k.Name {
	case "help":
		err = c.Text(help(c.editor != nil))
	case "tools":
		err = agents.Tools(c.Caller, c.agent)
	case "usage":
		err = sessions.PrintUsage(c.Caller, c.agent, string(c.session))
	case "history":
		err = sessions.History(c.Caller, c.agent, sessions.HistoryOptions{Session: string(c.session)})
	case "session":
		err = c.move(k.Argument)
	case "model":
		err = c.models(k.Argument)
	case "show":
		err = c.show(k.Argument)
	case "edit":
		if c.editor == nil {
			err = errdefs.New(errdefs.Unsupported, "there is no editor without a terminal")
			break
		}
		c.editor.Prefill(k.Argument, true)
	case "steer":
		if k.Argument == "" {
			err = errdefs.New(errdefs.Invalid, "/steer needs words")
			break
		}
		return c.next(Entered{k.Argument, Steer})
	case "finish":
		if k.Argument == "" {
			k.Argument = finishText
		}
		return c.next(Entered{k.Argument, Finish})
	case "cancel":
		return c.next(Stop{})
	case "quit":
		return c.next(Hangup{})
	}
	if err != nil {
		c.problem(err)
	}
	return nil
}

// move goes on in another session, which becomes the agent's current one.
func (c *chat) move(name string) error {
	if name == "" {
		return sessions.List(c.Caller, c.agent)
	}
	if c.state.Active() {
		return errdefs.New(errdefs.Busy, "a run is active; /cancel ends it")
	}
	s, err := libctx.ParseSession(name)
	if err != nil {
		return err
	}
	before := c.session
	c.session = s
	if err := c.current(); err != nil {
		c.session = before
		return err
	}
	c.input.Prompt(c.prompt())
	return nil
}

// current makes the session the one that commands mean when they name none.
func (c *chat) current() error {
	place, err := c.Place(c.agent)
	if err != nil {
		return err
	}
	return place.SetCurrent(c.session)
}

func (c *chat) models(name string) error {
	if name == "" {
		return agents.Get(c.Caller, c.agent, "model")
	}
	if name == "-" { // which would read what the person types
		return errdefs.New(errdefs.Invalid, "/model -: is not a model")
	}
	if err := agents.Set(context.Background(), c.Caller, c.agent, "model", []string{name}); err != nil {
		return err
	}
	c.script.model = name
	c.Note("from the next run on the model is " + name)
	return nil
}

// show prints a result that was kept.
func (c *chat) show(which string) error {
	n := 0
	if which != "" {
		var err error
		if n, err = strconv.Atoi(which); err != nil || n < 1 {
			return errdefs.New(errdefs.Invalid, "/show %s: is not the number of a tool call", which)
		}
	}
	r, ok := c.script.shelf.get(n)
	if !ok {
		return errdefs.New(errdefs.NotFound, "that result is not kept here; /history shows all")
	}
	c.aside(r.name)
	if err := c.Text(strings.TrimRight(r.text, "\n") + "\n"); err != nil {
		return err
	}
	if r.short {
		c.Note("this is not all of it; ctx agent history --full shows more")
	}
	return nil
}
