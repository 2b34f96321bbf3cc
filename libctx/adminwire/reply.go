package adminwire

import (
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
)

// The types of replies.
const (
	Pong   = "pong"  // of a Ping
	Done   = "done"  // what was asked is done, and durable
	Failed = "error" // Code says why nothing was done
)

// Reply is the one line that answers a request.
type Reply struct {
	Type     string       `json:"type"`
	Protocol int          `json:"protocol,omitzero"` // of Pong
	Version  string       `json:"version,omitzero"`  // of Pong: the program's
	Note     string       `json:"note,omitzero"`     // of Done, for people: what is still to be done
	Code     errdefs.Kind `json:"code,omitzero"`     // of Failed
	Message  string       `json:"message,omitzero"`  // of Failed, for people
	Hint     string       `json:"hint,omitzero"`     // of Failed, likewise
}

// maxMessage is the bytes of a text for people.
const maxMessage = 1024

// Refusal is the answer that says why nothing was done.
func Refusal(err error) Reply {
	text := func(s string) string {
		s, _ = wire.Clip(wire.Clean([]byte(s)), maxMessage)
		return s
	}
	return Reply{Type: Failed, Code: errdefs.KindOf(err), Message: text(err.Error()), Hint: text(errdefs.HintOf(err))}
}

// Encode writes the reply as one line.
func (r Reply) Encode() ([]byte, error) { return wire.Marshal(r) }

// DecodeReply reads the line that answers a request. A refusal is returned as the
// error it tells of; a line that is no answer is errdefs.Protocol. Members that
// are not known are passed over: the server may be newer.
func (r Request) DecodeReply(line []byte) (Reply, error) {
	var got Reply
	if err := wire.Object(line, &got, json.RejectUnknownMembers(false)); err != nil {
		return Reply{}, errdefs.New(errdefs.Protocol, "admin socket: the answer: %w", err)
	}
	want := Done
	if r.Op == Ping {
		want = Pong
	}
	switch {
	case got.Type == Failed && got.Code != "":
		err := errdefs.New(got.Code, "%s", got.Message)
		err.Hint = got.Hint
		return Reply{}, err
	case got.Type == want && got.Code == "":
		return got, nil
	}
	return Reply{}, errdefs.New(errdefs.Protocol, "admin socket: what came is no answer to the request")
}
