package debug

import (
	"context"
	"strings"
	"time"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// script plays the next block of the file that the option script names.
func script(ctx context.Context, g *modelwire.Generate, out model.Sink) error {
	path := g.Options["script"]
	if path == "" {
		return invalid("debug/script has no script: its default control names none (script=PATH)")
	}
	b, err := nextBlock(path)
	if err != nil {
		return invalid("%v", err)
	}
	p := &player{ctx: ctx, g: g, out: out}
	for _, it := range b.items {
		if err := p.play(it); err != nil {
			return err
		}
	}
	if !p.said {
		f := modelwire.Fail(errdefs.Provider, modelwire.PhaseBody, modelwire.ClassInterrupted, "the answer ended before its end (block %s of the script)", b.name)
		return f
	}
	return nil
}

// player plays the items of one block.
type player struct {
	ctx     context.Context
	g       *modelwire.Generate
	out     model.Sink
	started bool
	said    bool // the message went out
}

func (p *player) play(it *item) error {
	switch {
	case it.Type != "":
		f, err := modelwire.DecodeFrame(it.raw)
		if err != nil {
			return invalid("line %d of the script: %v", it.line, err)
		}
		return p.send(f)
	case it.Delay != nil:
		return p.wait(time.Duration(*it.Delay) * time.Millisecond)
	case it.Fail != nil:
		f := *it.Fail
		return &f
	case it.Expect != nil:
		return it.Expect.check(p.g, it.line)
	case it.Answer != nil:
		return p.answer(it.Answer)
	}
	switch it.Fault {
	case "hang":
		<-p.ctx.Done()
		return context.Cause(p.ctx)
	case "kill":
		// The whole process: what a client sees when ctxmodel dies.
		unix.Kill(unix.Getpid(), unix.SIGKILL)
		select {}
	}
	return model.ErrDrop
}

// send sends a frame, after a start frame if the script has none.
func (p *player) send(f modelwire.Frame) error {
	switch f.(type) {
	case *modelwire.Start:
		p.started = true
	case *modelwire.MessageFrame:
		p.said = true
	}
	if _, before := f.(*modelwire.Lifecycle); !p.started && !before {
		p.started = true
		if err := p.out.Send(&modelwire.Start{Model: p.g.Model}); err != nil {
			return err
		}
	}
	return p.out.Send(f)
}

func (p *player) wait(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

// answer sends everything of a plain answer.
func (p *player) answer(a *answer) error {
	var calls []call
	for _, c := range a.Calls {
		// A text stands for what the model wrote, JSON or not.
		written := string(c.Arguments)
		if c.Arguments.Kind() == '"' {
			if json.Unmarshal(c.Arguments, &written) != nil {
				written = ""
			}
		}
		calls = append(calls, call{c.Name, written})
	}
	if !p.started {
		p.started = true
		if err := p.out.Send(&modelwire.Start{Model: p.g.Model}); err != nil {
			return err
		}
	}
	if a.Reasoning != "" {
		if err := p.out.Send(&modelwire.ReasoningDelta{Text: a.Reasoning}); err != nil {
			return err
		}
	}
	parts, err := deltas(p.out, a.Text, calls)
	if err != nil {
		return err
	}
	if a.Reasoning != "" {
		parts = append(reasoning(a.Reasoning), parts...)
	}
	stop := a.Stop
	if stop == "" {
		stop = modelwire.StopEnd
		if len(calls) > 0 {
			stop = modelwire.StopToolCalls
		}
	}
	p.said = true
	return p.out.Send(&modelwire.MessageFrame{Content: parts, Stop: stop})
}

// expect is what a script wants of the request it answers.
type expect struct {
	Messages int      `json:"messages"` // their number
	Contains []string `json:"contains"` // in the JSON of the messages and tools
	Lacks    []string `json:"lacks"`
	Last     string   `json:"last"`  // the text, or the text of the result, that comes last
	Tools    []string `json:"tools"` // the names of the tools that are declared
}

func (e *expect) check(g *modelwire.Generate, line int) error {
	wrong := func(format string, args ...any) error {
		f := modelwire.Fail(errdefs.Provider, modelwire.PhaseProvider, modelwire.ClassInvalid, "line %d of the script: "+format, append([]any{line}, args...)...)
		return f.WithCode("unexpected_request")
	}
	if e.Messages != 0 && e.Messages != len(g.Messages) {
		return wrong("the request has %d messages, not %d", len(g.Messages), e.Messages)
	}
	if e.Tools != nil {
		var names []string
		for _, t := range g.Tools {
			names = append(names, string(t.Name))
		}
		if got, want := strings.Join(names, " "), strings.Join(e.Tools, " "); got != want {
			return wrong("the tools are %q, not %q", got, want)
		}
	}
	if e.Last != "" {
		last := g.Messages[len(g.Messages)-1].Content
		if len(last) == 0 || last[len(last)-1].Text != e.Last {
			return wrong("the last text is another one")
		}
	}
	request, err := json.Marshal(g, json.Deterministic(true))
	if err != nil {
		return wrong("%v", err)
	}
	for _, s := range e.Contains {
		if !strings.Contains(string(request), s) {
			return wrong("the request does not hold %.200q", s)
		}
	}
	for _, s := range e.Lacks {
		if strings.Contains(string(request), s) {
			return wrong("the request holds %.200q", s)
		}
	}
	return nil
}

// delayBound is how long a delay can be, in milliseconds.
const delayBound = int64(libctx.MaxScriptDelay / time.Millisecond)
