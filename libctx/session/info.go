package session

import (
	"time"

	"cortexfs.org/libctx"
)

// Info describes a session, as its ledger has it.
type Info struct {
	Session          libctx.Session
	State            string     // StateIdle, StateActive, StateDone, StateError or StateCancelled
	Active           libctx.Run // the driven run without a checkpoint, "" if there is none
	Workspace        string     // host directory of the latest run that had one
	Cwd              string     // inside path of the latest driven run that had one
	Scope            string
	Created, Updated time.Time // by the host's clock, for people
	Turns            int64     // driven runs
	Tokens           Tokens
	Cost             int64  // picodollars
	TokensAtLeast    bool   // the use of some attempt is not known
	CostAtLeast      bool   // nor is it, or a price was not known
	Records, Bytes   int64  // of the ledger, whole lines only
	Damage           string // why the ledger can not be written, "" if it can
}

// SettledCall is a call whose result the host never saw: Open gave it an
// indeterminate one.
type SettledCall struct {
	Run  libctx.Run
	Call libctx.Call
	Name libctx.Tool
}
