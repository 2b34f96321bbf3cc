package provider

import (
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
)

func TestTables(t *testing.T) {
	for table, n := range map[string]int{presetTable: len(presets()), limitTable: len(limits())} {
		if lines := strings.Count(table, "\n") - strings.Count("\n"+table, "\n#"); lines != n || n == 0 || !strings.HasSuffix(table, "\n") {
			t.Errorf("%d of %d lines of a table are understood", n, lines)
		}
	}
}

func TestPresets(t *testing.T) {
	all := Presets()
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
		p := &Provider{Name: s.Name, Format: s.Format, BaseURL: s.BaseURL, Key: s.Key, Models: []Model{{ID: "m"}}}
		if err := p.Check(); err != nil {
			t.Errorf("preset %s: %v", s.Name, err)
		}
		if local := strings.HasPrefix(s.BaseURL, "http://127.0.0.1:"); local != (s.Key == KeyNone) || !local && !strings.HasPrefix(s.BaseURL, "https://") {
			t.Errorf("preset %s: %s, key %s", s.Name, s.BaseURL, s.Key)
		}
		if got, err := FindPreset(s.Name); err != nil || got != s {
			t.Errorf("%s: %+v, %v", s.Name, got, err)
		}
	}
	for _, name := range []string{"openai", "anthropic", "google", "openrouter", "ollama", "llama.cpp", "lmstudio", "vllm"} {
		if !slices.Contains(names, name) {
			t.Errorf("no preset %s", name)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("%q are not sorted", names)
	}
	if _, err := FindPreset("nobody"); !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(errdefs.HintOf(err), "llama.cpp lmstudio") {
		t.Errorf("%v, %s", err, errdefs.HintOf(err))
	}
	all[0].Name = "changed"
	if Presets()[0].Name == "changed" {
		t.Error("the presets can be changed")
	}
}

func TestKnownLimit(t *testing.T) {
	for key := range limits() {
		if service, _, _ := strings.Cut(key, " "); !slices.ContainsFunc(presets(), func(s Preset) bool { return s.Name == service }) {
			t.Errorf("%s: no such preset", key)
		}
	}
	for _, c := range []struct {
		base, id string
		want     uint32
	}{
		{"https://api.openai.com/v1", "gpt-4o", 128000},
		{"https://api.anthropic.com", "claude-opus-4-5", 200000},
		{"https://api.openai.com/v1", "gpt-4o-mine", 0},
		{"https://api.openai.com/v2", "gpt-4o", 0},
		{"https://gateway.example/v1", "gpt-4o", 0},
		{"http://127.0.0.1:11434/v1", "gpt-4o", 0},
	} {
		if got := (&Provider{BaseURL: c.base}).KnownLimit(c.id); got != c.want {
			t.Errorf("%s at %s: %d", c.id, c.base, got)
		}
	}
	if !strings.Contains(limitTable, "as of 20") {
		t.Error("the table does not say of when it is")
	}
}
