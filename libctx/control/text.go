package control

import (
	"bytes"

	"cortexfs.org/libctx/linefile"
	"github.com/go-json-experiment/json/jsontext"
)

// ParseText reads a file of free text, such as system.md: UTF-8 without NUL, at
// most 64 KiB, every byte kept.
func ParseText(file string, text []byte) (string, error) {
	if err := linefile.Check(text); err != nil {
		return "", linefile.In(file, err)
	}
	return string(text), nil
}

// ParseDescription reads a tool's file description: one or more lines of text,
// the first not blank (listings show only that one), with no control character
// but TAB. The result has no LF at its end.
func ParseDescription(text []byte) (string, error) {
	lines, err := linefile.Split(text)
	if err == nil && (len(lines) == 0 || len(bytes.TrimSpace([]byte(lines[0]))) == 0) {
		err = linefile.Refuse(1, "", "is blank; it should say what the tool does")
	}
	if err != nil {
		return "", linefile.In("description", err)
	}
	for i, l := range lines {
		if _, bad := linefile.Control(l, "\t"); bad {
			return "", linefile.In("description", linefile.Refuse(i+1, l, "holds a control character"))
		}
	}
	return string(text[:len(text)-1]), nil
}

// ParseMeta reads the file meta.json: one JSON object and LF, strict like
// everything on the wire. Members mean what their owners say; unknown ones are
// kept.
func ParseMeta(text []byte) (jsontext.Value, error) {
	v, err := object(text)
	return v, linefile.In("meta.json", err)
}

// object tests that a file is one JSON object and LF.
func object(text []byte) (jsontext.Value, error) {
	if _, err := linefile.Split(text); err != nil {
		return nil, err
	}
	v := jsontext.Value(text)
	if err := checkJSON(v); err != nil {
		return nil, err
	}
	if v.Kind() != '{' {
		return nil, linefile.Refuse(0, "", "is not a JSON object")
	}
	return v, nil
}
