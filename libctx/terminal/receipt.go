package terminal

import (
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ReceiptVersion is the version of the receipts this version writes and reads.
const ReceiptVersion = 1

// Receipt binds one launch of a terminal to facts of the kernel and of the
// supervisor, so that a later stop can prove that what it would stop is what was
// started.
type Receipt struct {
	Version  int    `json:"version"`
	Control  Object `json:"control"` // the agent's control directory
	Terminal Launch `json:"terminal"`
}

// Object is a file as the kernel knows it.
type Object struct {
	Dev uint64 `json:"dev"`
	Ino uint64 `json:"ino"`
}

// Launch is one generation of a terminal.
type Launch struct {
	Session    libctx.Session `json:"session"`
	Supervisor string         `json:"supervisor"` // "systemd" or "direct"
	Unit       string         `json:"unit"`
	Invocation string         `json:"invocation"` // id that systemd gave this start; empty without systemd
	PID        int            `json:"pid"`        // of the launcher
	Start      uint64         `json:"start"`      // its start time: clock ticks since boot
	Boot       string         `json:"boot"`       // boot id of the machine
	Socket     Socket         `json:"socket"`
	Identity   Identity       `json:"identity"`
}

// Socket is the terminal's socket file.
type Socket struct {
	Path string `json:"path"`
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
}

// Identity is the rights the launcher runs with.
type Identity struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups"`
}

// members are the exact members of the objects of a receipt, by their place.
var members = []struct {
	at    []string
	names []string
}{
	{nil, []string{"version", "control", "terminal"}},
	{[]string{"control"}, []string{"dev", "ino"}},
	{[]string{"terminal"}, []string{"session", "supervisor", "unit", "invocation", "pid", "start", "boot", "socket", "identity"}},
	{[]string{"terminal", "socket"}, []string{"path", "dev", "ino"}},
	{[]string{"terminal", "identity"}, []string{"uid", "gid", "groups"}},
}

// ParseReceipt decodes a receipt whose objects have exactly the members of this
// version, none more and none less; anything else is errdefs.Invalid.
func ParseReceipt(text []byte) (Receipt, error) {
	for _, m := range members {
		if err := exactly(text, m.at, m.names); err != nil {
			return Receipt{}, err
		}
	}
	var r Receipt
	if err := wire.Object(text, &r); err != nil {
		return Receipt{}, errdefs.New(errdefs.Invalid, "receipt: %w", err)
	}
	if err := r.check(); err != nil {
		return Receipt{}, err
	}
	return r, nil
}

func exactly(text []byte, at, names []string) error {
	where := "receipt"
	for _, name := range at {
		var object map[string]jsontext.Value
		if err := wire.Object(text, &object); err != nil {
			return errdefs.New(errdefs.Invalid, "%s: %w", where, err)
		}
		text, where = object[name], where+"."+name
	}
	var object map[string]jsontext.Value
	if err := wire.Object(text, &object); err != nil {
		return errdefs.New(errdefs.Invalid, "%s: %w", where, err)
	}
	for name := range object {
		if !slices.Contains(names, name) {
			return errdefs.New(errdefs.Invalid, "%s: unknown member %.40q", where, name)
		}
	}
	for _, name := range names {
		if v, ok := object[name]; !ok || v.Kind() == 'n' {
			return errdefs.New(errdefs.Invalid, "%s: member %s is missing", where, name)
		}
	}
	return nil
}

func (r Receipt) check() error {
	t := r.Terminal
	if _, err := libctx.ParseSession(string(t.Session)); err != nil {
		return errdefs.New(errdefs.Invalid, "receipt: %w", err)
	}
	switch {
	case r.Version != ReceiptVersion:
		return errdefs.New(errdefs.Invalid, "receipt of version %d, not %d", r.Version, ReceiptVersion)
	case t.Supervisor == "" || t.Unit == "" || t.Boot == "" || t.Socket.Path == "":
		return errdefs.New(errdefs.Invalid, "receipt: a member of terminal is empty")
	case t.PID < 2 || t.Start == 0:
		return errdefs.New(errdefs.Invalid, "receipt: pid %d with start %d is no process", t.PID, t.Start)
	}
	return nil
}

// Text is the receipt as JSON, every member present.
func (r Receipt) Text() (jsontext.Value, error) {
	if r.Terminal.Identity.Groups == nil {
		r.Terminal.Identity.Groups = []uint32{}
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "encode receipt: %w", err)
	}
	return text, nil
}
