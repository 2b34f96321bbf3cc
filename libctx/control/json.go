package control

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/linefile"
	"github.com/go-json-experiment/json/jsontext"
)

// checkJSON tests a JSON text before anything is built from it: one value,
// valid UTF-8, no name twice, bounded depth and count, and numbers whose exact value is
// cheap to hold (1e999999999 is eleven bytes and a gigabyte). The error names
// the line, and the value's pointer.
func checkJSON(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for n := 0; ; n++ {
		t, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			if d.InputOffset() == 0 {
				return linefile.Refuse(1, "", "is not JSON: there is nothing in it")
			}
			return nil
		case err != nil:
			return badJSON(text, d, err)
		case d.StackDepth() > libctx.MaxSchemaDepth:
			return linefile.Refuse(lineAt(text, d.InputOffset()), "", "is JSON nested deeper than %d", libctx.MaxSchemaDepth)
		case n > libctx.MaxJSONValues:
			return linefile.Refuse(lineAt(text, d.InputOffset()), "", "is JSON of more than %d values", libctx.MaxJSONValues)
		case t.Kind() == '0' && !cheap(t.String()):
			return linefile.Refuse(lineAt(text, d.InputOffset()), t.String(), "is a number too long to handle")
		case d.StackDepth() == 0 && len(bytes.TrimSpace(text[d.InputOffset():])) > 0:
			return linefile.Refuse(lineAt(text, d.InputOffset()), "", "is more than one JSON value")
		}
	}
}

// cheap bounds the digits and the exponent of a JSON number.
func cheap(n string) bool {
	digits, exp, _ := strings.Cut(strings.ToLower(n), "e")
	e, err := strconv.Atoi(strings.TrimPrefix(exp, "+"))
	if exp != "" && (err != nil || e > libctx.MaxNumber || e < -libctx.MaxNumber) {
		return false
	}
	return len(digits) <= libctx.MaxNumber
}

func badJSON(text []byte, d *jsontext.Decoder, err error) error {
	why := "is not JSON"
	var s *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		why = "is cut-off JSON"
	case errors.Is(err, jsontext.ErrDuplicateName):
		why = "has a member twice"
	case errors.As(err, &s) && s.Err != nil:
		why = "is not JSON: " + s.Err.Error()
	}
	offset, pointer := d.InputOffset(), ""
	if errors.As(err, &s) {
		offset, pointer = s.ByteOffset, string(s.JSONPointer)
	}
	return linefile.Refuse(lineAt(text, offset), pointer, "%s", why)
}

func lineAt(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:min(int(offset), len(text))], []byte("\n"))
}
