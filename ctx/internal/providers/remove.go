package providers

import (
	"slices"
	"strconv"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/models"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/tree"
)

// Remove removes a provider, its models and its keys, also where its file is
// broken or gone. It is refused while an agent's explicit window rests on one of
// the models; agents that use one without are told of.
func Remove(from *caller.Caller, name string) error {
	if err := ours(from); err != nil {
		return err
	}
	ids, err := known(from, name)
	if err != nil {
		return err
	}
	uses, err := tree.ModelUses(from.Layout)
	if err != nil {
		return err
	}
	if err := tree.RemoveModels(from.Layout, ids); err != nil {
		return err
	}
	// The keys first: one that is left would go to whoever gets the name next.
	if err := provider.RemoveKeys(from.Layout, name); err != nil {
		return err
	}
	if err := provider.Remove(from.Layout, name); err != nil && !errdefs.Is(err, errdefs.NotFound) {
		return err
	}
	for _, u := range uses {
		if slices.Contains(ids, u.ID) {
			from.Warn("agent " + string(u.Agent) + ": its model " + string(u.Model) + " is gone; ctx agent set " + string(u.Agent) + " model MODEL")
		}
	}
	from.Note("removed provider " + name)
	return nil
}

// known is the models the tree has of a provider. A provider that has neither
// models nor a file is errdefs.NotFound.
func known(from *caller.Caller, name string) ([]libctx.Model, error) {
	if err := provider.CheckName(name); err != nil {
		return nil, err
	}
	if name == provider.Debug {
		return nil, errdefs.New(errdefs.Invalid, "provider %s: is built in", name)
	}
	list, err := models.OfProvider(from.Layout, name)
	if err != nil {
		return nil, err
	}
	var ids []libctx.Model
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	if len(ids) > 0 {
		return ids, nil
	}
	names, err := provider.List(from.Layout)
	if err == nil && !slices.Contains(names, name) {
		err = errdefs.New(errdefs.NotFound, "there is no provider %s", name).WithHint("ctx provider ls")
	}
	return nil, err
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}
