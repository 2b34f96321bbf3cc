package chat

import (
	"context"
	"os"

	"cortexfs.org/ctx/internal/question"
	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/libctx/wire"
)

// open is a question of the run that is put to the person.
type open struct {
	q     *wire.ApprovalRequest
	close context.CancelFunc // it is over, whatever the person says
}

// decided is what the person said to a question.
type decided struct {
	open *open
	key  question.Key
}

// put asks the person. Where nobody can be asked the answer is no.
func (c *chat) put(q *wire.ApprovalRequest) {
	c.shut()
	c.script.doing = "waiting for your answer"
	o := &open{q: q}
	c.question = o
	if c.editor == nil {
		o.close = func() {}
		c.aside(render.Asked(q))
		c.Warn("denied: nobody can be asked here; ctx agent send --approve " + string(q.Name) + " allows it")
		c.reply(wire.Deny)
		return
	}
	var over context.Context
	over, o.close = context.WithCancel(c.ctx)
	c.editor.Ask(func(terminal *os.File) {
		if over.Err() != nil {
			return
		}
		key := question.Ask(over, terminal, q, c.Color)
		go func() { // the loop may have something to print before it listens
			select {
			case c.decided <- decided{o, key}:
			case <-c.ctx.Done():
			}
		}()
	})
}

// decide takes what the person said, if it is still asked.
func (c *chat) decide(d decided) []Action {
	if d.open != c.question {
		return nil
	}
	switch d.key {
	case question.Yes:
		c.reply(wire.AllowOnce)
	case question.Cancel:
		c.shut()
		return c.next(Stop{})
	case question.No:
		c.reply(wire.Deny)
	}
	return nil
}

// reply answers the open question.
func (c *chat) reply(decision string) {
	q := c.question.q
	c.shut()
	if err := c.run.answer(&wire.Approve{Run: q.Run, Call: q.Call, Decision: decision}); err != nil {
		c.problem(err)
	}
}

// shut closes the question, if one is open.
func (c *chat) shut() {
	if c.question != nil {
		c.question.close()
		c.question = nil
	}
}
