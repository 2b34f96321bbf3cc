package runs

import (
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// approvals reads the names of --approve: tools whose calls the caller allows.
func approvals(names []string) ([]libctx.Tool, error) {
	var tools []libctx.Tool
	for _, name := range names {
		t, err := libctx.ParseTool(name)
		if err != nil {
			return nil, errdefs.New(errdefs.Invalid, "flag --approve: %w", err)
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// answer answers a question at once: nobody is there to look at it. What the caller
// did not allow by its exact name is refused, and how it can be allowed is said.
func (t *target) answer(q *wire.ApprovalRequest) error {
	a := &wire.Approve{Run: q.Run, Call: q.Call, Decision: wire.Deny}
	if slices.Contains(t.approve, q.Name) {
		a.Decision = wire.AllowOnce
	}
	t.answered = true
	if err := t.request(a); err != nil {
		return t.lost(err)
	}
	if a.Decision == wire.Deny {
		t.show.warn("a call of " + string(q.Name) + " needs approval: denied; --approve " + string(q.Name) + " allows it")
	}
	return nil
}
