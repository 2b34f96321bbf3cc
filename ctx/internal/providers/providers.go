// Package providers is what ctx does with model providers: say where they are
// and which models they have, keep their keys, and try them.
package providers

import (
	"strconv"

	"cortexfs.org/ctx/internal/activator"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/provider"
)

// Entry is one provider of `ctx provider ls --json`.
type Entry struct {
	Provider string         `json:"provider"`
	Format   string         `json:"format"`
	BaseURL  string         `json:"base_url"`
	Key      string         `json:"key"` // "set", "missing", "none" if it needs none, or "unreadable"
	Models   []libctx.Model `json:"models"`
	Error    string         `json:"error"` // why its file is refused, "" if it is not
}

// List lists the providers.
func List(from *caller.Caller) error {
	names, err := provider.List(from.Layout)
	if err != nil {
		return err
	}
	var rows []output.Row
	for _, name := range names {
		e := Entry{Provider: name, Models: []libctx.Model{}}
		p, err := provider.Load(from.Layout, name)
		if err != nil {
			e.Error = err.Error()
			from.Warn(e.Error)
		} else {
			e.Format, e.BaseURL, e.Key = p.Format, p.BaseURL, keyState(from, p)
			for _, m := range p.Models {
				e.Models = append(e.Models, entryName(p, m))
			}
		}
		rows = append(rows, output.Row{Object: e, Cells: []string{
			e.Provider, e.Format, e.BaseURL, e.Key, strconv.Itoa(len(e.Models)),
		}})
	}
	return from.Table([]string{"PROVIDER", "FORMAT", "BASE URL", "KEY", "MODELS"}, rows)
}

func keyState(from *caller.Caller, p *provider.Provider) string {
	if p.Key == provider.KeyNone {
		return "none"
	}
	switch has, err := provider.HasKey(from.Layout, p.Name, p.Slot()); {
	case err != nil:
		return "unreadable"
	case has:
		return "set"
	}
	return "missing"
}

// entryName is the name of a provider's model in the tree.
func entryName(p *provider.Provider, m provider.Model) libctx.Model {
	return libctx.Model(p.Name + "/" + m.Entry())
}

// ours refuses to change what belongs to another user's tree.
func ours(from *caller.Caller) error {
	if !activator.Own(from.Layout) {
		return errdefs.New(errdefs.Denied, "the providers of tree %s are its owner's to change", from.Layout.Root).
			WithHint("make a tree of your own: ctx init --root DIR")
	}
	return nil
}
