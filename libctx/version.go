package libctx

import "runtime/debug"

// Version is the release; the build sets it with
// -ldflags "-X cortexfs.org/libctx.Version=…".
var Version = "0.1.0-dev"

// Protocol is the number `pong` carries: the version of the agent socket.
//
//	1  2026-11-30  first version
const Protocol = 1

// LedgerFormat is the `format` member of a ledger's first record.
//
//	1  2026-11-30  first version
const LedgerFormat = 1

// ABI is the only value an executable agent's `abi` control may have.
const ABI = "sdk-envelope-v1"

// EnvelopeSchema names the invocation an executable agent reads on stdin.
const EnvelopeSchema = "cortexfs.agent-invocation/v1"

// Build describes the running binary: its version, and the toolchain that made
// it.
func Build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Version
	}
	return Version + " (" + info.GoVersion + ")"
}
