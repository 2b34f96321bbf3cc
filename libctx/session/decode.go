package session

import (
	"fmt"
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// UnknownTypeError says that a record is of a type this version does not know:
// a newer version wrote it, or it is no ledger.
type UnknownTypeError struct{ Type string }

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("record type %.80q is not known to this version", e.Type)
}

var recordTypes = map[string]func() Record{
	"session":         func() Record { return new(SessionStart) },
	"entry":           func() Record { return new(Entry) },
	"head":            func() Record { return new(Head) },
	"usage":           func() Record { return new(Usage) },
	"usage_uncertain": func() Record { return new(UsageUncertain) },
	"checkpoint":      func() Record { return new(Checkpoint) },
	"fact":            func() Record { return new(Fact) },
}

func typeOf(r Record) string {
	switch r.(type) {
	case *SessionStart:
		return "session"
	case *Entry:
		return "entry"
	case *Head:
		return "head"
	case *Usage:
		return "usage"
	case *UsageUncertain:
		return "usage_uncertain"
	case *Checkpoint:
		return "checkpoint"
	case *Fact:
		return "fact"
	}
	return ""
}

// DecodeRecord decodes one line of a ledger. Members it does not know are
// ignored; a record type it does not know is errdefs.Invalid around an
// *UnknownTypeError.
func DecodeRecord(line []byte) (Record, error) {
	b, err := decodeBrief(line)
	if err != nil {
		return nil, err
	}
	r := recordTypes[b.Type]()
	if err := wire.Object(line, r); err != nil {
		return nil, err
	}
	return r, nil
}

// encode is the one way records and events become lines. Raw JSON from outside
// (arguments) keeps its spelling except for white space between tokens.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "a record can not be encoded: %w", err)
	}
	return append(b, '\n'), nil
}

// brief is what the state of a ledger needs to know of a record; everything
// else is skipped over.
type brief struct {
	Seq      int64           `json:"seq"`
	TS       string          `json:"ts"`
	Type     string          `json:"type"`
	Format   int             `json:"format"`
	Agent    libctx.Agent    `json:"agent"`
	Session  libctx.Session  `json:"session"`
	ID       *string         `json:"id"`
	Parent   *string         `json:"parent"`
	Run      libctx.Run      `json:"run"`
	Event    libctx.Event    `json:"event"`
	Kind     string          `json:"kind"`
	Role     string          `json:"role"`
	Content  []briefPart     `json:"content"`
	ClientID libctx.ClientID `json:"client_id"`
	Payload  string          `json:"payload"`
	Frame    briefFrame      `json:"frame"`
	Outcome  string          `json:"outcome"`
	Carried  []libctx.Call   `json:"carried"`
	Tokens   `json:",inline"`
	Cost     *int64 `json:"cost_picodollars"`

	id, parent uint32 // of entries and heads: numbers of ID and Parent
	size       int64  // of the line
}

type briefPart struct {
	Type string      `json:"type"`
	Call libctx.Call `json:"call"`
	Name libctx.Tool `json:"name"`
}

// check says that calls and results name their call, and calls their tool.
func (p briefPart) check() error {
	call := p.Type == "tool_call"
	if (call || p.Type == "tool_result") && p.Call == "" {
		return errdefs.New(errdefs.Invalid, "a %s has no member call", p.Type)
	}
	if call && p.Name == "" {
		return errdefs.New(errdefs.Invalid, "a tool_call has no member name")
	}
	return nil
}

type briefFrame struct {
	Type      string          `json:"type"`
	Op        string          `json:"op"`
	ClientID  libctx.ClientID `json:"client_id"`
	Scope     string          `json:"scope"`
	Cwd       string          `json:"cwd"`
	Workspace string          `json:"workspace"`
	Call      libctx.Call     `json:"call"`
	Name      libctx.Tool     `json:"name"`
	Allowed   bool            `json:"allowed"`
}

func decodeBrief(line []byte) (*brief, error) {
	b := new(brief)
	if err := wire.Object(line, b); err != nil {
		return nil, err
	}
	b.size = int64(len(line))
	if err := b.check(); err != nil {
		return nil, err
	}
	return b, nil
}

// check is what one record can be checked for without the others.
func (b *brief) check() error {
	bad := func(format string, args ...any) error { return errdefs.New(errdefs.Invalid, format, args...) }
	if _, ok := recordTypes[b.Type]; !ok {
		return bad("%w", &UnknownTypeError{b.Type})
	}
	if b.Seq < 1 {
		return bad("member seq is missing or not above 0")
	}
	ok := true
	switch b.Type {
	case "session":
		switch {
		case b.Format < 1:
			return bad("member format is missing or not above 0")
		case b.Agent == "" || b.Session == "":
			return bad("member agent or session is missing")
		}
		return nil
	case "entry", "head":
		if b.id, ok = entryNumber(b.ID); !ok || b.Type == "entry" && b.id == 0 {
			return bad("member id is not an entry id")
		}
		if b.parent, ok = entryNumber(b.Parent); !ok {
			return bad("member parent is not an entry id")
		}
		if b.Type == "head" {
			return nil
		}
		switch {
		case b.Kind == "":
			return bad("member kind is missing or empty")
		case b.Kind != KindMessage:
			return nil
		case b.Role != RoleUser && b.Role != RoleAssistant && b.Role != RoleTool:
			return bad("member role is not user, assistant or tool")
		}
		for _, p := range b.Content {
			if err := p.check(); err != nil {
				return err
			}
		}
	case "checkpoint":
		switch b.Outcome {
		case Completed, Failed, Cancelled, MaxTurns, Interrupted:
		default:
			return bad("member outcome is not one of completed, failed, cancelled, max_turns, interrupted")
		}
	case "fact":
		if b.Frame.Type == "" {
			return bad("member frame has no type")
		}
		if b.Run != "" && b.Event != "" {
			return bad("a fact of run %s has a member event", b.Run)
		}
		// A fact of the session, not of a run, has no run.
		return briefPart{b.Frame.Type, b.Frame.Call, b.Frame.Name}.check()
	}
	if b.Run == "" {
		return bad("member run is missing")
	}
	return nil
}

// entryNumber reads an entry id: "e" and a canonical decimal above 0; nil is 0.
func entryNumber(id *string) (uint32, bool) {
	if id == nil {
		return 0, true
	}
	s := *id
	if len(s) < 2 || s[0] != 'e' || s[1] < '1' || s[1] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[1:], 10, 30)
	return uint32(n), err == nil
}

// entryID is the id of the n-th entry; 0 is "".
func entryID(n uint32) string {
	if n == 0 {
		return ""
	}
	return "e" + strconv.FormatUint(uint64(n), 10)
}
