package termwire

import (
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
)

// Protocol is the version that Hello carries.
const Protocol = 1

// Request is one line of a client. The first one is Watch, Attach or Emit, and
// grants the mode for the connection's life.
type Request interface{ Op() string }

// Watch asks to see the terminal. A client without a size is a pipe: it gets
// the program's bytes and never a screen.
type Watch struct {
	Size              // of the client's own terminal
	Term       string `json:"term,omitzero"`       // its type, for information
	Scrollback int    `json:"scrollback,omitzero"` // lines above the screen wanted before it, to libctx.MaxTermScrollback
}

// Attach asks to see the terminal and to type into it; its Size is required and
// takes part in the terminal's.
type Attach struct {
	Size
	Term       string `json:"term,omitzero"`
	Scrollback int    `json:"scrollback,omitzero"`
}

// Emit asks to show marked output between that of the program.
type Emit struct{}

// Input is typed into the terminal; attached clients only.
type Input struct {
	Data []byte `json:"data_b64"` // 1 to libctx.MaxTermInput bytes
}

// Output is shown in the terminal; emitters only. It never reaches the program.
type Output struct {
	Data []byte `json:"data_b64"` // 1 to libctx.MaxTermInput bytes
}

// Resize says the new size of the client's own terminal; attached clients only.
type Resize struct{ Size }

// Signal signals the terminal's foreground process group; attached clients only.
type Signal struct {
	Name string `json:"name"` // one of Signals
}

// Detach ends the connection.
type Detach struct{}

func (*Watch) Op() string  { return "watch" }
func (*Attach) Op() string { return "attach" }
func (*Emit) Op() string   { return "emit" }
func (*Input) Op() string  { return "input" }
func (*Output) Op() string { return "output" }
func (*Resize) Op() string { return "resize" }
func (*Signal) Op() string { return "signal" }
func (*Detach) Op() string { return "detach" }

// Signals are the names that Signal takes.
func Signals() []string {
	return []string{"INT", "TERM", "HUP", "QUIT", "KILL", "USR1", "USR2", "TSTP", "CONT"}
}

// requests maps the op member to a decoder target.
var requests = map[string]func() Request{
	"watch":  func() Request { return new(Watch) },
	"attach": func() Request { return new(Attach) },
	"emit":   func() Request { return new(Emit) },
	"input":  func() Request { return new(Input) },
	"output": func() Request { return new(Output) },
	"resize": func() Request { return new(Resize) },
	"signal": func() Request { return new(Signal) },
	"detach": func() Request { return new(Detach) },
}

// MarshalRequest encodes a request as one line with its LF. A request that
// DecodeRequest would refuse is errdefs.Invalid.
func MarshalRequest(r Request) ([]byte, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	return marshal(`{"op":"`+r.Op()+`"`, r)
}

// marshal puts the members of v behind the first one.
func marshal(first string, v any) ([]byte, error) {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, errdefs.New(errdefs.Internal, "encode: %w", err)
	}
	line := make([]byte, 0, len(first)+len(body)+2)
	line = append(line, first...)
	if len(body) > len("{}") {
		line = append(line, ',')
	}
	line = append(line, body[1:]...)
	return append(line, '\n'), nil
}

// DecodeRequest decodes and checks one line of a client, with or without its
// LF. Every error is errdefs.Invalid and says which member is wrong.
func DecodeRequest(line []byte) (Request, error) {
	var head struct {
		Op *string `json:"op"`
	}
	if err := wire.Object(line, &head); err != nil {
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
	if err := wire.Object(line, r); err != nil {
		return nil, err
	}
	if err := check(r); err != nil {
		return nil, err
	}
	return r, nil
}

func check(r Request) error {
	switch r := r.(type) {
	case *Watch:
		if r.Size != (Size{}) {
			if err := r.Size.Valid(); err != nil {
				return err
			}
		}
		return checkView(r.Term, r.Scrollback)
	case *Attach:
		if err := r.Size.Valid(); err != nil {
			return err
		}
		return checkView(r.Term, r.Scrollback)
	case *Input:
		return checkData(r.Data)
	case *Output:
		return checkData(r.Data)
	case *Resize:
		return r.Size.Valid()
	case *Signal:
		if !slices.Contains(Signals(), r.Name) {
			return errdefs.New(errdefs.Invalid, "signal %.20q is none of %s", r.Name, strings.Join(Signals(), " "))
		}
	}
	return nil
}

func checkView(term string, scrollback int) error {
	switch {
	case len(term) > libctx.MaxName:
		return errdefs.New(errdefs.Invalid, "member term is longer than %d bytes", libctx.MaxName)
	case scrollback < 0 || scrollback > libctx.MaxTermScrollback:
		return errdefs.New(errdefs.Invalid, "member scrollback is %d, not 0 to %d", scrollback, libctx.MaxTermScrollback)
	}
	return nil
}

func checkData(data []byte) error {
	switch {
	case len(data) == 0:
		return errdefs.New(errdefs.Invalid, "member data_b64 is missing or empty")
	case len(data) > libctx.MaxTermInput:
		return errdefs.New(errdefs.Invalid, "member data_b64 holds more than %d bytes", libctx.MaxTermInput)
	}
	return nil
}
