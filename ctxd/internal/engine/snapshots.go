package engine

import (
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/preamble"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/window"
)

// look finds the rules and skills of the run. What can not be read is logged and
// left out.
func (d *drive) look(a *view.Agent) {
	ws, err := d.Tools.Workspace(a, d.run.Places.Workspace)
	if err != nil {
		ws = sandbox.Workspace{} // the first tool call says what is wrong with it
	}
	around, warnings := preamble.Look(d.Tools.Layout, a, ws, d.run.Places.Cwd)
	for _, w := range warnings {
		d.Log.Info("left out of the prompt", "session", d.run.Session, "run", d.run.ID, "why", w.String())
	}
	d.around = around
}

// snapshots writes what the run was told of rules and skills into its session's
// directory, for people: once a run, while the model thinks. No run fails for it.
func (d *drive) snapshots(a *view.Agent, size window.Size) {
	if d.wrote != nil || d.run.Scope == "temp" {
		return
	}
	d.wrote = make(chan struct{})
	go func() {
		defer close(d.wrote)
		place := session.Place{Layout: d.Tools.Layout, Agent: a.Name, Owner: a.Owner}
		err := place.Within(d.run.Session, func(dir *atomicfile.Dir) error {
			if err := dir.ReplaceLazy("AGENTS.md", []byte(d.around.RuleText(size)), 0o600); err != nil {
				return err
			}
			return dir.ReplaceLazy("SKILLS.md", []byte(d.around.SkillText(size)), 0o600)
		})
		if err != nil {
			d.Log.Warn("snapshots", "session", d.run.Session, "run", d.run.ID, "why", err.Error())
		}
	}()
}

// wait ends what the run started beside itself.
func (d *drive) wait() {
	if d.wrote != nil {
		<-d.wrote
	}
}
