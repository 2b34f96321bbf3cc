package adminwire

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
)

// Version is the number of the protocol, which pong says.
const Version = 1

// The operations.
const (
	Ping   = "ping"         // asks who serves the socket
	New    = "agent.new"    // makes an agent
	Set    = "agent.set"    // replaces one of its controls
	Remove = "agent.rm"     // removes it
	Enable = "agent.enable" // makes its units what its files ask for
)

// Request is one request. Which members belong to which operation is what check
// says and PROTOCOL.md shows.
type Request struct {
	Op    string       `json:"op"`
	Agent libctx.Agent `json:"agent,omitzero"`

	// Of New.
	Owner   *uint32  `json:"owner,omitzero"`   // whose agent it is; absent: the peer's
	Model   string   `json:"model,omitzero"`   // what drives it,
	Program int64    `json:"program,omitzero"` // or the bytes of the program that follow the line
	Perm    string   `json:"perm,omitzero"`
	Tools   []string `json:"tools,omitzero"`
	Native  []string `json:"native,omitzero"`
	Mounts  []string `json:"mounts,omitzero"` // each SRC:DST:ro or rw
	Allow   []string `json:"allow,omitzero"`  // each "CLASS:NAME PERMISSION"
	System  *string  `json:"system,omitzero"` // system.md

	// Of Set.
	Control string  `json:"control,omitzero"`
	Content *string `json:"content,omitzero"`

	// Of Remove: its sessions and data too.
	Purge bool `json:"purge,omitzero"`
}

// Encode writes the request as one line. One over libctx.MaxFrame is
// errdefs.TooBig.
func (r Request) Encode() ([]byte, error) {
	b, err := wire.Marshal(r)
	if err == nil && len(b) > libctx.MaxFrame {
		err = errdefs.New(errdefs.TooBig, "the request has %d bytes, over the limit of %d", len(b), libctx.MaxFrame)
	}
	return b, err
}

// Decode reads one line. A line that is no request is errdefs.Invalid, an
// operation that is not offered errdefs.Unsupported.
func Decode(line []byte) (Request, error) {
	var r Request
	if err := wire.Object(line, &r, json.RejectUnknownMembers(true)); err != nil {
		// Of a later version is what names an operation that is not known here.
		var head struct {
			Op string `json:"op"`
		}
		if wire.Object(line, &head) == nil && head.Op != "" && !known(head.Op) {
			return Request{}, unsupported(head.Op)
		}
		return Request{}, err
	}
	if err := r.check(); err != nil {
		return Request{}, err
	}
	return r, nil
}

func known(op string) bool {
	switch op {
	case Ping, New, Set, Remove, Enable:
		return true
	}
	return false
}

func unsupported(op string) error {
	return errdefs.New(errdefs.Unsupported, "operation %.80q is not offered", op)
}

// check tests the form of a request: what its members say is for the server.
func (r *Request) check() error {
	isNew, set := r.Op == New, r.Op == Set
	made := r.Owner != nil || r.Model != "" || r.Program != 0 || r.Perm != "" ||
		r.Tools != nil || r.Native != nil || r.Mounts != nil || r.Allow != nil || r.System != nil
	switch {
	case r.Op == "":
		return missing("op")
	case !known(r.Op):
		return unsupported(r.Op)
	case (r.Agent == "") != (r.Op == Ping):
		if r.Op == Ping {
			return foreign("agent", r.Op)
		}
		return missing("agent")
	case made && !isNew:
		return foreign("a new agent", r.Op)
	case (r.Control != "" || r.Content != nil) && !set:
		return foreign("a control", r.Op)
	case r.Purge && r.Op != Remove:
		return foreign("purge", r.Op)
	case set && r.Control == "":
		return missing("control")
	case set && r.Content == nil:
		return missing("content")
	case isNew && (r.Model == "") == (r.Program == 0):
		return errdefs.New(errdefs.Invalid, "a new agent has either a model or a program")
	case r.Program < 0 || r.Program > libctx.MaxToolFile:
		return errdefs.New(errdefs.TooBig, "program: %d bytes are not 1 to %d", r.Program, libctx.MaxToolFile)
	}
	for _, list := range [][]string{r.Tools, r.Native, r.Mounts, r.Allow} {
		if len(list) > libctx.MaxListLines {
			return errdefs.New(errdefs.Invalid, "a list of %d is longer than %d", len(list), libctx.MaxListLines)
		}
	}
	return nil
}

func missing(name string) error {
	return errdefs.New(errdefs.Invalid, "member %s is missing or empty", name)
}

func foreign(what, op string) error {
	return errdefs.New(errdefs.Invalid, "members of %s have no place in %s", what, op)
}
