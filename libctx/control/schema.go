package control

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/linefile"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is the compiled JSON Schema of a tool's arguments. It may be used from
// any goroutine.
type Schema struct {
	compiled *jsonschema.Schema
	text     jsontext.Value
}

// noLoader refuses every schema that is not in the text itself or built into
// the library: a tool's file can make nothing be read or fetched.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("refers to another document")
}

// schemaURL names the text while it is compiled; it is never resolved.
const schemaURL = "tool:///schema"

// ParseSchema reads a tool's file schema: one JSON object and LF, a JSON Schema
// (draft 2020-12 unless $schema says otherwise) that refers to nothing outside
// itself.
func ParseSchema(text []byte) (*Schema, error) {
	s, err := compile(text)
	if err != nil {
		return nil, linefile.In("schema", err)
	}
	return s, nil
}

func compile(text []byte) (*Schema, error) {
	v, err := object(text)
	if err != nil {
		return nil, err
	}
	// The library's own reader keeps numbers exact; checkJSON has seen to names,
	// depth and size.
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(v))
	if err != nil {
		return nil, linefile.Refuse(0, "", "is not JSON")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, linefile.Refuse(0, "", "is not a JSON Schema")
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, refuseSchema(err)
	}
	return &Schema{compiled, bytes.Clone(v)}, nil
}

func refuseSchema(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var ve *jsonschema.ValidationError
	var load *jsonschema.LoadURLError
	switch {
	case errors.As(err, &invalid) && errors.As(invalid.Err, &ve):
		pointer, why := deepest(ve)
		return linefile.Refuse(0, pointer, "is not a JSON Schema: %s", why)
	case errors.As(err, &load):
		return linefile.Refuse(0, load.URL, "is a reference to another document")
	}
	return linefile.Refuse(0, "", "is not a JSON Schema: %s", short(err.Error()))
}

// Text is the schema as it stands in the file.
func (s *Schema) Text() jsontext.Value { return s.text }

// Validate tests the arguments of a call, one JSON value. The error is
// errdefs.Invalid, one short line with the JSON pointer of one place that does
// not fit; it shows no value of the arguments.
func (s *Schema) Validate(args jsontext.Value) error {
	if err := checkJSON(args); err != nil {
		return errdefs.New(errdefs.Invalid, "arguments: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return errdefs.New(errdefs.Invalid, "arguments: not JSON")
	}
	err = s.compiled.Validate(doc)
	if err == nil {
		return nil
	}
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return errdefs.New(errdefs.Invalid, "arguments: %s", short(err.Error()))
	}
	pointer, why := deepest(ve)
	return errdefs.New(errdefs.Invalid, "arguments %s: %s", strconv.QuoteToGraphic(pointer), why)
}

// deepest follows the first cause to the place where it happened.
func deepest(e *jsonschema.ValidationError) (pointer, why string) {
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	var b strings.Builder
	for _, token := range e.InstanceLocation {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	pointer = b.String()
	if pointer == "" {
		pointer = "/"
	}
	return short(pointer), reason(e.ErrorKind)
}

var english = message.NewPrinter(language.English)

// reason is the library's sentence, except where that shows a value of the
// arguments.
func reason(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Pattern:
		return "does not match pattern " + short(strconv.QuoteToGraphic(k.Want))
	case *kind.Format:
		return "is not a valid " + short(k.Want)
	case *kind.Const:
		return "is not the one value allowed"
	case *kind.Enum:
		return "is not one of the values allowed"
	case *kind.UniqueItems:
		return "has an item twice"
	case *kind.AdditionalProperties:
		names := slices.Clone(k.Properties)
		slices.Sort(names)
		return "has members it should not have: " + short(strconv.QuoteToGraphic(strings.Join(names, ", ")))
	}
	return short(k.LocalizedString(english))
}

// short makes a text one bounded line without control characters.
func short(s string) string {
	const max = 200
	s = strings.Map(func(r rune) rune {
		if _, bad := linefile.Control(string(r), ""); bad {
			return ' '
		}
		return r
	}, s)
	if len(s) <= max {
		return s
	}
	n := max
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
