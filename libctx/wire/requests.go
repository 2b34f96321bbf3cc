package wire

import (
	"path"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Request is one line a client writes. The concrete types below are the
// operations of the agent socket.
type Request interface{ Op() string }

// Ping asks whether the daemon answers.
type Ping struct{}

// Send starts a run with a person's input (docs/reference/socket.md).
type Send struct {
	ID        libctx.ClientID `json:"id"`
	Session   libctx.Session  `json:"session"`
	Scope     string          `json:"scope"`     // "private" (default), "shared:SPACE", "temp"
	Workspace string          `json:"workspace"` // host directory; "" means the session's last
	Cwd       string          `json:"cwd"`       // inside path; "" means the agent's cwd control
	Tools     *bool           `json:"tools"`     // false: the run may call no tool
	Input     string          `json:"input"`
}

// Tsh runs one tool without a model.
type Tsh struct {
	ID        libctx.ClientID `json:"id"`
	Session   libctx.Session  `json:"session"`
	Workspace string          `json:"workspace"`
	Cwd       string          `json:"cwd"`
	Args      []string        `json:"args"`
}

// Resume asks for the durable frames after a cursor, then live ones.
type Resume struct {
	Session libctx.Session `json:"session"`
	After   libctx.Event   `json:"after"`
}

// Cancel cancels a run, named by its run id or its client id. Session narrows a
// client id to one session; without it the session with a live run of that id
// is meant.
type Cancel struct {
	ID      string         `json:"id"`
	Session libctx.Session `json:"session"`
}

// Steer says something into the active run of a session, before the model is
// asked the next time (docs/reference/socket.md).
type Steer struct {
	ID      libctx.ClientID `json:"id"`
	Session libctx.Session  `json:"session"`
	Input   string          `json:"input"`
}

// FollowUp goes on with the active run of a session where it would end.
type FollowUp struct {
	ID      libctx.ClientID `json:"id"`
	Session libctx.Session  `json:"session"`
	Input   string          `json:"input"`
}

// Finish is Steer, and from then on the run may call no tool.
type Finish struct {
	ID      libctx.ClientID `json:"id"`
	Session libctx.Session  `json:"session"`
	Input   string          `json:"input"`
}

// StatusOf asks for the state of one session.
type StatusOf struct {
	Session libctx.Session `json:"session"`
}

// Stop cancels the agent's runs, stops its terminals whose receipts are proven,
// and ends its process; with a session it does so in this session alone, and the
// process goes on.
type Stop struct {
	Agent   libctx.Agent   `json:"agent"`
	Session libctx.Session `json:"session"`
}

// Receipt hands over what was read back of a terminal that has just been started
// for a session: which process of which supervisor it is.
type Receipt struct {
	Session libctx.Session `json:"session"`
	Receipt jsontext.Value `json:"receipt"` // an object (docs/reference/supervisors.md), at most libctx.MaxReceipt bytes
}

func (*Ping) Op() string     { return "ping" }
func (*Send) Op() string     { return "send" }
func (*Tsh) Op() string      { return "tsh" }
func (*Resume) Op() string   { return "resume" }
func (*Cancel) Op() string   { return "cancel" }
func (*Steer) Op() string    { return "steer" }
func (*FollowUp) Op() string { return "follow_up" }
func (*Finish) Op() string   { return "finish" }
func (*StatusOf) Op() string { return "status" }
func (*Stop) Op() string     { return "stop" }
func (*Receipt) Op() string  { return "receipt" }

// MarshalRequest encodes a request as one line.
func MarshalRequest(r Request) ([]byte, error) {
	body, err := json.Marshal(r, json.Deterministic(true), json.OmitZeroStructFields(true))
	if err != nil {
		return nil, errdefs.New(errdefs.Internal, "encode request: %w", err)
	}
	line := `{"op":"` + r.Op() + `"`
	if rest := strings.TrimPrefix(string(body), "{"); rest != "}" {
		line += "," + rest
	} else {
		line += "}"
	}
	return []byte(line + "\n"), nil
}

// requests maps the op member to a decoder target.
var requests = map[string]func() Request{
	"ping":      func() Request { return new(Ping) },
	"send":      func() Request { return new(Send) },
	"tsh":       func() Request { return new(Tsh) },
	"resume":    func() Request { return new(Resume) },
	"cancel":    func() Request { return new(Cancel) },
	"approve":   func() Request { return new(Approve) },
	"steer":     func() Request { return new(Steer) },
	"follow_up": func() Request { return new(FollowUp) },
	"finish":    func() Request { return new(Finish) },
	"status":    func() Request { return new(StatusOf) },
	"stop":      func() Request { return new(Stop) },
	"receipt":   func() Request { return new(Receipt) },
}

// Ops lists the operations that DecodeRequest knows.
func Ops() []string {
	ops := make([]string, 0, len(requests))
	for op := range requests {
		ops = append(ops, op)
	}
	return ops
}

// DecodeRequest decodes and checks one request line. Every error is
// errdefs.Invalid and says which member is wrong. Defaults are filled in:
// session "default", scope "private".
func DecodeRequest(line []byte) (Request, error) {
	var head struct {
		Op *string `json:"op"`
	}
	if err := Object(line, &head); err != nil {
		return nil, err
	}
	if head.Op == nil {
		return nil, errdefs.New(errdefs.Invalid, "member op is missing")
	}
	target, ok := requests[*head.Op]
	if !ok {
		return nil, errdefs.New(errdefs.Invalid, "unknown operation %.80q", *head.Op)
	}
	r := target()
	if _, answer := r.(*Approve); answer {
		return decodeApprove(line)
	}
	if err := Object(line, r); err != nil {
		return nil, err
	}
	if err := check(r); err != nil {
		return nil, err
	}
	return r, nil
}

func check(r Request) error {
	session := func(s *libctx.Session) {
		if *s == "" {
			*s = libctx.DefaultSession
		}
	}
	switch r := r.(type) {
	case *Send:
		session(&r.Session)
		if r.Scope == "" {
			r.Scope = "private"
		}
		if err := checkInput(r.ID, r.Input); err != nil {
			return err
		}
		if err := checkScope(r.Scope); err != nil {
			return err
		}
		return checkPlaces(r.Workspace, r.Cwd)
	case *Tsh:
		session(&r.Session)
		if r.ID == "" {
			return missing("id")
		}
		if err := CheckArgs(r.Args); err != nil {
			return err
		}
		return checkPlaces(r.Workspace, r.Cwd)
	case *Resume:
		session(&r.Session)
	case *Steer:
		session(&r.Session)
		return checkInput(r.ID, r.Input)
	case *FollowUp:
		session(&r.Session)
		return checkInput(r.ID, r.Input)
	case *Finish:
		session(&r.Session)
		return checkInput(r.ID, r.Input)
	case *StatusOf:
		session(&r.Session)
	case *Cancel:
		if r.ID == "" {
			return missing("id")
		}
		if _, err := libctx.ParseClientID(r.ID); err != nil {
			return errdefs.New(errdefs.Invalid, "member id: %w", err)
		}
	case *Stop:
		if r.Agent == "" {
			return missing("agent")
		}
	case *Receipt:
		session(&r.Session)
		switch {
		case len(r.Receipt) == 0:
			return missing("receipt")
		case r.Receipt.Kind() != '{':
			return errdefs.New(errdefs.Invalid, "member receipt is not an object")
		case len(r.Receipt) > libctx.MaxReceipt:
			return errdefs.New(errdefs.Invalid, "member receipt is longer than %d bytes", libctx.MaxReceipt)
		}
	}
	return nil
}

func missing(name string) error {
	return errdefs.New(errdefs.Invalid, "member %s is missing or empty", name)
}

// checkInput checks a person's words and their id.
func checkInput(id libctx.ClientID, input string) error {
	switch {
	case id == "":
		return missing("id")
	case input == "":
		return missing("input")
	case strings.ContainsRune(input, 0):
		return errdefs.New(errdefs.Invalid, "member input holds a NUL character")
	}
	return nil
}

// checkScope accepts the scopes this version knows and names the reserved one.
func checkScope(scope string) error {
	space, shared := strings.CutPrefix(scope, "shared:")
	switch {
	case scope == "private", scope == "temp":
		return nil
	case scope == "shared", shared:
		if shared {
			if _, err := libctx.ParseSpace(space); err != nil {
				return errdefs.New(errdefs.Invalid, "member scope: %w", err)
			}
		}
		return errdefs.New(errdefs.Invalid, "scope shared is not offered yet")
	}
	return errdefs.New(errdefs.Invalid, "unknown scope %.80q", scope)
}

// checkPlaces checks the form of the two directories of a request; whether they
// may be used is decided where they are opened.
func checkPlaces(workspace, cwd string) error {
	for _, p := range []struct{ name, value string }{{"workspace", workspace}, {"cwd", cwd}} {
		switch {
		case p.value == "":
		case !path.IsAbs(p.value):
			return errdefs.New(errdefs.Invalid, "member %s is not an absolute path", p.name)
		case strings.ContainsRune(p.value, 0):
			return errdefs.New(errdefs.Invalid, "member %s holds a NUL character", p.name)
		case len(p.value) > libctx.MaxArg:
			return errdefs.New(errdefs.Invalid, "member %s is longer than %d bytes", p.name, libctx.MaxArg)
		}
	}
	return nil
}

// CheckArgs checks the words of a tsh request: 1 to 64 words, each at most 4096
// bytes and without NUL, the first a word that can be a command.
func CheckArgs(args []string) error {
	if len(args) == 0 || len(args) > libctx.MaxArgs {
		return errdefs.New(errdefs.Invalid, "member args holds %d words, not 1 to %d", len(args), libctx.MaxArgs)
	}
	for _, a := range args {
		if len(a) > libctx.MaxArg {
			return errdefs.New(errdefs.Invalid, "a word of args is longer than %d bytes", libctx.MaxArg)
		}
		if strings.ContainsRune(a, 0) {
			return errdefs.New(errdefs.Invalid, "a word of args holds a NUL character")
		}
	}
	switch args[0] {
	case "", "tsh", "--root", "-r":
		return errdefs.New(errdefs.Invalid, "args can not begin with %q", args[0])
	}
	return nil
}
