package engine

import (
	"context"
	"slices"

	"cortexfs.org/ctxd/internal/calls"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/preamble"
	"cortexfs.org/libctx/prompt"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
)

// turn asks the model once, carries out what it answers, and says how the run
// goes on. The agent's files are read anew, so that a change between two turns
// counts; but what the agent is told of itself, which it may have changed, counts
// from the next run on.
func (d *drive) turn(ctx context.Context) (step, error) {
	a, err := d.load()
	if err != nil {
		return end, err
	}
	if a.Executable {
		return end, errdefs.New(errdefs.Invalid, "agent %s has become an executable agent while its run went on", a.Name)
	}
	a.System, a.Template = d.told.System, d.told.Template
	free := d.run.ToolFree // what the request says; a finish may come meanwhile
	said, c, err := d.ask(ctx, a)
	if err != nil {
		return end, err
	}
	fault.Point("engine.answered")
	p, err := d.keep(said, c)
	if err != nil {
		return end, err
	}
	fault.Point("engine.kept")
	for i := range p.calls {
		p.calls[i].Env = c.Window.Env()
	}
	return d.deaf.after(&p, free), d.Calls.All(ctx, d.run, p.calls)
}

// ask tries the agent's models until one answers.
func (d *drive) ask(ctx context.Context, a *view.Agent) (answer, preamble.Candidate, error) {
	// The agent's own model usually answers; what else there is, is read when it
	// does not.
	names := []libctx.Model{a.Model}
	if d.answered != "" && d.answered != a.Model {
		names = preamble.Chain(d.Tools.Layout, a)
	}
	for i := startAt(names, d.answered); ; i++ {
		c, said, err := d.attempt(ctx, a, names[i])
		if err == nil {
			d.answered = names[i]
			return said, c, nil
		}
		if ctx.Err() != nil || c.Model != nil && !passOn(err) {
			return answer{}, preamble.Candidate{}, err
		}
		if names = preamble.Chain(d.Tools.Layout, a); i+1 >= len(names) {
			return answer{}, preamble.Candidate{}, err
		}
		if err := d.passOver(names[i], err); err != nil {
			return answer{}, preamble.Candidate{}, err
		}
	}
}

// passOver records why a model was not the one that answers.
func (d *drive) passOver(name libctx.Model, why error) error {
	text, _ := wire.Clip(wire.Clean([]byte(why.Error())), libctx.MaxFailureText)
	return d.run.Record(&wire.CandidateError{
		Head: wire.Head{Type: "candidate_error"}, Model: name, Code: errdefs.KindOf(why), Message: text,
	})
}

// attempt asks one model. The candidate is zero if it may not be asked.
func (d *drive) attempt(ctx context.Context, a *view.Agent, name libctx.Model) (preamble.Candidate, answer, error) {
	c, err := preamble.Check(d.Tools.Layout, a, name)
	if err != nil {
		return preamble.Candidate{}, answer{}, err
	}
	g, err := d.prepare(a, c)
	if err != nil {
		return c, answer{}, err
	}
	stream, err := d.Models.Generate(ctx, g)
	if err != nil {
		return c, answer{}, err
	}
	defer stream.Close()
	fault.Point("engine.asked")
	d.snapshots(a, c.Window)
	said, err := listen(ctx, stream, d.run)
	if err == nil {
		return c, said, nil
	}
	// What a failed attempt used is recorded before anything else is tried.
	if used := account(d.run.ID, c.Model.ID, said.usage, err); used != nil {
		if failed := d.run.Commit(func(string) []session.Record { return []session.Record{used} }); failed != nil {
			return c, answer{}, failed
		}
	}
	return c, answer{}, err
}

// prepare makes the request for a candidate: the system message, and as much of
// the conversation as its window holds.
func (d *drive) prepare(a *view.Agent, c preamble.Candidate) (*modelwire.Generate, error) {
	var tools []modelwire.Tool
	var declared []libctx.Tool
	var err error
	if !d.run.ToolFree {
		if tools, declared, err = preamble.Native(d.Tools.Layout, a); err != nil {
			return nil, err
		}
	}
	system, err := d.around.System(a, c.Window, declared, d.loaded(a, c), prompt.InMessages)
	if err != nil {
		return nil, err
	}
	in := prompt.Input{System: system, Model: c.Model.ID, Window: c.Window}
	if err := d.conversation(&in); err != nil {
		return nil, err
	}
	fitted, err := prompt.Fit(in)
	if err != nil {
		return nil, err
	}
	if err := d.note(fitted, in.Older); err != nil {
		return nil, err
	}
	return request(a, c, fitted, tools, cacheKey(d.Tools.Layout, a.Name, d.run.Session)), nil
}

// loaded is the text about the session's loaded tools. No run fails for it.
func (d *drive) loaded(a *view.Agent, c preamble.Candidate) string {
	text, err := d.Tools.LoadedTools(a, d.run.Session, d.run.Loaded(), c.Window.ToolChars())
	if err != nil {
		d.Log.Warn("loaded tools", "session", d.run.Session, "run", d.run.ID, "why", err.Error())
	}
	return text
}

// conversation reads the newest part of the session's branch: about twice what
// fits, in any case back to the run's own first message, and also a long message
// that alone would not fit, since messages are shortened before they are left out.
func (d *drive) conversation(in *prompt.Input) error {
	fits := in.Window.PromptBytes(int64(len(in.System)))
	for _, reach := range []int64{2 * fits, 2*fits + libctx.MaxRecord, libctx.MaxLedger} {
		if reach < d.reach {
			continue
		}
		d.reach = reach
		entries, err := d.run.History(int(reach))
		if err != nil {
			return err
		}
		in.Rows, in.Run = rows(entries, d.run.ID)
		in.Older = len(entries) > 0 && entries[0].Parent != ""
		whole := slices.ContainsFunc(entries, func(e session.Entry) bool { return e.Run == d.run.ID && begins(&e) })
		if whole && (!in.Older || reach > 2*fits || textBytes(in.Rows) >= fits) {
			break
		}
	}
	return nil
}

// note records that history has left the prompt, when more of it has.
func (d *drive) note(f *prompt.Fitted, older bool) error {
	now := wire.Context{Head: wire.Head{Type: "context"}, Dropped: f.Dropped, Older: older, Clipped: f.Clipped}
	if now.Dropped == d.noted.Dropped && now.Older == d.noted.Older && now.Clipped == d.noted.Clipped {
		return nil
	}
	d.noted = now
	now.Bytes = int(f.Bytes)
	return d.run.Record(&now)
}

// keep makes an answer durable, with what it used and with the results of the
// calls that are not carried out: one batch, before anything is done about it.
func (d *drive) keep(said answer, c preamble.Candidate) (plan, error) {
	var p plan
	toolFree := d.run.Finishing()
	err := d.run.Commit(func(entry string) []session.Record {
		p = read(entry, said.message, toolFree)
		var records []session.Record
		if len(p.content) > 0 {
			records = append(records, &session.Entry{
				Run: d.run.ID, Kind: session.KindMessage, Role: session.RoleAssistant, Content: p.content,
				Model: c.Model.ID, Stop: said.message.Stop, Opaque: said.message.Opaque,
			})
		}
		records = append(records, account(d.run.ID, c.Model.ID, said.usage, nil))
		for _, r := range p.refused {
			if r.code != "" {
				records = append(records, &session.Fact{Run: d.run.ID, Frame: &wire.ToolPolicy{
					Head: wire.Head{Type: "tool_policy"}, Call: r.call.ID, Code: string(r.code), Reason: "the model's call is not well formed",
				}})
			}
			records = append(records, calls.Entry(d.run.ID, r.call, toolrun.Failure(r.sentence)))
		}
		return records
	})
	return p, err
}
