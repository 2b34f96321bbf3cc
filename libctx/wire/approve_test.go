package wire

import (
	"strings"
	"testing"

	"cortexfs.org/libctx"
)

// TestApprovalIsNeverClipped: arguments of the greatest length that can be asked
// about fit into a frame, whatever they are made of.
func TestApprovalIsNeverClipped(t *testing.T) {
	for _, of := range []string{"x", `\"`, "\u2028", "<", "é"} {
		args := `{"a":"` + strings.Repeat(of, (libctx.MaxInlineText-8)/len(of)) + `"}`
		line, err := MarshalFrame(&ApprovalRequest{
			Head: Head{Type: "approval_request"}, Call: "c", Name: "bash", Arguments: []byte(args), Effect: "host_process", Digest: "sha256:0",
		})
		if err != nil {
			t.Fatalf("%q: %v", of, err)
		}
		f, err := DecodeFrame(line)
		if err != nil || len(f.(*ApprovalRequest).Arguments) < len(args)-len(`\"`) {
			t.Errorf("%q: %v", of, err)
		}
	}
}
