package control

import (
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json/jsontext"
)

const fsRead = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1},
    "kind": {"enum": ["a", "b"]},
    "tag": {"type": "string", "pattern": "^[a-z]+$"},
    "n": {"type": "integer", "minimum": 1, "maximum": 256},
    "sub": {"$ref": "#/$defs/sub"}
  },
  "$defs": {"sub": {"type": "object", "properties": {"deep/er": {"type": "boolean"}}}},
  "required": ["path"],
  "additionalProperties": false
}
`

func TestValidate(t *testing.T) {
	s, err := ParseSchema([]byte(fsRead))
	if err != nil {
		t.Fatal(err)
	}
	if string(s.Text()) != fsRead {
		t.Error("the text changed")
	}
	for _, args := range []string{`{"path":"x"}`, ` {"path":"x","n":256,"kind":"a","tag":"ok","sub":{"deep/er":true}} `, `{"path":"x","n":1.0}`} {
		if err := s.Validate(jsontext.Value(args)); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	long := strings.Repeat("SECRET", 50_000)
	for _, c := range []struct{ args, pointer string }{
		{`{}`, `"/"`},
		{`[]`, `"/"`},
		{`null`, `"/"`},
		{`{"path":1}`, `"/path"`},
		{`{"path":"x","n":0}`, `"/n"`},
		{`{"path":"x","n":9007199254740993}`, `"/n"`},
		{`{"path":"x","n":1e400}`, `"/n"`},
		{`{"path":"x","sub":{"deep/er":1}}`, `"/sub/deep~1er"`},
		{`{"path":"x","kind":"` + long + `"}`, `"/kind"`},
		{`{"path":"x","tag":"` + long + `"}`, `"/tag"`},
		{`{"path":"x","` + long + `":1}`, `"/"`},
		{`{"path":"x","a\nb\u001b[1m":1}`, `"/"`},
	} {
		err := s.Validate(jsontext.Value(c.args))
		if errdefs.KindOf(err) != errdefs.Invalid {
			t.Errorf("%.60s: %v", c.args, err)
			continue
		}
		msg := err.Error()
		if !strings.Contains(msg, c.pointer) || len(msg) > 500 || strings.ContainsAny(msg, "\n\x1b") {
			t.Errorf("%.60s: %q", c.args, msg)
		}
		if strings.HasPrefix(c.args, `{"path":"x","kind`) || strings.HasPrefix(c.args, `{"path":"x","tag`) {
			if strings.Contains(msg, "SECRET") {
				t.Errorf("shows a value: %q", msg)
			}
		}
	}
}

// Arguments that are expensive or no JSON never reach the schema.
func TestArgumentsThatAreRefusedBefore(t *testing.T) {
	s, err := ParseSchema([]byte("{}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]string{
		"empty":          ``,
		"cut":            `{"a":`,
		"two values":     `{} {}`,
		"name twice":     `{"a":1,"a":2}`,
		"invalid UTF-8":  "{\"a\":\"\xff\"}",
		"deep":           strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100),
		"very deep":      strings.Repeat(`{"a":`, 20_000),
		"huge exponent":  `{"a":1e999999999}`,
		"small exponent": `{"a":1E-999999999}`,
		"odd exponent":   `{"a":1e99999999999999999999}`,
		"many values":    `[` + strings.Repeat(`1,`, 500_000) + `1]`,
		"many digits":    `{"a":` + strings.Repeat("9", 600) + `}`,
	} {
		if err := s.Validate(jsontext.Value(args)); errdefs.KindOf(err) != errdefs.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Validate(jsontext.Value(`{"a":1e+300,"b":-0.5E-3,"c":[[1]]}`)); err != nil {
		t.Error(err)
	}
}

// Schemas that refer to themselves, or fail in the library's own ways.
func TestOddSchemas(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"$ref":"#"}`:                          true,
		`{"$ref":"#/$defs/none"}`:               false,
		`{"$ref":"other.json"}`:                 false,
		`{"$schema":"http://example.org/meta"}`: false,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`: true,
		`{"pattern":"("}`:                                         false,
		`{"pattern":"(a{1000}){1000}"}`:                           false,
		`{"$id":"https://example.org/s","$ref":"x"}`:              false,
		`{"properties":{"a":{"minimum":1e999999999}}}`:            false,
		`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`: true, // built in, nothing is fetched
	} {
		s, err := ParseSchema([]byte(text + "\n"))
		if (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil {
			if errdefs.KindOf(err) != errdefs.Invalid || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %q", text, err)
			}
			continue
		}
		s.Validate(jsontext.Value(`{"a":[1,{"b":null}]}`)) // must return
	}
}

func FuzzSchema(f *testing.F) {
	for _, s := range []string{fsRead, "{}\n", "{\"$ref\":\"#\"}\n", "{\"anyOf\":[{\"type\":\"string\"},{\"$ref\":\"#/$defs/x\"}],\"$defs\":{\"x\":{\"items\":{\"$ref\":\"#\"}}}}\n"} {
		for _, args := range []string{`{"path":"x"}`, `{"n":1e9}`, `[[[]]]`, `null`, `{"a":1,"a":2}`} {
			f.Add([]byte(s), []byte(args))
		}
	}
	f.Fuzz(func(t *testing.T, text, args []byte) {
		s, err := ParseSchema(text)
		if err != nil {
			return
		}
		if err := s.Validate(args); err != nil {
			if errdefs.KindOf(err) != errdefs.Invalid || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\r\x00\x1b") {
				t.Fatalf("%q", err)
			}
		}
	})
}
