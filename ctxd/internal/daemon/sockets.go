package daemon

import (
	"bytes"
	"fmt"
	"os"

	"cortexfs.org/ctxd/internal/activate"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/wire"
)

// holder describes the sockets that the activator holds.
type holder struct {
	layout  paths.Layout
	self    string // our own program
	options Options
	env     []string
}

// agent is the socket of an agent, and its server.
func (h holder) agent(agent libctx.Agent) activate.Socket {
	argv := []string{h.self, "--root", h.layout.Root, "--log-level", h.options.Level, "agent"}
	if h.options.Idle >= 0 {
		argv = append(argv, "--idle", h.options.Idle.String())
	}
	if h.options.Approval != libctx.ApprovalTimeout {
		argv = append(argv, "--approval-timeout", h.options.Approval.String())
	}
	return activate.Socket{
		Name: "agent " + string(agent),
		Bind: func() (*unixsock.Listener, error) {
			owner, _ := ownerOf(h.layout, agent) // refused files are answered by the agent's server
			return Bind(h.layout, agent, owner)
		},
		Unbound: func() { os.Remove(h.layout.AgentLink(agent)) },
		Command: append(argv, string(agent)),
		Env:     h.env,
		Refusal: func(why error) []byte { return agentRefusal(agent, why) },
	}
}

// models is the socket of the models, for us and root alone. Its server gets no
// environment: what it needs to know stands in its arguments.
func (h holder) models(program string) activate.Socket {
	return activate.Socket{
		Name: "models",
		Bind: func() (*unixsock.Listener, error) {
			return unixsock.Listen(h.layout.ModelSocket(), unixsock.Options{Perm: 0o600, UID: -1, GID: -1})
		},
		Command: []string{
			program, "serve", "--root", h.layout.Root, "--config", h.layout.Config, "--secrets", h.layout.Secrets,
			"--idle", idleDefault.String(),
		},
		Refusal: modelRefusal,
	}
}

// advice says where more about a server that does not start is to be found.
const advice = "its server does not start: %v; the log of ctxd serve says more"

// agentRefusal is what a client of an agent is told whose server does not start.
func agentRefusal(agent libctx.Agent, why error) []byte {
	line, err := wire.MarshalFrame(&wire.Error{
		Head: wire.Head{Type: "error"}, Code: errdefs.Unavailable,
		Message: fmt.Sprintf("agent %s: "+advice, agent, why),
	})
	if err != nil {
		return nil // a frame over its limit, which this text is far from
	}
	return line
}

// modelRefusal is the same for a client of the model socket.
func modelRefusal(why error) []byte {
	failure := modelwire.Fail(errdefs.Unavailable, modelwire.PhasePreSend, modelwire.ClassOther, "models: "+advice, why)
	var lines bytes.Buffer
	for _, f := range []modelwire.Frame{&modelwire.Error{Failure: *failure}, &modelwire.Done{Status: "error"}} {
		line, err := modelwire.MarshalFrame(f)
		if err != nil {
			return nil
		}
		lines.Write(line)
	}
	return lines.Bytes()
}
