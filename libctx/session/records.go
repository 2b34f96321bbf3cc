package session

import (
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Record is one line of the ledger. The concrete types below are the record
// types; each embeds Meta, which Commit fills in.
type Record interface{ Header() *Meta }

// Meta is what records have in common. Seq counts the records of the ledger
// from 1 and is the only order there is; TS is the host's clock, RFC 3339 with
// milliseconds, UTC, for people.
type Meta struct {
	Seq  int64  `json:"seq"`
	TS   string `json:"ts"`
	Type string `json:"type"`
}

// Header gives access to the common members.
func (m *Meta) Header() *Meta { return m }

// SessionStart is the first record. Commit writes it in front of the first
// batch; callers need not.
type SessionStart struct {
	Meta
	Format  int            `json:"format"`
	Agent   libctx.Agent   `json:"agent"`
	Session libctx.Session `json:"session"`
}

// KindMessage is the kind of an entry that is a message of the conversation.
// Entries of other kinds are kept, and are no part of Conversation.
const KindMessage = "message"

// The roles of message entries.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Entry is a node of the conversation tree. ID is "e1", "e2", … without gaps;
// Parent is "" for a root, which the file shows as null. An Entry committed
// with an empty ID gets the next id, and the tip as its parent. An entry whose
// parent is the tip becomes the tip.
type Entry struct {
	Meta
	ID       string
	Parent   string
	Run      libctx.Run
	Kind     string
	Role     string
	Content  []wire.Part
	ClientID libctx.ClientID
	// Origin is the operation by which a user's message came into a run that was
	// going on: OpSteer, OpFollowUp or OpFinish; "" for one that began a run.
	Origin string
	// Of an assistant's message that a model wrote: the model, why it stopped
	// ("end", "tool_calls", …, as libctx/modelwire has it), and what its provider
	// wants to see again, which goes back only to the same provider and model.
	Model  libctx.Model
	Stop   string
	Opaque *modelwire.Opaque
}

// entryJSON is the form of Entry in the file.
type entryJSON struct {
	Meta
	ID       string            `json:"id"`
	Parent   *string           `json:"parent"`
	Run      libctx.Run        `json:"run,omitzero"`
	Kind     string            `json:"kind"`
	Role     string            `json:"role,omitzero"`
	Model    libctx.Model      `json:"model,omitzero"`
	Content  []wire.Part       `json:"content,omitzero"`
	Stop     string            `json:"stop,omitzero"`
	Opaque   *modelwire.Opaque `json:"opaque,omitzero"`
	ClientID libctx.ClientID   `json:"client_id,omitzero"`
	Origin   string            `json:"origin,omitzero"`
}

// MarshalJSONTo writes the entry with a null parent where there is none.
func (e *Entry) MarshalJSONTo(enc *jsontext.Encoder) error {
	j := entryJSON{
		Meta: e.Meta, ID: e.ID, Run: e.Run, Kind: e.Kind, Role: e.Role, Content: e.Content, ClientID: e.ClientID, Origin: e.Origin,
		Model: e.Model, Stop: e.Stop, Opaque: e.Opaque,
	}
	if e.Parent != "" {
		j.Parent = &e.Parent
	}
	return json.MarshalEncode(enc, &j)
}

// UnmarshalJSONFrom reads what MarshalJSONTo writes.
func (e *Entry) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var j entryJSON
	if err := json.UnmarshalDecode(dec, &j); err != nil {
		return err
	}
	*e = Entry{
		Meta: j.Meta, ID: j.ID, Run: j.Run, Kind: j.Kind, Role: j.Role, Content: j.Content, ClientID: j.ClientID, Origin: j.Origin,
		Model: j.Model, Stop: j.Stop, Opaque: j.Opaque,
	}
	if j.Parent != nil {
		e.Parent = *j.Parent
	}
	return nil
}

// Text is the text of the entry: its text parts, one after the other.
func (e *Entry) Text() string {
	var s strings.Builder
	for i := range e.Content {
		if e.Content[i].Type == "text" {
			s.WriteString(e.Content[i].Text)
		}
	}
	return s.String()
}

// Head makes an entry the tip of the active branch; ID "" (null in the file)
// leaves the branch empty.
type Head struct {
	Meta
	ID string
}

type headJSON struct {
	Meta
	ID *string `json:"id"`
}

// MarshalJSONTo writes the head with a null id where there is none.
func (h *Head) MarshalJSONTo(enc *jsontext.Encoder) error {
	j := headJSON{Meta: h.Meta}
	if h.ID != "" {
		j.ID = &h.ID
	}
	return json.MarshalEncode(enc, &j)
}

// UnmarshalJSONFrom reads what MarshalJSONTo writes.
func (h *Head) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var j headJSON
	if err := json.UnmarshalDecode(dec, &j); err != nil {
		return err
	}
	*h = Head{Meta: j.Meta}
	if j.ID != nil {
		h.ID = *j.ID
	}
	return nil
}

// Tokens counts tokens in disjoint buckets.
type Tokens struct {
	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Output     int64 `json:"output"`
}

// Usage is the accounted use of one model request. Kind is the operation it
// paid for: "assistant", "compaction", …. Cost is nil, and no member of the
// record, where nobody knows the price.
type Usage struct {
	Meta
	Run        libctx.Run   `json:"run"`
	Kind       string       `json:"kind"`
	Model      libctx.Model `json:"model"`
	Input      int64        `json:"input"`
	CacheRead  int64        `json:"cache_read"`
	CacheWrite int64        `json:"cache_write"`
	Output     int64        `json:"output"`
	Cost       *int64       `json:"cost_picodollars,omitzero"`
}

// UsageUncertain is an attempt that a provider accepted and whose use is
// unknown, which is not the same as zero.
type UsageUncertain struct {
	Meta
	Run    libctx.Run   `json:"run"`
	Kind   string       `json:"kind"`
	Model  libctx.Model `json:"model"`
	Reason string       `json:"reason,omitzero"`
}

// Outcomes of a run.
const (
	Completed   = "completed"
	Failed      = "failed"
	Cancelled   = "cancelled"
	MaxTurns    = "max_turns"
	Interrupted = "interrupted" // the host died; written by the next Open
)

// Checkpoint ends a run, exactly one each. Code and Message say why a run
// failed. Commit fills in Head (the tip; not for a tsh run, which moves no
// head), Usage and Cost (the sums of the run's Usage records), and whether these
// are lower bounds: the tokens after an attempt of unknown use, the cost also
// where a price was not known.
type Checkpoint struct {
	Meta
	Run     libctx.Run   `json:"run"`
	Outcome string       `json:"outcome"`
	Head    string       `json:"head,omitzero"`
	Code    errdefs.Kind `json:"code,omitzero"`
	Message string       `json:"message,omitzero"`
	Usage   Tokens       `json:"usage,omitzero"`
	Cost    int64        `json:"cost_picodollars,omitzero"`

	TokensAtLeast bool `json:"tokens_at_least,omitzero"`
	CostAtLeast   bool `json:"cost_at_least,omitzero"`

	// Carried lists the calls of an interrupted run whose results belong to the
	// next driven run of the session (Session.Carried). All others have theirs.
	Carried []libctx.Call `json:"carried,omitzero"`
}

// Fact is a durable frame that no other record implies. Its frame carries
// neither id nor run in the ledger; the event has both. Payload is set beside
// the start frame of a run and the accepted frame of an input: a digest of what
// the client asked for, compared when its client id comes again.
//
// A fact of the session itself, that a terminal was started for it or stopped,
// has no Run: Event is then the id of its frame, made of a run id that nothing
// else has (NewEvent).
type Fact struct {
	Meta
	Run     libctx.Run
	Event   libctx.Event
	Payload string
	Frame   wire.Frame
}

// NewEvent makes the id of a frame that belongs to no run.
func NewEvent() libctx.Event { return libctx.MakeEvent(libctx.NewRun(), 1) }

type factJSON struct {
	Meta
	Run     libctx.Run     `json:"run,omitzero"`
	Event   libctx.Event   `json:"event,omitzero"`
	Payload string         `json:"payload,omitzero"`
	Frame   jsontext.Value `json:"frame"`
}

// MarshalJSONTo writes the fact, its frame without id and run.
func (f *Fact) MarshalJSONTo(enc *jsontext.Encoder) error {
	raw, err := bareFrame(f.Frame)
	if err != nil {
		return err
	}
	return json.MarshalEncode(enc, &factJSON{Meta: f.Meta, Run: f.Run, Event: f.Event, Payload: f.Payload, Frame: raw})
}

// UnmarshalJSONFrom reads a fact. Frames keep members this version does not
// know only in the kinds it does not know (*wire.Other).
func (f *Fact) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var j factJSON
	if err := json.UnmarshalDecode(dec, &j); err != nil {
		return err
	}
	frame, err := wire.DecodeFrame(j.Frame)
	if err != nil {
		return err
	}
	*f = Fact{Meta: j.Meta, Run: j.Run, Event: j.Event, Payload: j.Payload, Frame: frame}
	return nil
}

// bareFrame encodes a frame for the ledger.
func bareFrame(f wire.Frame) (jsontext.Value, error) {
	if f == nil {
		return nil, errdefs.New(errdefs.Internal, "fact without a frame")
	}
	if o, ok := f.(*wire.Other); ok {
		return o.Raw, nil
	}
	h := f.Header()
	kept := *h
	h.ID, h.Run = "", ""
	defer func() { *h = kept }()
	return json.Marshal(f, json.Deterministic(true))
}
