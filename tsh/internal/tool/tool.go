// Package tool is what the built-in tools have in common: the form of a tool,
// its arguments in both of their forms, and the bounded output it fills.
package tool

import (
	"context"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Tool is one built-in tool. Run reads its arguments, an object, with Decode and
// writes what a model is to see to out; an error it returns makes the call
// failed. What it wrote before stays the content of the result, else the error
// is. Run must end soon after ctx is done, with nothing of it left running.
type Tool struct {
	Name libctx.Tool
	Form Form
	Run  func(ctx context.Context, args jsontext.Value, out *Output) error
}

// Call runs the tool with raw arguments: an object as its schema wants it, or
// {"args":[WORDS…]}, its command-line form (which of a tool with Form.Argv is an
// object like any other). Errors about the arguments are
// errdefs.Invalid.
func (t Tool) Call(ctx context.Context, raw jsontext.Value, out *Output) error {
	var members map[string]jsontext.Value
	if err := wire.Object(raw, &members); err != nil {
		return errdefs.New(errdefs.Invalid, "arguments: %w", err)
	}
	if words, ok := members["args"]; ok && !t.Form.Argv {
		var list []string
		if err := json.Unmarshal(words, &list); err != nil || len(members) != 1 || words.Kind() == 'n' {
			return errdefs.New(errdefs.Invalid, "arguments: args is not a list of words that stands alone")
		}
		args, err := t.Form.Object(list)
		if err != nil {
			return err
		}
		raw = args
	}
	return t.Run(ctx, raw, out)
}

// Decode reads an arguments object into v, a pointer to a struct. Unknown
// members, members of a wrong type and null are errdefs.Invalid.
func Decode(args jsontext.Value, v any) error {
	var members map[string]jsontext.Value
	if err := wire.Object(args, &members); err != nil {
		return errdefs.New(errdefs.Invalid, "arguments: %w", err)
	}
	for name, value := range members {
		if value.Kind() == 'n' {
			return errdefs.New(errdefs.Invalid, "arguments: member %q is null", name)
		}
	}
	if err := wire.Object(args, v, json.RejectUnknownMembers(true)); err != nil {
		return errdefs.New(errdefs.Invalid, "arguments: %w", err)
	}
	return nil
}
