package admit

import (
	"fmt"

	"cortexfs.org/libctx/control"
	"github.com/go-json-experiment/json/jsontext"
)

// schema checks the form of the arguments: the command-line form, which every
// tool takes, or an object that fits the tool's schema.
func schema(q *question) finding {
	t := q.tool
	want := "arguments that fit " + t.Path + `.d/schema, or {"args":[…]}`
	_, isArgs, err := commandLine(q.call.Arguments)
	switch {
	case err != nil:
		return refuse(want, "arguments: %s", err)
	case isArgs && t.Schema == nil:
		return pass
	case isArgs:
		// The form needs no schema, but a tool whose schema can not be read is
		// not the tool somebody wrote.
		if err := fits(t.Schema, nil); err != nil {
			return refuse("a readable "+t.Path+".d/schema", "%s: %s", t.Path, err)
		}
		return pass
	case t.CLIOnly:
		return refuse(`{"args":[…]}`, `arguments: a tool of mode cli takes {"args":[…]} alone`)
	case t.SchemaError != "":
		return refuse("a readable "+t.Path+".d/schema", "%s", t.SchemaError)
	}
	if err := fits(t.Schema, q.call.Arguments); err != nil {
		return refuse(want, "%s: %s", t.Path, err)
	}
	return pass
}

// fits validates arguments against the text of a schema; without arguments it
// only reads the schema. Both are foreign text
// to a library that is not ours: if it panics the one call is refused, and the
// daemon lives.
func fits(schema []byte, args jsontext.Value) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("schema: can not be applied: %v", r)
		}
	}()
	s, err := control.ParseSchema(schema)
	if err != nil || args == nil {
		return err
	}
	return s.Validate(args)
}
