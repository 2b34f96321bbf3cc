package providers

import (
	"strings"

	"cortexfs.org/libctx/errdefs"
)

// preset is where a well-known service or local server is.
type preset struct {
	name, baseURL, format string
	noKey                 bool
}

var presets = []preset{
	{name: "deepseek", baseURL: "https://api.deepseek.com/v1", format: "openai.chat"},
	{name: "groq", baseURL: "https://api.groq.com/openai/v1", format: "openai.chat"},
	{name: "llamacpp", baseURL: "http://127.0.0.1:8080/v1", format: "openai.chat", noKey: true},
	{name: "lmstudio", baseURL: "http://127.0.0.1:1234/v1", format: "openai.chat", noKey: true},
	{name: "mistral", baseURL: "https://api.mistral.ai/v1", format: "openai.chat"},
	{name: "ollama", baseURL: "http://127.0.0.1:11434/v1", format: "openai.chat", noKey: true},
	{name: "openai", baseURL: "https://api.openai.com/v1", format: "openai.chat"},
	{name: "openrouter", baseURL: "https://openrouter.ai/api/v1", format: "openai.chat"},
	{name: "vllm", baseURL: "http://127.0.0.1:8000/v1", format: "openai.chat", noKey: true},
}

func presetNames() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.name
	}
	return names
}

func findPreset(name string) (preset, error) {
	for _, p := range presets {
		if p.name == name {
			return p, nil
		}
	}
	return preset{}, errdefs.New(errdefs.Invalid, "flag --preset: unknown preset %q", name).
		WithHint("the presets are %s", strings.Join(presetNames(), " "))
}
