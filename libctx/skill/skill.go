// Package skill finds the SKILL.md files that an agent may use and makes the
// list of them that its prompt shows: name, description and path, no more
// (docs/reference/prompt.md).
package skill

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cortexfs.org/libctx"
)

// Skill is what a prompt tells of one skill. All members are one line each.
type Skill struct {
	Name        string
	Description string // at most libctx.MaxSkillAbout characters, may be empty
	Path        string // of its SKILL.md, as seen inside
}

// outNote stands where skills are missing.
const outNote = "(%d more skills have no room in this list.)\n"

// Text is the list as a prompt and the snapshot SKILLS.md show it, at most max
// characters; "" if there are none. Where not all fit, descriptions are
// shortened to libctx.ShortSkillAbout characters, then skills are left out from
// the end, and a last line says how many.
func Text(skills []Skill, max int) string {
	lines, total := render(skills, libctx.MaxSkillAbout)
	if total > max {
		lines, total = render(skills, libctx.ShortSkillAbout)
	}
	note := ""
	for total > max && len(lines) > 0 {
		last := len(lines) - 1
		total -= utf8.RuneCountInString(lines[last]) + len(note)
		lines = lines[:last]
		note = fmt.Sprintf(outNote, len(skills)-last)
		total += len(note)
	}
	if total > max {
		return "" // there is not even room to say so
	}
	return strings.Join(lines, "") + note
}

// render makes the line of each skill, and counts their characters.
func render(skills []Skill, about int) (lines []string, total int) {
	for _, s := range skills {
		line := "- " + s.Name
		if s.Description != "" {
			line += ": " + shorten(s.Description, about)
		}
		line += " (" + s.Path + ")\n"
		lines = append(lines, line)
		total += utf8.RuneCountInString(line)
	}
	return lines, total
}

// shorten bounds a text to n characters, an ellipsis included.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	left := n - 1
	for i := range s {
		if left--; left < 0 {
			return strings.TrimRight(s[:i], " ") + "…"
		}
	}
	return s
}
