package terminal

import (
	"slices"
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// State of a terminal.
type State string

// The states. A terminal goes from Created to Running to Exited; Error is one
// that did not start, or whose launcher lost it.
const (
	Created State = "created"
	Running State = "running"
	Exited  State = "exited"
	Error   State = "error"
)

func states() []State { return []State{Created, Running, Exited, Error} }

// ID names the terminal of a session; two sessions can have the same one
// (paths.TerminalID).
func ID(a libctx.Agent, s libctx.Session) string { return paths.TerminalID(a, s) }

// Meta is the content of meta.json. What it says of life is what was true when
// it was written: whether the terminal lives, its supervisor and its socket
// know.
type Meta struct {
	ID         string         `json:"id"`
	Agent      libctx.Agent   `json:"agent"`
	Session    libctx.Session `json:"session"`
	Owner      string         `json:"owner"`              // uid in decimal digits
	Cwd        string         `json:"cwd"`                // as seen inside
	Command    []string       `json:"command"`            // the program on the terminal, with its words
	Workspace  string         `json:"workspace,omitzero"` // host directory at /workspace
	State      State          `json:"state"`
	Socket     string         `json:"socket"`              // host path of the real socket
	CreatedAt  int64          `json:"created_at"`          // Unix seconds of the latest start
	Size       string         `json:"size,omitzero"`       // COLSxROWS at the start
	Supervisor string         `json:"supervisor,omitzero"` // "systemd" or "direct"
	Emit       bool           `json:"emit"`                // the agent's tool calls are shown in it
	Error      string         `json:"error,omitzero"`      // why the state is Error
	ExitCode   *int           `json:"exit_code,omitzero"`  // of the program, once the state is Exited
	// Receipt is the receipt of the latest launch, as it stands in the file:
	// ParseReceipt reads it. Rest are members that this version does not know;
	// they are kept.
	Receipt jsontext.Value `json:"runtime_receipt,omitzero"`
	Rest    jsontext.Value `json:",embed"`
}

// OwnerUID is Owner as a number.
func (m Meta) OwnerUID() (uint32, error) {
	uid, err := strconv.ParseUint(m.Owner, 10, 32)
	if err != nil || strconv.FormatUint(uid, 10) != m.Owner {
		return 0, errdefs.New(errdefs.Invalid, "owner %.20q is not a uid", m.Owner)
	}
	return uint32(uid), nil
}

// ParseMeta decodes and checks a meta.json. Errors are errdefs.Invalid.
func ParseMeta(text []byte) (Meta, error) {
	var m Meta
	if err := wire.Object(text, &m); err != nil {
		return Meta{}, err
	}
	if err := m.check(); err != nil {
		return Meta{}, err
	}
	return m, nil
}

// Text is m as the text of a meta.json, one line.
func (m Meta) Text() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "encode meta.json: %w", err)
	}
	if len(text) >= libctx.MaxControlFile {
		return nil, errdefs.New(errdefs.TooBig, "meta.json of %d bytes is over the limit of %d", len(text), libctx.MaxControlFile)
	}
	return append(text, '\n'), nil
}

func (m Meta) check() error {
	if _, err := libctx.ParseAgent(string(m.Agent)); err != nil {
		return errdefs.New(errdefs.Invalid, "member agent: %w", err)
	}
	if _, err := libctx.ParseSession(string(m.Session)); err != nil {
		return errdefs.New(errdefs.Invalid, "member session: %w", err)
	}
	if _, err := m.OwnerUID(); err != nil {
		return errdefs.New(errdefs.Invalid, "member owner: %w", err)
	}
	if m.Size != "" {
		if _, err := termwire.ParseSize(m.Size); err != nil {
			return errdefs.New(errdefs.Invalid, "member size: %w", err)
		}
	}
	switch {
	case m.ID != ID(m.Agent, m.Session):
		return errdefs.New(errdefs.Invalid, "member id is %.80q, not that of its agent and session", m.ID)
	case !slices.Contains(states(), m.State):
		return errdefs.New(errdefs.Invalid, "state %.20q is not a state", m.State)
	}
	return nil
}
