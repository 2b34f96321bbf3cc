// Package drivers lists the drivers that ctxmodel has.
package drivers

import (
	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/ctxd/internal/model/anthropic"
	"cortexfs.org/ctxd/internal/model/debug"
	"cortexfs.org/ctxd/internal/model/detect"
	"cortexfs.org/ctxd/internal/model/google"
	"cortexfs.org/ctxd/internal/model/openai"
	"cortexfs.org/ctxd/internal/model/responses"
)

// All is every driver, by the format it speaks.
func All() model.Registry {
	return model.Registry{
		Debug:  debug.Driver{},
		Detect: detect.Local,
		Formats: map[string]model.Driver{
			"anthropic.messages": new(anthropic.Driver),
			"google.generate":    new(google.Driver),
			"openai.chat":        new(openai.Driver),
			"openai.responses":   new(responses.Driver),
		},
	}
}
