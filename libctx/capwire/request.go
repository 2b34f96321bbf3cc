package capwire

import (
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The operations.
const (
	Ping   = "ping"         // asks whether the capability is good
	Update = "agent.update" // replaces a prompt text of the run's own agent
)

// Request is one request. Whose it is, Agent, Session and Run, must be whose the
// socket is. Control and Content are those of an Update alone.
type Request struct {
	Op      string         `json:"op"`
	ID      string         `json:"request_id"`
	Agent   libctx.Agent   `json:"agent"`
	Session libctx.Session `json:"session"`
	Run     libctx.Run     `json:"run"`
	Control string         `json:"control,omitzero"`
	Content *string        `json:"content,omitzero"`
}

// Controls are the control files that an Update may replace.
func Controls() []string { return []string{"prompt.template.md", "system.md"} }

// Encode writes the request as one line. One over libctx.MaxCapFrame is
// errdefs.TooBig: a text of libctx.MaxCapContent bytes fits unless much of it has
// to be escaped.
func (r Request) Encode() ([]byte, error) {
	b, err := wire.Marshal(r)
	if err == nil && len(b) > libctx.MaxCapFrame {
		err = errdefs.New(errdefs.TooBig, "the request has %d bytes as JSON, over the limit of %d", len(b), libctx.MaxCapFrame)
	}
	return b, err
}

// Decode reads one line. A line that is no request is errdefs.Invalid, an
// operation that is not offered errdefs.Unsupported. With an error the request
// has nothing but its ID, if that much could be read: what it asks for, and
// whether the text may be that long, is for its server to judge.
func Decode(line []byte) (Request, error) {
	var head struct {
		Op *string `json:"op"`
		ID *string `json:"request_id"`
	}
	if err := wire.Object(line, &head); err != nil {
		return Request{}, err
	}
	var named Request
	if head.ID != nil && checkID(*head.ID) == nil {
		named.ID = *head.ID
	}
	switch {
	case head.Op == nil:
		return named, missing("op")
	case *head.Op != Ping && *head.Op != Update:
		return named, errdefs.New(errdefs.Unsupported, "operation %.80q is not offered", *head.Op)
	}
	var got struct {
		Request
		Token jsontext.Value `json:"token"` // of older programs; it proves nothing and is not looked at
	}
	if err := wire.Object(line, &got, json.RejectUnknownMembers(true)); err != nil {
		return named, err
	}
	if err := got.Request.check(); err != nil {
		return named, err
	}
	return got.Request, nil
}

// check tests the form of a request.
func (r *Request) check() error {
	if err := checkID(r.ID); err != nil {
		return err
	}
	for name, is := range map[string]bool{"agent": r.Agent != "", "session": r.Session != "", "run": r.Run != ""} {
		if !is {
			return missing(name)
		}
	}
	update := r.Op == Update
	switch {
	case !update && (r.Control != "" || r.Content != nil):
		return errdefs.New(errdefs.Invalid, "members control and content are of %s alone", Update)
	case update && r.Control == "":
		return missing("control")
	case update && r.Content == nil:
		return errdefs.New(errdefs.Invalid, "member content is missing")
	}
	return nil
}

func missing(name string) error {
	return errdefs.New(errdefs.Invalid, "member %s is missing or empty", name)
}

// checkID tests a request id.
func checkID(id string) error {
	switch {
	case id == "":
		return missing("request_id")
	case len(id) > libctx.MaxCapID:
		return errdefs.New(errdefs.Invalid, "member request_id is longer than %d bytes", libctx.MaxCapID)
	case strings.ContainsFunc(id, func(r rune) bool {
		alnum := r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		return !alnum && r != '.' && r != '_' && r != '-'
	}):
		return errdefs.New(errdefs.Invalid, "member request_id holds a character other than letters, digits and . _ -")
	}
	return nil
}
