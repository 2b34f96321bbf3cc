package capwire

import (
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
)

// The types of replies.
const (
	Pong    = "pong"          // of a Ping
	Updated = "agent.updated" // of an Update: the text is in its place, and durable
	Failed  = "error"         // Code says why nothing was done
)

// Reply is the one line that answers a request. ID is the request's, empty if
// that could not be read.
type Reply struct {
	Type    string       `json:"type"`
	ID      string       `json:"request_id,omitzero"`
	Code    errdefs.Kind `json:"code,omitzero"`    // of Failed
	Message string       `json:"message,omitzero"` // of Failed, for people
}

// maxMessage is the bytes of a message.
const maxMessage = 512

// Refusal answers a request with an error.
func Refusal(id string, err error) Reply {
	text, _ := wire.Clip(wire.Clean([]byte(err.Error())), maxMessage)
	return Reply{Type: Failed, ID: id, Code: errdefs.KindOf(err), Message: text}
}

// Encode writes the reply as one line.
func (r Reply) Encode() ([]byte, error) { return wire.Marshal(r) }

// DecodeReply reads the line that answers the request, and returns nil if what
// was asked is done, else why not. A line that is no answer to it is
// errdefs.Protocol.
func (r Request) DecodeReply(line []byte) error {
	var got Reply
	if err := wire.Object(line, &got, json.RejectUnknownMembers(true)); err != nil {
		return errdefs.New(errdefs.Protocol, "capability socket: the answer: %w", err)
	}
	done := map[string]string{Ping: Pong, Update: Updated}[r.Op]
	switch {
	case got.Type == Failed && got.Code != "" && (got.ID == r.ID || got.ID == ""):
		return errdefs.New(got.Code, "%s", got.Message)
	case got.Type == done && got.ID == r.ID && got.Code == "" && got.Message == "":
		return nil
	}
	return errdefs.New(errdefs.Protocol, "capability socket: what came is no answer to the request")
}
