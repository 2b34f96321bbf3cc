package session

import (
	"bytes"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// spliceFrame turns the frame of a fact into an event line: type, id and, if it
// belongs to one, run first, then the other members as they are, also those this version does not
// know. Members over the inline limit are clipped, and truncated and bytes say
// so.
func spliceFrame(raw jsontext.Value, id libctx.Event, run libctx.Run) ([]byte, error) {
	members, err := membersOf(raw)
	if err != nil {
		return nil, err
	}
	var kind jsontext.Value
	cut, rest := 0, members[:0]
	for _, m := range members {
		switch m.name {
		case "type":
			kind = m.value
			continue
		case "id", "run":
			continue
		}
		if n, clip := m.clip(); clip {
			cut = max(cut, n)
		}
		rest = append(rest, m)
	}
	if cut > 0 {
		kept := rest[:0]
		for _, m := range rest {
			if m.name != "truncated" && m.name != "bytes" {
				kept = append(kept, m)
			}
		}
		rest = append(kept, member{"truncated", jsontext.Value("true")}, member{"bytes", number(cut)})
	}
	var buf bytes.Buffer
	enc := jsontext.NewEncoder(&buf, jsontext.PreserveRawStrings(true))
	head := []member{{"type", kind}, {"id", quote(string(id))}}
	if run != "" {
		head = append(head, member{"run", quote(string(run))})
	}
	rest = append(head, rest...)
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return nil, errdefs.New(errdefs.Internal, "encode a fact: %w", err)
	}
	for _, m := range rest {
		err := enc.WriteToken(jsontext.String(m.name))
		if err == nil {
			err = enc.WriteValue(m.value)
		}
		if err != nil {
			return nil, errdefs.New(errdefs.Invalid, "encode a fact: %w", err)
		}
	}
	if err := enc.WriteToken(jsontext.EndObject); err != nil {
		return nil, errdefs.New(errdefs.Internal, "encode a fact: %w", err)
	}
	if buf.Len() > libctx.MaxFrame {
		name, err := jsontext.AppendUnquote(nil, kind)
		if err != nil {
			return nil, errdefs.New(errdefs.Invalid, "the type of a fact is not a string")
		}
		return shortLine(string(name), id, run, buf.Len())
	}
	return buf.Bytes(), nil
}

// shortLine is what is left of a frame that clipping its members could not
// bring under the limit.
func shortLine(kind string, id libctx.Event, run libctx.Run, n int) ([]byte, error) {
	kind, _ = wire.Clip(kind, 256)
	return encode(struct {
		wire.Head
		Truncated bool `json:"truncated"`
		Bytes     int  `json:"bytes"`
	}{wire.Head{Type: kind, ID: id, Run: run}, true, n})
}

type member struct {
	name  string
	value jsontext.Value
}

// clip bounds the member's value and returns its whole size if it cut it.
func (m *member) clip() (int, bool) {
	if len(m.value) <= libctx.MaxInlineText {
		return 0, false
	}
	if m.value.Kind() != '"' {
		n := len(m.value)
		m.value = clipped(m.value)
		return n, true
	}
	text, err := jsontext.AppendUnquote(nil, m.value)
	if err != nil || len(text) <= libctx.MaxInlineText {
		return 0, false
	}
	s, _ := wire.Clip(string(text), libctx.MaxInlineText)
	m.value = quote(s)
	return len(text), true
}

// membersOf lists the members of an object in order; values alias raw.
func membersOf(raw jsontext.Value) ([]member, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, errdefs.New(errdefs.Invalid, "member frame is not an object")
	}
	var members []member
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, errdefs.New(errdefs.Invalid, "member frame: %w", err)
		}
		m := member{name: name.String()}
		v, err := dec.ReadValue()
		if err != nil {
			return nil, errdefs.New(errdefs.Invalid, "member frame: %w", err)
		}
		m.value = v.Clone()
		members = append(members, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, errdefs.New(errdefs.Invalid, "member frame: %w", err)
	}
	return members, nil
}

// quote is the JSON string of text that is known to be valid UTF-8.
func quote(s string) jsontext.Value {
	q, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return jsontext.Value(`""`)
	}
	return q
}

func number(n int) jsontext.Value {
	return jsontext.Value(jsontext.Int(int64(n)).String())
}
