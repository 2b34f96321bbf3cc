package providers

import (
	"cmp"
	"slices"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/window"
)

// AddOptions are the flags of `ctx provider add`.
type AddOptions struct {
	Preset, BaseURL, Format string
	Slot                    string   // of the key
	Models                  []string // the provider's own names
	Limits                  []string // "N" for all Models, or "MODEL=N"
	MaxOutputs              []string // likewise
	Proxy                   string
	Insecure, NoKey         bool
}

// place reports whether the flags say where a provider is. The slot of its key
// is not of that.
func (o *AddOptions) place() bool {
	return o.Preset != "" || o.BaseURL != "" || o.Format != "" || o.Proxy != "" || o.Insecure || o.NoKey
}

// Add writes a provider's file and makes the entries of its models. Without
// flags that say where the provider is, it adds models to one that is there,
// gives those it has other limits, or makes it use the key in another slot. A
// limit that no flag says is that of the built-in table, if it has one.
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
	if o.Slot != "" {
		if p.KeySlot = o.Slot; o.Slot == provider.DefaultSlot {
			p.KeySlot = ""
		}
	}
	if old == nil || o.Slot == "" || len(o.Models)+len(o.Limits)+len(o.MaxOutputs) > 0 {
		if err := o.models(p); err != nil {
			return err
		}
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
		preset, err := provider.FindPreset(o.Preset)
		if err != nil {
			return nil, err
		}
		p.Format, p.BaseURL, p.Key = cmp.Or(p.Format, preset.Format), cmp.Or(p.BaseURL, preset.BaseURL), preset.Key
	}
	if o.NoKey {
		p.Key = provider.KeyNone
	}
	if p.BaseURL == "" {
		return nil, errdefs.New(errdefs.Invalid, "provider %s: where it is, is missing", name).
			WithHint("--base-url URL --format %s, or --preset %s", strings.Join(provider.Formats, "|"), presetNames())
	}
	p.Format = cmp.Or(p.Format, provider.Formats[0])
	return p, nil
}

func presetNames() string {
	var names []string
	for _, p := range provider.Presets() {
		names = append(names, p.Name)
	}
	return strings.Join(names, "|")
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
		m := provider.Model{ID: id, Limit: cmp.Or(limits[id], p.KnownLimit(id)), MaxOutput: outputs[id]}
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
