package admit

import (
	"fmt"

	"cortexfs.org/libctx"
)

// UseModel judges whether an agent may use a model. name is what its model
// control or a line of fallback says, id the provider/model that this means. A
// line of the policy may name either. own says that name is an alias of the
// user's own in somebody else's tree: then the line must name id, since the
// user decides where the alias leads and the policy may not be the user's.
// Nothing else is asked: a model needs no line about the network.
func UseModel(a Agent, name, id libctx.Model, own bool) Verdict {
	v := Verdict{Stage: "model policy"}
	uses := func(m libctx.Model) bool { return a.Policy.Allows(a.Subject, "model", string(m), "use") }
	if v.OK = uses(id) || !own && uses(name); v.OK {
		return v
	}
	v.Code = AgentPolicy
	v.Reason = fmt.Sprintf("no line allows %s model:%s use", a.Subject, id)
	v.Want = fmt.Sprintf("allow %s model:%s use in policy", a.Subject, id)
	if name != id {
		v.Reason += fmt.Sprintf(", which is what %s means", name)
	}
	return v
}
