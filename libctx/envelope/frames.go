package envelope

import (
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The frames of an agent have fewer members than those of the daemon, and a
// tool_call names its call "id"; so each kind has its own decoder here.
var decoders = map[string]func(line []byte) (wire.Frame, error){
	"delta":           decodeDelta,
	"reasoning_delta": decodeDelta,
	"message":         decodeMessage,
	"error":           decodeError,
	"tool_call":       decodeToolCall,
}

// head has the members of every frame of an agent.
type head struct {
	Type string `json:"type"`
	Run  string `json:"run"`
}

func (h head) wire() wire.Head { return wire.Head{Type: h.Type, Run: libctx.Run(h.Run)} }

func decodeFrame(line []byte) (wire.Frame, error) {
	var h head
	if err := wire.Object(line, &h); err != nil {
		return nil, err
	}
	decode, ok := decoders[h.Type]
	if !ok {
		return nil, errdefs.New(errdefs.Invalid, "an agent may not write type %.80q", h.Type)
	}
	return decode(line)
}

func strict(line []byte, v any) error {
	return wire.Object(line, v, json.RejectUnknownMembers(true))
}

func decodeDelta(line []byte) (wire.Frame, error) {
	var g struct {
		head
		Text *string `json:"text"`
	}
	if err := strict(line, &g); err != nil {
		return nil, err
	}
	if g.Text == nil {
		return nil, missing("text")
	}
	return &wire.Delta{Head: g.wire(), Text: *g.Text}, nil
}

func decodeMessage(line []byte) (wire.Frame, error) {
	var g struct {
		head
		Role    string `json:"role"`
		Content []struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		} `json:"content"`
	}
	if err := strict(line, &g); err != nil {
		return nil, err
	}
	if g.Role != "assistant" {
		return nil, errdefs.New(errdefs.Invalid, `member role is %.80q, not "assistant"`, g.Role)
	}
	if len(g.Content) == 0 {
		return nil, errdefs.New(errdefs.Invalid, "member content is missing or empty")
	}
	m := &wire.Message{Head: g.wire(), Role: g.Role}
	for i, part := range g.Content {
		if part.Type != "text" || part.Text == nil {
			return nil, errdefs.New(errdefs.Invalid, "member content/%d is not a text part", i)
		}
		m.Content = append(m.Content, wire.Text(*part.Text))
	}
	return m, nil
}

func decodeError(line []byte) (wire.Frame, error) {
	var g struct {
		head
		Code        string `json:"code"`
		Message     string `json:"message"`
		Recoverable bool   `json:"recoverable"`
	}
	if err := strict(line, &g); err != nil {
		return nil, err
	}
	switch {
	case !g.Recoverable:
		return nil, errdefs.New(errdefs.Invalid, "an agent's error must be recoverable")
	case !isErrno(g.Code):
		return nil, errdefs.New(errdefs.Invalid, "member code is %.80q, not the name of an errno", g.Code)
	case g.Message == "":
		return nil, errdefs.New(errdefs.Invalid, "member message is missing or empty")
	}
	return &wire.Error{Head: g.wire(), Code: errdefs.Kind(g.Code), Message: g.Message, Recoverable: true}, nil
}

// isErrno accepts the form of an errno name, not only the ones the suite uses
// itself: an agent may have met any.
func isErrno(s string) bool {
	rest, ok := strings.CutPrefix(s, "E")
	if !ok || rest == "" || len(s) > 32 {
		return false
	}
	return strings.Trim(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

func decodeToolCall(line []byte) (wire.Frame, error) {
	var g struct {
		head
		ID        libctx.Call    `json:"id"`
		Name      libctx.Tool    `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
	}
	if err := strict(line, &g); err != nil {
		return nil, err
	}
	switch {
	case g.ID == "":
		return nil, missing("id")
	case g.Name == "":
		return nil, missing("name")
	case g.Arguments.Kind() != '{':
		return nil, errdefs.New(errdefs.Invalid, "member arguments is not an object")
	}
	if err := checkWords(g.Arguments); err != nil {
		return nil, err
	}
	return &wire.ToolCall{Head: g.wire(), Call: g.ID, Name: g.Name, Arguments: g.Arguments}, nil
}

// checkWords bounds the command-line form of arguments, {"args":["…"]}. Other
// objects are bounded by the frame and judged by the tool's schema.
func checkWords(arguments jsontext.Value) error {
	var form struct {
		Args []string `json:"args"`
	}
	if err := strict(arguments, &form); err != nil {
		return nil // not the command-line form
	}
	if len(form.Args) > libctx.MaxArgs {
		return errdefs.New(errdefs.Invalid, "member arguments/args holds %d words, more than %d", len(form.Args), libctx.MaxArgs)
	}
	total := 0
	for _, word := range form.Args {
		total += len(word)
	}
	if total > libctx.MaxAgentArgs {
		return errdefs.New(errdefs.Invalid, "member arguments/args holds %d bytes, more than %d", total, libctx.MaxAgentArgs)
	}
	return nil
}
