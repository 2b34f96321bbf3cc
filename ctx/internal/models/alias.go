package models

import (
	"cortexfs.org/ctx/internal/activator"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/tree"
)

// AliasOptions are the flags of `ctx model alias`.
type AliasOptions struct {
	Own    bool // the caller's alone
	Remove bool
}

// Alias makes a name lead to a model, or removes the name. In a tree that is not
// the caller's, it is always the caller's own name.
func Alias(from *caller.Caller, name, target string, o AliasOptions) error {
	alias, err := libctx.ParseModel(name)
	if err != nil {
		return err
	}
	o.Own = o.Own || !activator.Own(from.Layout)
	switch {
	case o.Remove && target != "":
		return errdefs.New(errdefs.Invalid, "--remove takes no model")
	case o.Remove:
		err = tree.RemoveAlias(from.Layout, alias, o.Own)
		if err == nil {
			from.Note("removed alias " + name)
		}
		return err
	case target == "":
		return errdefs.New(errdefs.Invalid, "what %s should mean is missing", name).WithHint("ctx model ls lists the models")
	}
	id, err := libctx.ParseModel(target)
	if err == nil {
		err = tree.SetAlias(from.Layout, alias, id, o.Own)
	}
	if err == nil {
		from.Note("alias " + name + " means " + target)
	}
	return err
}
