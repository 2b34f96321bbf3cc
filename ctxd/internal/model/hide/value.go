package hide

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is JSON without the key in its names, texts and numbers, however they
// are written: the very same bytes if it is not in them. A valid value stays
// one; of one in which the key is more than a part of those, null is left.
func (f *Filter) Value(v jsontext.Value) jsontext.Value {
	if f == nil || len(v) == 0 || len(f.Find(string(v))) == 0 && bytes.IndexByte(v, '\\') < 0 {
		return v
	}
	var out bytes.Buffer
	// Names may be the same now; it is not read for its members here.
	lax := jsontext.AllowDuplicateNames(true)
	in, to := jsontext.NewDecoder(bytes.NewReader(v), lax), jsontext.NewEncoder(&out, lax)
	changed := false
	for {
		kind := in.PeekKind()
		if kind == 0 {
			break
		}
		var err error
		if kind == '"' || kind == '0' {
			err = f.scalar(in, to, &changed)
		} else {
			var t jsontext.Token
			if t, err = in.ReadToken(); err == nil {
				err = to.WriteToken(t)
			}
		}
		if err != nil {
			return jsontext.Value("null")
		}
	}
	if !changed && len(f.Find(string(v))) == 0 {
		return v
	}
	clean := jsontext.Value(bytes.TrimSpace(out.Bytes()))
	if !clean.IsValid() || len(f.Find(string(clean))) > 0 {
		return jsontext.Value("null")
	}
	return clean
}

// scalar copies a text or a number.
func (f *Filter) scalar(in *jsontext.Decoder, to *jsontext.Encoder, changed *bool) error {
	raw, err := in.ReadValue()
	if err != nil {
		return err
	}
	text := string(raw)
	if raw.Kind() == '"' {
		b, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return err
		}
		text = string(b)
	}
	clean := f.Text(text)
	if clean == text {
		return to.WriteValue(raw)
	}
	*changed = true
	return to.WriteToken(jsontext.String(clean))
}
