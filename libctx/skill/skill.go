// Package skill finds the SKILL.md files that an agent may use and makes the
// list of them that its prompt shows: name, description and path, no more
// (docs/reference/prompt.md).
package skill

import "cortexfs.org/libctx/discover"

// Skill is what a prompt tells of one skill. All members are one line each.
type Skill struct {
	Name        string
	Description string // at most libctx.MaxSkillAbout characters, may be empty
	Path        string // of its SKILL.md, as seen inside
}

// Discover reads the front matter of the skills there are, in order of
// precedence: the machine's, the agent's own, then those of cwd and of the
// directories above it up to the top of the workspace. It never fails: what can
// not be read is a warning.
func Discover(p discover.Places) ([]Skill, []discover.Warning) { return nil, nil }

// Text is the list as a prompt and the snapshot SKILLS.md show it, at most max
// characters; "" if there are none. Where not all fit, descriptions are
// shortened to libctx.ShortSkillAbout characters, then skills are left out from
// the end, and a last line says how many.
func Text(skills []Skill, max int) string { return "" }
