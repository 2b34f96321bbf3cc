package admit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// schema checks the form of the arguments: the command-line form, which every
// tool takes, or an object that fits the tool's schema.
func schema(q *question) finding {
	t := q.tool
	want := `arguments that fit ` + t.Path + `.d/schema, or {"args":[…]}`
	_, isArgs, err := commandLine(q.call.Arguments)
	switch {
	case err != nil:
		return refuse(want, "arguments: %s", err)
	case isArgs:
		return pass
	case t.CLIOnly:
		return refuse(`{"args":[…]}`, `arguments: a tool of mode cli takes {"args":[…]} alone`)
	case t.SchemaError != "":
		return refuse("a readable "+t.Path+".d/schema", "%s", t.SchemaError)
	}
	s, err := Compile(t.Schema)
	if err != nil {
		return refuse("a valid "+t.Path+".d/schema", "%s.d/schema: %s", t.Path, err)
	}
	if err := s.Check(q.call.Arguments); err != nil {
		return refuse(want, "arguments: %s", err)
	}
	return pass
}

// Schema is a compiled JSON schema.
type Schema struct{ compiled *jsonschema.Schema }

// noLoader answers every reference to another document: a schema is one file,
// and looking elsewhere would let it read the host with the daemon's rights.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("a reference to another document")
}

const schemaURL = "schema:tool"

// Compile reads a schema (draft 2020-12 unless it says otherwise). References
// lead nowhere but into the same text.
func Compile(text []byte) (s *Schema, err error) {
	defer contain(&err)
	if err := bounded(text); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, errors.New("invalid JSON")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, errors.New("not a schema")
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, errors.New("not a schema: " + brief(err))
	}
	return &Schema{compiled}, nil
}

// Check validates one JSON text against the schema.
func (s *Schema) Check(text []byte) (err error) {
	defer contain(&err)
	if err := bounded(text); err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return errors.New("invalid JSON")
	}
	if err := s.compiled.Validate(v); err != nil {
		return errors.New(brief(err))
	}
	return nil
}

// contain turns a panic of the schema library into an error: schemas and
// arguments are foreign text, and failing must refuse one call, not end the
// daemon.
func contain(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the schema can not be applied: %v", r)
	}
}

// brief is one line about the first thing that does not fit.
func brief(err error) string {
	var v *jsonschema.ValidationError
	var bad *jsonschema.SchemaValidationError
	if errors.As(err, &bad) {
		errors.As(bad.Err, &v)
	} else {
		errors.As(err, &v)
	}
	if v == nil {
		return strings.ReplaceAll(err.Error(), "\n", " ")
	}
	for len(v.Causes) > 0 {
		v = v.Causes[0]
	}
	if _, ok := v.ErrorKind.(*kind.RefCycle); ok {
		return "a reference that leads back to itself"
	}
	where := "/" + strings.Join(v.InstanceLocation, "/")
	return where + ": " + v.ErrorKind.LocalizedString(message.NewPrinter(language.English))
}
