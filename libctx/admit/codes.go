package admit

// Code is a denial code. The codes are stable: scripts and ledgers hold them.
type Code string

// The denial codes, in the order of their stages. The last three are of what
// follows on Decide: the answer of a person, the hooks, the permission to start.
const (
	InvalidArguments Code = "invalid_tool_arguments"
	NotDeclared      Code = "not_declared"
	NotFound         Code = "tool_not_found"
	NotRegular       Code = "not_regular"
	LinuxPermission  Code = "linux_permission"
	NotMounted       Code = "not_mounted"
	NoExecMount      Code = "noexec_mount"
	Perm             Code = "perm"
	AgentPolicy      Code = "agent_policy"
	ToolPolicy       Code = "tool_policy"
	EffectUnknown    Code = "effect_unknown"
	HostReadDenied   Code = "effect_host_read_denied"
	HostChangeDenied Code = "effect_host_mutation_denied"
	ProcessDenied    Code = "effect_native_process_denied"
	NetworkDenied    Code = "effect_network_denied"
	DelegationDenied Code = "effect_delegation_denied"
	ExtensionDenied  Code = "effect_extension_denied"
	ApprovalMissing  Code = "approval_unavailable"
	ApprovalDenied   Code = "approval_denied"
	HookDenied       Code = "secondary_hook_denied"
	CommitDenied     Code = "effect_reservation_commit_denied"
)

const notPermitted = "not permitted"

// sentences is what a model is told of each refusal: what it could do better,
// never what a policy says.
var sentences = map[Code]string{
	InvalidArguments: "the arguments do not fit the tool's schema",
	NotDeclared:      "this tool can not be called directly, only through tsh",
	NotFound:         "no such tool",
	NotRegular:       "the tool can not be run",
	LinuxPermission:  "the tool can not be run",
	NotMounted:       "the tool can not be run",
	NoExecMount:      "the tool can not be run",
	Perm:             notPermitted,
	AgentPolicy:      notPermitted,
	ToolPolicy:       notPermitted,
	EffectUnknown:    notPermitted,
	HostReadDenied:   notPermitted,
	HostChangeDenied: notPermitted,
	ProcessDenied:    notPermitted,
	NetworkDenied:    notPermitted,
	DelegationDenied: notPermitted,
	ExtensionDenied:  notPermitted,
	ApprovalMissing:  "not permitted: the call needs an approval that can not be asked for",
	ApprovalDenied:   "not permitted: the call was not approved",
	HookDenied:       notPermitted,
	CommitDenied:     notPermitted,
}

// Codes lists every denial code, in the order of the stages.
func Codes() []Code {
	return []Code{
		InvalidArguments, NotDeclared, NotFound, NotRegular, LinuxPermission, NotMounted, NoExecMount,
		Perm, AgentPolicy, ToolPolicy, EffectUnknown, HostReadDenied, HostChangeDenied, ProcessDenied,
		NetworkDenied, DelegationDenied, ExtensionDenied, ApprovalMissing,
		ApprovalDenied, HookDenied, CommitDenied,
	}
}

// Sentence is the one fixed sentence a model sees for the code. A code this
// version does not know reads "not permitted".
func (c Code) Sentence() string {
	if s, ok := sentences[c]; ok {
		return s
	}
	return notPermitted
}
