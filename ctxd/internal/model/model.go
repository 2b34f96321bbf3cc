// Package model is ctxmodel: it serves the model socket, finds the provider and
// the key a request needs, and hands it to the driver of the provider's format.
// The drivers are packages of their own; package drivers lists them. What a
// driver sends is checked before a client sees it (modelwire.Stream).
package model

import (
	"context"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
)

// Driver speaks one provider format. One driver serves many requests at a time.
type Driver interface {
	// Generate does one request and sends start, the provisional frames, one
	// message and, if known, usage; nothing after the message but usage. It
	// never sends error or done. It returns nil only if the provider ended its
	// answer as its format wants, and a *modelwire.Failure otherwise; any other
	// error but ErrDrop is taken for a defect. When the context ends it gives up
	// at once. The error of Send ends the request: it is returned as it is.
	Generate(ctx context.Context, p *provider.Provider, key provider.Secret, g *modelwire.Generate, out Sink) error
}

// Sink takes the frames of an answer in order, from one goroutine at a time. It
// waits while the client does not read.
type Sink interface {
	Send(modelwire.Frame) error
}

// Detect looks for known servers of models on this machine and calls found for
// each.
type Detect func(ctx context.Context, found func(*modelwire.Found) error) error

// ErrDrop makes the server close the connection without a word, as if it had
// died. It is errdefs.Interrupted.
var ErrDrop error = errdefs.New(errdefs.Interrupted, "the connection is dropped")

// Registry is what a server can do.
type Registry struct {
	Formats map[string]Driver // by the format of provider files
	Debug   Driver            // of the built-in provider; no file, no key, no network
	Detect  Detect            // nil: detect finds nothing
}
