// Package preamble puts together what a model is told in front of the
// conversation: the system message, of the agent's files and the rules and skills
// around it, and the tools that a request declares; and it says which model an
// agent may ask, and with which window. Runs and `ctx agent prompt` use it, so
// that the one shows what the other sends (docs/reference/prompt.md). It reads
// afresh each time and changes nothing.
package preamble

import (
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/discover"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/prompt"
	"cortexfs.org/libctx/rules"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/skill"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/window"
)

// Surroundings are the rules and skills that a run finds when it begins, and
// keeps: so its system message stays the same from turn to turn as long as it
// can.
type Surroundings struct {
	Began  time.Time
	Rules  rules.Rules
	Skills []skill.Skill
}

// Look finds the rules and skills of an agent that works in ws, the zero
// Workspace for none, and there in cwd, an inside path. Everything is read with
// the rights of the agent's owner. What can not be read is left out and told in
// the warnings.
func Look(l paths.Layout, a *view.Agent, ws sandbox.Workspace, cwd string) (Surroundings, []discover.Warning) {
	places := discover.Places{
		ID: a.Owner, Global: discover.Global, Home: l.AgentHome(a.Owner.UID, a.Name), Workspace: ws, Cwd: cwd,
	}
	s := Surroundings{Began: time.Now()}
	var warnings, more []discover.Warning
	s.Rules, warnings = rules.Discover(places)
	s.Skills, more = skill.Discover(places)
	return s, append(warnings, more...)
}

// System is the system message for a window of this size. declared are the tools
// that can be called directly, tools and history the texts about the session's
// loaded tools and its earlier messages. Errors as prompt.Render.
func (s *Surroundings) System(a *view.Agent, size window.Size, declared []libctx.Tool, tools, history string) (string, error) {
	return prompt.Render(a.Template, prompt.Blocks{
		Agent: a.Name, Time: s.Began, System: a.System,
		Rules: s.RuleText(size), Skills: s.SkillText(size),
		Tools: tools, History: history, Native: declared,
	})
}

// RuleText is the rules as the prompt for a window of this size shows them.
func (s *Surroundings) RuleText(size window.Size) string { return s.Rules.Text(size.RuleChars()) }

// SkillText is the list of skills as the prompt for a window of this size shows
// it.
func (s *Surroundings) SkillText(size window.Size) string {
	return skill.Text(s.Skills, size.SkillChars())
}
