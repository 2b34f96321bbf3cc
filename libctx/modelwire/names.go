package modelwire

import (
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// ProviderOf is the provider's part of a model's name, "" of an alias.
func ProviderOf(m libctx.Model) string {
	p, _, two := strings.Cut(string(m), "/")
	if !two {
		return ""
	}
	return p
}

// NameOf is what follows the provider in a model's name, "" of an alias.
func NameOf(m libctx.Model) string {
	_, name, _ := strings.Cut(string(m), "/")
	return name
}

// checkModel wants provider/model.
func checkModel(m libctx.Model) error {
	if m == "" {
		return missing("model")
	}
	if _, err := libctx.ParseModel(string(m)); err != nil {
		return errdefs.New(errdefs.Invalid, "member model: %w", err)
	}
	if ProviderOf(m) == "" {
		return errdefs.New(errdefs.Invalid, "member model: %.80q is not provider/model", string(m))
	}
	return nil
}

// checkProvider wants a provider's name, which is an object name.
func checkProvider(name string) error {
	if name == "" {
		return missing("provider")
	}
	if _, err := libctx.ParseModel(name); err != nil || strings.Contains(name, "/") {
		return errdefs.New(errdefs.Invalid, "member provider: %.80q is not a provider name", name)
	}
	return nil
}
