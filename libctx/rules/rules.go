// Package rules finds the AGENTS.md files that apply to an agent and makes the
// one text of them that its prompt shows (docs/reference/prompt.md).
package rules

import "cortexfs.org/libctx/discover"

// File is one AGENTS.md.
type File struct {
	Path string // as seen inside
	Text string // valid UTF-8, at most libctx.MaxRuleFile bytes were read
}

// Rules are the files that apply: the machine's, the agent's, then those from
// the top of the workspace down to cwd.
type Rules []File

// Discover reads the rules. It never fails: what can not be read is a warning.
func Discover(p discover.Places) (Rules, []discover.Warning) { return nil, nil }

// Text is the rules as a prompt and the snapshot AGENTS.md show them: each file
// below a heading with its path, at most max characters in all; "" if there are
// none. Where not all fit, the machine's and the agent's own come first, then
// those nearest to cwd; what is cut or left out says so.
func (r Rules) Text(max int) string { return "" }
