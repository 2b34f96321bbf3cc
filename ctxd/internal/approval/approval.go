// Package approval is the question whether one call may be executed, and the race
// for its answer: of the person, of a cancelled run, of a lost connection, of the
// clock. The first that comes ends the question, and nothing but the answer that
// names this call allows it (docs/reference/approval.md).
package approval

import (
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// Question is what a person is asked. Name, Arguments and Effect are those of what
// would run: of a call through tsh the tool inside. Arguments are at most
// libctx.MaxInlineText bytes.
type Question struct {
	Run       libctx.Run
	Call      libctx.Call
	Name      libctx.Tool
	Arguments jsontext.Value
	Effect    control.Effect
	Digest    string
	Expires   time.Duration // 0: libctx.ApprovalTimeout, which is also the most
}

// Frame is the question, put to that user, as clients get it and as it is recorded.
func (q Question) Frame(uid uint32) *wire.ApprovalRequest {
	return &wire.ApprovalRequest{
		Head: wire.Head{Type: "approval_request"}, Call: q.Call, Name: q.Name, Arguments: q.Arguments,
		Effect: string(q.Effect), Digest: q.Digest, UID: uid, Expires: q.Expires.Milliseconds(),
	}
}

// Answer is what came of a question. Decision is one of the words below.
type Answer struct {
	Allowed  bool
	Decision string
	Err      error // what ends the run: it was cancelled, or its storage failed
}

// Decisions. But for AllowOnce all of them refuse the call.
const (
	AllowOnce    = wire.AllowOnce
	Deny         = wire.Deny
	Timeout      = "timeout"      // nobody answered in time
	Disconnected = "disconnected" // who was to be asked is not there, can say nothing, or was not reached
	Cancelled    = "cancelled"    // the run was told to end
	Invalid      = "invalid"      // what was answered is no answer, or one to something else
)

// answer is what a decision comes to.
func answer(decision string) Answer {
	return Answer{Allowed: decision == AllowOnce, Decision: decision}
}
