package admit

import (
	"fmt"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"github.com/go-json-experiment/json/jsontext"
)

// schema checks the form of the arguments: the command-line form, which every
// tool takes, or an object that fits the tool's schema. A schema that is there
// and can not be used refuses both: the tool is not the one somebody wrote.
func schema(q *question) finding {
	t := q.tool
	file := t.Path + ".d/schema"
	if n := len(q.call.Arguments); n > libctx.MaxCallArguments {
		return refuse("shorter arguments", "arguments: %d bytes, the limit is %d", n, libctx.MaxCallArguments)
	}
	_, isArgs, err := commandLine(q.call.Arguments)
	switch {
	case err != nil:
		return refuse("arguments that fit "+file+`, or {"args":[…]}`, "arguments: %s", err)
	case t.SchemaError != "":
		return refuse("a readable "+file, "%s", t.SchemaError)
	case t.Schema == nil && isArgs:
		return pass
	case t.Schema == nil:
		return refuse(`{"args":[…]}`, `%s has no schema: it takes {"args":[…]} alone`, t.Path)
	}
	s, err := compile(t.Schema)
	switch {
	case err != nil:
		return refuse("a valid "+file, "%s.d/%s", t.Path, err)
	case isArgs:
		return pass
	case t.CLIOnly:
		return refuse(`{"args":[…]}`, `arguments: a tool of mode cli takes {"args":[…]} alone`)
	}
	if err := fits(s, q.call.Arguments); err != nil {
		return refuse("arguments that fit "+file, "%s", err)
	}
	return pass
}

// compiled keeps what schemas were made of their texts: a tool's is asked for at
// every call and hardly ever changes. Beyond maxCompiled it begins anew.
var compiled struct {
	sync.Mutex
	of map[string]*control.Schema
}

const maxCompiled = 64

// compile reads a schema.
func compile(text []byte) (s *control.Schema, err error) {
	compiled.Lock()
	s = compiled.of[string(text)]
	compiled.Unlock()
	if s != nil {
		return s, nil
	}
	defer contain(&err)
	if s, err = control.ParseSchema(text); err != nil {
		return nil, err
	}
	compiled.Lock()
	defer compiled.Unlock()
	if len(compiled.of) >= maxCompiled || compiled.of == nil {
		compiled.of = map[string]*control.Schema{}
	}
	compiled.of[string(text)] = s
	return s, nil
}

// fits validates arguments.
func fits(s *control.Schema, args jsontext.Value) (err error) {
	defer contain(&err)
	return s.Validate(args)
}

// contain makes an error of a panic. Schemas and arguments are foreign text to a
// library that is not ours; if it fails the one call is refused, and the daemon
// lives.
func contain(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("schema: can not be applied: %v", r)
	}
}
