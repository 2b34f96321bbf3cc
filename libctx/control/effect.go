package control

import (
	"slices"
	"strings"

	"cortexfs.org/libctx/linefile"
)

// Effect is the class of what a call can do, judged by the host.
type Effect string

// The classes, from harmless to not known.
const (
	Pure              Effect = "pure"
	WorkspaceRead     Effect = "workspace_read"
	HostRead          Effect = "host_read"
	WorkspaceMutation Effect = "workspace_mutation"
	HostMutation      Effect = "host_mutation"
	HostProcess       Effect = "host_process"
	Network           Effect = "network"
	Delegation        Effect = "delegation"
	Extension         Effect = "extension"
	Unknown           Effect = "unknown" // also what a tool without the file effect has
)

var effects = []string{
	string(Pure), string(WorkspaceRead), string(HostRead), string(WorkspaceMutation), string(HostMutation),
	string(HostProcess), string(Network), string(Delegation), string(Extension), string(Unknown),
}

// ParseEffect reads the name of a class.
func ParseEffect(s string) (Effect, error) {
	if !slices.Contains(effects, s) {
		return "", linefile.Refuse(0, s, "is not an effect: %s", strings.Join(effects, " "))
	}
	return Effect(s), nil
}

// Perm is the bit of an agent's perm that a call of this class needs: reading r,
// changing w, everything else x, and a pure call none.
func (e Effect) Perm() Perm {
	switch e {
	case Pure:
		return 0
	case WorkspaceRead, HostRead:
		return Read
	case WorkspaceMutation, HostMutation:
		return Write
	}
	return Execute
}

// ParseEffectFile reads a tool's file effect.
func ParseEffectFile(text []byte) (Effect, error) { return value("effect", text, ParseEffect) }
