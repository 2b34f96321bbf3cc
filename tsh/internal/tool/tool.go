// Package tool is what the built-in tools have in common: the form of a tool,
// its arguments in both of their forms, and the bounded output it fills.
package tool

import (
	"context"
	"errors"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin/form"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Tool is one built-in tool. Run reads its arguments, an object, with Decode and
// writes what a model is to see to out; an error it returns makes the call
// failed. What it wrote before stays part of the result. Run must end soon after
// ctx is done, with nothing of it left running.
type Tool struct {
	Name libctx.Tool
	Run  func(ctx context.Context, args jsontext.Value, out *Output) error
	// Become executes the program that the tool is, with these words, in the place of
	// this process: on a terminal that is the tool. It returns only with an error;
	// nil if the tool is no such program.
	Become func(words []string) error
}

// Form is the tool's command-line form.
func (t Tool) Form() form.Form {
	f, _ := form.Of(t.Name)
	return f
}

// Call runs the tool with raw arguments: an object as its schema wants it, or
// {"args":[WORDS…]}, its command-line form, in which one word may be the object
// again. Of a tool with Form.Argv, args is a member like any other. Errors about
// the arguments are errdefs.Invalid.
func (t Tool) Call(ctx context.Context, raw jsontext.Value, out *Output) error {
	members, err := object(raw)
	if err != nil {
		return err
	}
	f := t.Form()
	if words, ok := members["args"]; ok && (!f.Argv || len(members) == 1) {
		var list []string
		if err := json.Unmarshal(words, &list); err != nil || len(members) != 1 || words.Kind() == 'n' {
			return errdefs.New(errdefs.Invalid, "arguments: args is not a list of words that stands alone")
		}
		if raw, err = f.Object(list); err != nil {
			return err
		}
	}
	return t.Run(ctx, raw, out)
}

// Decode reads an arguments object into v, a pointer to a struct. Unknown
// members, members of a wrong type and null are errdefs.Invalid.
func Decode(args jsontext.Value, v any) error {
	members, err := object(args)
	if err != nil {
		return err
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

// object reads the members of an arguments object, and says of one that is no
// strict JSON which member it is about.
func object(raw jsontext.Value) (members map[string]jsontext.Value, err error) {
	err = wire.Object(raw, &members)
	if err == nil {
		return members, nil
	}
	var at *jsontext.SyntacticError
	if !errors.As(json.Unmarshal(raw, &members), &at) || at.JSONPointer == "" {
		return nil, errdefs.New(errdefs.Invalid, "arguments: %w", err)
	}
	why := inert.Text(at.Err.Error())
	switch {
	case errors.Is(at.Err, jsontext.ErrDuplicateName):
		why = "is there twice"
	case strings.HasPrefix(why, "invalid surrogate pair"):
		why = "holds half of a UTF-16 surrogate pair, an escape that means no character"
	}
	return nil, errdefs.New(errdefs.Invalid, "arguments: invalid JSON: member %q: %s", at.JSONPointer.LastToken(), why)
}
