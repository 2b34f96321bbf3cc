package engine

import (
	"time"

	"cortexfs.org/ctxd/internal/run"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/discover"
	"cortexfs.org/libctx/prompt"
	"cortexfs.org/libctx/rules"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/skill"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/window"
)

// surroundings is what a run finds around it when it begins, and keeps: so the
// system message stays the same from turn to turn as long as it can.
type surroundings struct {
	began  time.Time
	rules  rules.Rules
	skills []skill.Skill
}

// look finds the rules and skills of a run. What can not be read is logged and
// left out.
func (e *Engine) look(a *view.Agent, r *run.Run) surroundings {
	s := surroundings{began: time.Now()}
	places := discover.Places{
		ID: a.Owner, Global: discover.Global, Home: e.Tools.Layout.AgentHome(a.Owner.UID, a.Name), Cwd: r.Places.Cwd,
	}
	if ws, err := e.Tools.Workspace(a, r.Places.Workspace); err == nil {
		places.Workspace = ws // else the first tool call says what is wrong with it
	}
	var warnings, more []discover.Warning
	s.rules, warnings = rules.Discover(places)
	s.skills, more = skill.Discover(places)
	for _, w := range append(warnings, more...) {
		e.Log.Info("left out of the prompt", "session", r.Session, "run", r.ID, "why", w.String())
	}
	return s
}

// system is the system message for a model with this window.
func (s *surroundings) system(a *view.Agent, size window.Size, declared []libctx.Tool, tools string) (string, error) {
	return prompt.Render(a.Template, prompt.Blocks{
		Agent: a.Name, Time: s.began, System: a.System,
		Rules: s.rules.Text(size.RuleChars()), Skills: skill.Text(s.skills, size.SkillChars()),
		Tools: tools, History: prompt.InMessages, Native: declared,
	})
}

// snapshot writes what a run was told of rules and skills into its session's
// directory, for people. No run fails for it.
func (e *Engine) snapshot(a *view.Agent, r *run.Run, s *surroundings, size window.Size) {
	place := session.Place{Layout: e.Tools.Layout, Agent: a.Name, Owner: a.Owner}
	err := place.Within(r.Session, func(d *atomicfile.Dir) error {
		if err := d.ReplaceLazy("AGENTS.md", []byte(s.rules.Text(size.RuleChars())), 0o600); err != nil {
			return err
		}
		return d.ReplaceLazy("SKILLS.md", []byte(skill.Text(s.skills, size.SkillChars())), 0o600)
	})
	if err != nil {
		e.Log.Warn("snapshots", "session", r.Session, "run", r.ID, "why", err.Error())
	}
}
