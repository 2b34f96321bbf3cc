package control

import "cortexfs.org/libctx"

// Values that are words, and what an absent file means.
const (
	ApprovalAuto = "auto" // also without the file
	ApprovalAsk  = "ask"

	EffectsUnsafeHost             = "unsafe-host" // also without the file
	EffectsControlled             = "controlled"
	EffectsControlledBashApproval = "controlled-bash-approval"

	EffortAuto = "auto" // also without the file

	LifeOwned = "owned" // also without the file
	LifeTemp  = "temp"

	ReplayUnsafe = "unsafe" // also without the file
	ReplaySafe   = "safe"

	ModeCLI  = "cli" // also without the file
	ModeJSON = "json"
)

var (
	abiWord      = oneOf(libctx.ABI)
	approvalWord = oneOf(ApprovalAuto, ApprovalAsk)
	effectsWord  = oneOf(EffectsUnsafeHost, EffectsControlled, EffectsControlledBashApproval)
	effortWord   = oneOf(EffortAuto, "low", "medium", "high", "xhigh")
	lifeWord     = oneOf(LifeOwned, LifeTemp)
	statusWord   = oneOf("start", "ready", "busy", "idle", "stopping", "dead")
	replayWord   = oneOf(ReplaySafe, ReplayUnsafe)
	parallelWord = oneOf("0", "1")
	modeWord     = oneOf(ModeCLI, ModeJSON)
)

// ParseABI reads the file abi; libctx.ABI is the only value.
func ParseABI(text []byte) (string, error) { return value("abi", text, abiWord) }

// ParseApproval reads the file approval.
func ParseApproval(text []byte) (string, error) { return value("approval", text, approvalWord) }

// ParseEffects reads an agent's file effects.
func ParseEffects(text []byte) (string, error) { return value("effects", text, effectsWord) }

// ParseEffort reads an agent's file effort: auto, low, medium, high or xhigh.
func ParseEffort(text []byte) (string, error) { return value("effort", text, effortWord) }

// ParseLife reads the file life.
func ParseLife(text []byte) (string, error) { return value("life", text, lifeWord) }

// ParseStatus reads the file status: start, ready, busy, idle, stopping or dead.
func ParseStatus(text []byte) (string, error) { return value("status", text, statusWord) }

// ParseReplay reads a tool's file replay and reports whether a call of the tool
// may be repeated after a crash.
func ParseReplay(text []byte) (safe bool, err error) {
	w, err := value("replay", text, replayWord)
	return w == ReplaySafe, err
}

// ParseParallel reads a tool's file parallel, 0 or 1, and reports whether calls
// of the tool may run beside each other.
func ParseParallel(text []byte) (bool, error) {
	w, err := value("parallel", text, parallelWord)
	return w == "1", err
}

// ParseMode reads a tool's file mode.
func ParseMode(text []byte) (string, error) { return value("mode", text, modeWord) }
