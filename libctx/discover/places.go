// Package discover finds the directories that may hold rules (AGENTS.md) and
// skills (SKILL.md) for an agent, and reads in them with the rights of the
// agent's identity: no link is followed, nothing but regular files is opened,
// and what is read is bounded. Workspaces are hostile; what can not be read is a
// Warning and never an error. docs/reference/prompt.md lists the places.
package discover

import (
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/sandbox"
)

// Global is the machine's own directory of rules and skills, the same in all
// modes.
const Global = paths.MachineConfig

// Places are where an agent's rules and skills come from. What is empty is not
// searched. Nothing is ever read from the home of the person.
type Places struct {
	ID        asuser.Identity   // with whose rights everything is read
	Global    string            // host directory, Global but in tests; shown as Global
	Home      string            // host path of the agent's home, seen at /home/agent
	Workspace sandbox.Workspace // seen at /workspace; passed over if its directory is another one by now
	Cwd       string            // inside path; if it is below /workspace, the directories down to it are searched
}

// Warning says what was not used, and why.
type Warning struct {
	Path string // as seen inside
	Why  string // one line
}

// String is one line that is harmless in a terminal and in a prompt.
func (w Warning) String() string { return w.Path + ": " + w.Why }
