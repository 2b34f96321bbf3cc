package view

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/policy"
	"cortexfs.org/libctx/workspace"
)

// Agent is an agent as its control files describe it at one moment. Absent
// files have their documented defaults (docs/reference/view.md).
type Agent struct {
	Name    libctx.Agent
	Subject libctx.Subject  // the type field of its label
	Owner   asuser.Identity // as whom it and its tools run
	User    string          // the owner's login name, "agent" if there is none

	Executable bool         // has an abi control: an executable agent
	Model      libctx.Model // the model control as written, a model or an alias; set for every agent that is not executable

	Window   control.Window // as set: it need not fit the model
	Effort   string         // "auto" leaves it to the model
	System   string         // system.md; not read for an executable agent
	Template string         // prompt.template.md; likewise

	Perm     control.Perm
	Policy   policy.Policy
	Declared []libctx.Tool // the tools control
	Path     []string      // inside directories, in CTX_PATH order
	Mounts   mount.Table
	Env      []string // KEY=VALUE lines of the env control, in file order
	Cwd      string   // inside path
	Protect  []string // paths relative to the workspace, of the protect control

	Timeout     time.Duration // of one tool call
	ResultBytes int           // of a result a model sees
	Approval    string        // "auto" or "ask"
	Effects     string        // "unsafe-host", "controlled" or "controlled-bash-approval"
	Parent      string        // as written, "" for an agent that a person made
	Life        string        // "owned" or "temp"
	Network     bool          // the policy allows network:default connect

	given []string // the control files that are there
}

// Given reports whether the agent has this control file, so that what it says is no
// default.
func (a *Agent) Given(file string) bool { return slices.Contains(a.given, file) }

// Protection is what of a workspace the agent may not change: what its protect
// control names, or the usual list.
func (a *Agent) Protection() workspace.Protect {
	return workspace.Protect{Lines: a.Protect, Usual: !a.Given("protect")}
}

// Facts is what admission needs of the agent.
func (a *Agent) Facts() admit.Agent {
	return admit.Agent{
		Name: a.Name, Subject: a.Subject, Identity: a.Owner, Declared: a.Declared, Path: a.Path,
		Mounts: a.Mounts, Perm: a.Perm, Policy: a.Policy, Effects: a.Effects, Approval: a.Approval,
	}
}

// defaults is an agent with no control file.
func defaults(name libctx.Agent, who principal) *Agent {
	uid := strconv.FormatUint(uint64(who.id.UID), 10)
	return &Agent{
		Name: name, Subject: name.Subject(), Owner: who.id, User: who.user,
		Path:        []string{toolDir, path.Join(homeDir, uid, "tool")},
		Mounts:      mount.Default(who.id.UID, name),
		Cwd:         control.DefaultCwd,
		Timeout:     libctx.ToolTimeout,
		ResultBytes: libctx.MaxToolResult,
		Approval:    control.ApprovalAuto,
		Effects:     control.EffectsUnsafeHost,
		Effort:      control.EffortAuto,
		Life:        control.LifeOwned,
	}
}

// Where tools may live, as seen inside.
const (
	toolDir   = paths.InRoot + "/tool"
	homeDir   = paths.InRoot + "/home"
	sharedDir = paths.InRoot + "/shared"
)

// checkPath refuses a tool directory outside the three places tools may live
// in: the tree's own, the owner's, and those of shared spaces.
func checkPath(dir string, uid uint32) error {
	own := path.Join(homeDir, strconv.FormatUint(uint64(uid), 10), "tool")
	rest, shared := strings.CutPrefix(dir, sharedDir+"/")
	space, below, _ := strings.Cut(rest, "/")
	switch {
	case path.Clean(dir) != dir:
	case paths.Below(dir, toolDir), paths.Below(dir, own):
		return nil
	case shared && paths.Below(below, "tool"):
		if _, err := libctx.ParseSpace(space); err == nil {
			return nil
		}
	}
	return errdefs.New(errdefs.Invalid, "%q: is not at or below %s, %s or %s/SPACE/tool", dir, toolDir, own, sharedDir)
}

// userPlace reports whether an inside directory is written by users, so that it
// is read with the agent's rights alone.
func userPlace(dir string) bool { return !paths.Below(dir, toolDir) }
