package hook

import (
	"cortexfs.org/ctxd/internal/calls"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/view"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// told is the line that a hook reads. The arguments are whole, however long: what a
// hook does not see it can not refuse. They are not reformatted but for white space.
type told struct {
	Hook      string         `json:"hook"` // "pre" or "post"
	Agent     libctx.Agent   `json:"agent"`
	Session   libctx.Session `json:"session"`
	Run       libctx.Run     `json:"run"`
	Call      libctx.Call    `json:"call"`
	Tool      libctx.Tool    `json:"tool"`
	Path      string         `json:"path,omitzero"`
	Via       libctx.Tool    `json:"via,omitzero"`
	Effect    string         `json:"effect"`
	Cwd       string         `json:"cwd"`
	Digest    string         `json:"digest"`
	Arguments jsontext.Value `json:"arguments"`
	Status    string         `json:"status,omitzero"` // of a call that is over
}

// tell is the line about a call, with its LF: libctx.MaxCallArguments of arguments
// and a few names are its bound.
func tell(c calls.HookCall, when view.When, status string) ([]byte, error) {
	i := c.Intent
	t := told{
		Hook: "pre", Agent: c.Agent.Name, Session: i.Session, Run: i.Run, Call: i.Call, Tool: i.Tool, Path: i.Path, Via: i.Via,
		Effect: string(i.Effect), Cwd: i.Cwd, Digest: c.Digest.String(), Arguments: i.Arguments, Status: status,
	}
	if when == view.After {
		t.Hook = "post"
	}
	b, err := json.Marshal(t, jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, errdefs.New(errdefs.Internal, "encode the call: %w", err)
	}
	return append(b, '\n'), nil
}
