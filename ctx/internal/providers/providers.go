// Package providers is what ctx does with model providers: say where they are
// and which models they have, keep their keys, and try them.
package providers

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/ctx/internal/activator"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/models"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/window"
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

// AddOptions are the flags of `ctx provider add`.
type AddOptions struct {
	Preset, BaseURL, Format string
	Models                  []string // the provider's own names
	Limits                  []string // "N" for all Models, or "MODEL=N"
	MaxOutputs              []string // likewise
	Proxy                   string
	Insecure, NoKey         bool
}

// place reports whether the flags say where a provider is.
func (o *AddOptions) place() bool {
	return o.Preset != "" || o.BaseURL != "" || o.Format != "" || o.Proxy != "" || o.Insecure || o.NoKey
}

// Add writes a provider's file and makes the entries of its models. Without
// flags that say where the provider is, it adds models to one that is there, or
// gives those it has other limits.
func Add(from *caller.Caller, name string, o AddOptions) error {
	if err := ours(from); err != nil {
		return err
	}
	old, err := provider.Load(from.Layout, name)
	var p *provider.Provider
	switch {
	case err == nil && o.place():
		return errdefs.New(errdefs.Exists, "provider %s: it is there already", name).
			WithHint("ctx provider remove %s removes it, its key too", name)
	case err == nil:
		clone := *old
		clone.Models = slices.Clone(old.Models)
		p = &clone
	case !errdefs.Is(err, errdefs.NotFound):
		return err
	default:
		if p, err = o.provider(name); err != nil {
			return err
		}
	}
	if err := o.models(p); err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	if err := provider.Save(from.Layout, p); err != nil {
		return err
	}
	if err := tree.AddModels(from.Layout, specs(p)); err != nil {
		return undo(from, name, old, err)
	}
	from.Note("provider " + name + " has " + plural(len(p.Models), "model"))
	if keyState(from, p) == "missing" {
		from.Note("try: ctx provider key " + name)
	} else {
		from.Note("try: ctx provider test " + name)
	}
	return nil
}

// undo puts a provider's file back after its models could not be made.
func undo(from *caller.Caller, name string, old *provider.Provider, why error) error {
	var err error
	if old == nil {
		err = provider.Remove(from.Layout, name)
	} else {
		err = provider.Save(from.Layout, old)
	}
	if err != nil {
		from.Warn("provider " + name + ": its file could not be put back: " + err.Error())
	}
	return why
}

// specs are the models of a provider for the tree.
func specs(p *provider.Provider) []tree.ModelSpec {
	list := make([]tree.ModelSpec, len(p.Models))
	for i, m := range p.Models {
		list[i] = tree.ModelSpec{
			ID: entryName(p, m), Driver: p.Format, Cap: []string{control.CapChat, control.CapStream, control.CapTools},
			Limit: window.Size(m.Limit), MaxOutput: m.MaxOutput,
		}
	}
	return list
}

// provider makes a provider without models.
func (o *AddOptions) provider(name string) (*provider.Provider, error) {
	p := &provider.Provider{Name: name, Format: o.Format, BaseURL: strings.TrimRight(o.BaseURL, "/"), Proxy: o.Proxy, Insecure: o.Insecure, Key: provider.KeyRequired}
	if o.Preset != "" {
		preset, err := findPreset(o.Preset)
		if err != nil {
			return nil, err
		}
		p.Format, p.BaseURL = cmp.Or(p.Format, preset.format), cmp.Or(p.BaseURL, preset.baseURL)
		if preset.noKey {
			p.Key = provider.KeyNone
		}
	}
	if o.NoKey {
		p.Key = provider.KeyNone
	}
	if p.BaseURL == "" {
		return nil, errdefs.New(errdefs.Invalid, "provider %s: where it is, is missing", name).
			WithHint("--base-url URL --format %s, or --preset %s", strings.Join(provider.Formats, "|"), strings.Join(presetNames(), "|"))
	}
	p.Format = cmp.Or(p.Format, provider.Formats[0])
	return p, nil
}

// models puts the named models into the provider, each at its place.
func (o *AddOptions) models(p *provider.Provider) error {
	if len(o.Models) == 0 {
		return errdefs.New(errdefs.Invalid, "provider %s: no model is named", p.Name).
			WithHint("--model MODEL, in the provider's own words")
	}
	limits, err := numbers("--limit", o.Limits, o.Models)
	if err != nil {
		return err
	}
	outputs, err := numbers("--max-output", o.MaxOutputs, o.Models)
	if err != nil {
		return err
	}
	for _, id := range o.Models {
		m := provider.Model{ID: id, Limit: limits[id], MaxOutput: outputs[id]}
		if entry := provider.EntryName(id); entry != id {
			m.Name = entry
		}
		i := slices.IndexFunc(p.Models, func(old provider.Model) bool { return old.Entry() == m.Entry() })
		switch {
		case i < 0:
			p.Models = append(p.Models, m)
		case p.Models[i].ID != id:
			return errdefs.New(errdefs.Invalid, "provider %s: %q and %q would both be called %s", p.Name, p.Models[i].ID, id, entryName(p, m))
		default:
			p.Models[i] = m
		}
	}
	slices.SortFunc(p.Models, func(a, b provider.Model) int { return strings.Compare(a.Entry(), b.Entry()) })
	return nil
}

// numbers reads the values of a flag: "N" for all models, or "MODEL=N", which
// goes before.
func numbers(flag string, values, models []string) (map[string]uint32, error) {
	all := map[string]uint32{}
	for _, one := range []bool{false, true} { // first what is for all
		for _, v := range values {
			i := strings.LastIndexByte(v, '=')
			if (i >= 0) != one {
				continue
			}
			n, err := control.ParseMaxOutput(control.Line(v[i+1:]))
			if err != nil {
				return nil, errdefs.New(errdefs.Invalid, "flag %s: %q is not a positive number of tokens", flag, v[i+1:])
			}
			if one && !slices.Contains(models, v[:i]) {
				return nil, errdefs.New(errdefs.Invalid, "flag %s: %q is no --model", flag, v[:i])
			}
			for _, m := range models {
				if !one || m == v[:i] {
					all[m] = n
				}
			}
		}
	}
	return all, nil
}

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
