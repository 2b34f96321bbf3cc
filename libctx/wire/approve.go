package wire

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// What a client can answer to an ApprovalRequest.
const (
	AllowOnce = "allow_once" // this call runs, and no other
	Deny      = "deny"
)

// Approve answers an ApprovalRequest, on the connection that was asked
// (docs/reference/approval.md). It has exactly these members: of all requests it
// alone is refused for one that is not known.
type Approve struct {
	Run      libctx.Run  `json:"run"`
	Call     libctx.Call `json:"id"`
	Decision string      `json:"decision"` // AllowOnce or Deny
}

// Op is "approve".
func (*Approve) Op() string { return "approve" }

// decodeApprove decodes the answer from its whole line.
func decodeApprove(line []byte) (Request, error) {
	var q struct {
		Op string `json:"op"`
		Approve
	}
	if err := Object(line, &q, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	switch {
	case q.Run == "":
		return nil, missing("run")
	case q.Call == "":
		return nil, missing("id")
	case q.Decision != AllowOnce && q.Decision != Deny:
		return nil, errdefs.New(errdefs.Invalid, "member decision is %.80q, not %q or %q", q.Decision, AllowOnce, Deny)
	}
	return &q.Approve, nil
}

// ApprovalRequest asks the client that began the run whether one call may be
// executed. Name, Arguments and Effect are those of what would run: of a call that
// goes through tsh the tool inside. Nothing of it is ever clipped. Digest is that of
// the exact call, UID is of who is asked, Expires how long an answer is waited for, in
// milliseconds.
type ApprovalRequest struct {
	Head
	Call      libctx.Call    `json:"call"`
	Name      libctx.Tool    `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
	Effect    string         `json:"effect"`
	Digest    string         `json:"digest"`
	UID       uint32         `json:"uid"`
	Expires   int64          `json:"expires_ms"`
}

// ApprovalResult says what came of an ApprovalRequest. Decision is AllowOnce or
// Deny, else a word for why there was no answer (docs/reference/approval.md), which
// is a refusal too.
type ApprovalResult struct {
	Head
	Call     libctx.Call `json:"call"`
	Decision string      `json:"decision"`
}
