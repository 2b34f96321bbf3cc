package provider

import (
	_ "embed" // the tables
	"slices"
	"strconv"
	"strings"
	"sync"

	"cortexfs.org/libctx/errdefs"
)

//go:embed presets.txt
var presetTable string

//go:embed limits.txt
var limitTable string

// Preset is where a well-known service is, or a server of models that listens on
// this machine where it does by itself (docs/reference/providers.md).
type Preset struct {
	Name    string
	Format  string
	BaseURL string
	Key     string // KeyRequired or KeyNone
}

// Presets are all presets, sorted by name.
func Presets() []Preset { return slices.Clone(presets()) }

// FindPreset finds a preset by its name. Another name is errdefs.Invalid.
func FindPreset(name string) (Preset, error) {
	var names []string
	for _, p := range presets() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, errdefs.New(errdefs.Invalid, "there is no preset %.80q", name).
		WithHint("the presets are %s", strings.Join(names, " "))
}

// KnownLimit is the context limit, tokens, of the model with this id at the
// service that the provider is by its base URL; 0 is not known. The table is
// part of the program and bears its date.
func (p *Provider) KnownLimit(id string) uint32 {
	for _, s := range presets() {
		if s.BaseURL == p.BaseURL {
			return limits()[s.Name+" "+id]
		}
	}
	return 0
}

var presets = sync.OnceValue(func() []Preset {
	var all []Preset
	for _, f := range rows(presetTable, 4) {
		all = append(all, Preset{f[0], f[1], f[2], f[3]})
	}
	return all
})

// limits are the limits by the name of a preset, a space, and the model's id.
var limits = sync.OnceValue(func() map[string]uint32 {
	all := map[string]uint32{}
	for _, f := range rows(limitTable, 3) {
		if n, err := strconv.ParseUint(f[2], 10, 32); err == nil {
			all[f[0]+" "+f[1]] = uint32(n)
		}
	}
	return all
})

// rows are the words of the lines of a built-in table that are no comments. A
// test sees to it that there are no others than of this number of words.
func rows(table string, words int) [][]string {
	var all [][]string
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) == words && !strings.HasPrefix(line, "#") {
			all = append(all, f)
		}
	}
	return all
}
