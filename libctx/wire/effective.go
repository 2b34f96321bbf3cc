package wire

// EffectivePolicy is what was in force when a call was decided about. No path, no
// secret and nothing of the call is in it.
type EffectivePolicy struct {
	EffectPolicy         Sourced[string]    `json:"effect_policy"`         // the effects control
	Approval             Sourced[string]    `json:"approval"`              // the approval control
	Perm                 Sourced[string]    `json:"perm"`                  // the perm control
	WorkspaceConfinement Sourced[bool]      `json:"workspace_confinement"` // what leads out of the workspace is refused
	AllowEdit            Sourced[bool]      `json:"allow_edit"`
	AllowWrite           Sourced[bool]      `json:"allow_write"`
	AllowProcess         Sourced[bool]      `json:"allow_process"` // of other tools than the shells
	AllowShell           Sourced[bool]      `json:"allow_shell"`
	ShellPath            Sourced[ShellPath] `json:"shell_path"`
	BashTimeoutMS        Sourced[int64]     `json:"bash_timeout_ms"`
	MaxOutputBytes       Sourced[int]       `json:"max_output_bytes"`
	AllowRemoteRead      Sourced[bool]      `json:"allow_remote_read"` // sandboxes have the network
}

// Sourced is a value and where it comes from.
type Sourced[T any] struct {
	Value  T      `json:"value"`
	Source string `json:"source"`
}

// Sources of values.
const (
	SourceDefault = "default" // no control file says anything
	SourceConfig  = "config"  // a control file of the agent does
)

// ShellPath says which shell commands get, not where it is: system_bash, path_bash
// or unavailable.
type ShellPath struct {
	Selection string `json:"selection"`
}
