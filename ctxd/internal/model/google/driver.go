// Package google speaks Google's generateContent, to the Gemini API and to
// servers that offer the same. The official SDK builds the request and sends it
// through package transport; it repeats nothing, and takes no key, address or
// proxy from the environment. It does not read the answer: an odd one makes it
// panic, and it rounds large numbers. docs/reference/model-google.md has the
// mapping.
package google

import (
	"context"
	"errors"
	"net/http"
	"regexp"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"google.golang.org/genai"
)

// Driver is the driver of the format "google.generate". It keeps connections
// open for the next request. The zero value is ready.
type Driver struct{ pool transport.Pool }

var _ model.Driver = (*Driver)(nil)

// Generate does one request (model.Driver).
func (d *Driver) Generate(ctx context.Context, p *provider.Provider, key provider.Secret, g *modelwire.Generate, out model.Sink) error {
	names := toolnames.New(g.Tools)
	q, err := request(p, g, names)
	if err != nil {
		return modelwire.Fail(errdefs.KindOf(err), modelwire.PhasePreSend, modelwire.ClassInvalid, "%s", err)
	}
	below, err := d.pool.Get(p.Proxy, isLast)
	if err != nil {
		return modelwire.Fail(errdefs.Invalid, modelwire.PhasePreSend, modelwire.ClassInvalid, "%s", err)
	}
	c := &carrier{below: below, key: key}
	models, err := client(ctx, p.BaseURL, c)
	if err != nil {
		return err
	}
	for _, sent := range models.GenerateContentStream(ctx, q.model, q.contents, q.config) {
		err = sent // the carrier's answer is empty: there is at most this
	}
	if c.stream == nil {
		return unsent(ctx, err, key)
	}
	defer c.stream.Close()
	if err := out.Send(&modelwire.Start{Model: g.Model}); err != nil {
		return err
	}
	a := &answer{Answer: compose.New(out, names, c.status), request: g, key: key}
	return a.Follow(c.stream, a.event, a.ended)
}

// unsent is the failure of a request that nobody answered. What the SDK says of
// one that it could not make would show all of it.
func unsent(ctx context.Context, err error, key provider.Secret) error {
	facts := transport.Facts(ctx, err)
	if facts.Phase == modelwire.PhasePreSend && facts.Kind == errdefs.Invalid {
		facts.Err = errors.New("the library can not write the request")
	}
	return refusal(facts, key)
}

// ended says what the end of the stream makes of the answer. One that has said why
// it ends, and not what it cost, is complete when the stream ends as it should.
func (a *answer) ended(broken *transport.Error) error {
	if broken != nil && !(broken.Early() && a.complete()) {
		return a.Fail(refusal(broken, a.key))
	}
	return a.finish()
}

// versioned is a base URL that names the version of the interface itself.
var versioned = regexp.MustCompile(`^([a-z]+://[^/]+(?:/.*)?)/(v[0-9]+(?:alpha|beta)?[0-9]*)$`)

// client makes the SDK's client. Whatever it could take from the environment is
// given, and what is sent passes the carrier, which has the key.
func client(ctx context.Context, base string, c *carrier) (*genai.Models, error) {
	version := "v1beta"
	if m := versioned.FindStringSubmatch(base); m != nil {
		base, version = m[1], m[2]
	}
	made, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: placeholder, Backend: genai.BackendGeminiAPI, HTTPClient: &http.Client{Transport: c},
		HTTPOptions: genai.HTTPOptions{BaseURL: base, APIVersion: version},
	})
	if err != nil {
		return nil, modelwire.Fail(errdefs.Invalid, modelwire.PhasePreSend, modelwire.ClassInvalid, "the library does not take the provider: %s", err)
	}
	return made.Models, nil
}
