// Package openai speaks OpenAI's Chat Completions, to OpenAI and to the many
// servers that offer the same. The official SDK builds the request and decodes
// the chunks; its retries are off, it reads no environment, and below it stands
// package transport. docs/reference/model-openai.md has the mapping.
package openai

import (
	"context"
	"net/http"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/ctxd/internal/model/failure"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// Driver is the driver of the format "openai.chat". It keeps connections open
// for the next request. The zero value is ready.
type Driver struct{ pool transport.Pool }

var _ model.Driver = (*Driver)(nil)

// Generate does one request (model.Driver).
func (d *Driver) Generate(ctx context.Context, p *provider.Provider, key provider.Secret, g *modelwire.Generate, out model.Sink) error {
	names := toolnames.New(g.Tools)
	params, err := request(p, g, names)
	if err != nil {
		return modelwire.Fail(errdefs.KindOf(err), modelwire.PhasePreSend, modelwire.ClassInvalid, "%s", err)
	}
	below, err := d.pool.Get(p.Proxy, isDone)
	if err != nil {
		return modelwire.Fail(errdefs.Invalid, modelwire.PhasePreSend, modelwire.ClassInvalid, "%s", err)
	}
	// Not openai.NewClient, which reads keys, addresses and headers from the
	// environment.
	client := openai.Client{Options: []option.RequestOption{
		option.WithBaseURL(p.BaseURL),
		option.WithHTTPClient(&http.Client{Transport: below}),
		option.WithMaxRetries(0),
	}}
	if !key.Empty() {
		client.Options = append(client.Options, option.WithAPIKey(key.Reveal()))
	}
	var resp *http.Response
	if err := client.Post(ctx, "chat/completions", params, &resp); err != nil {
		return failure.Broken(transport.Facts(ctx, err), key)
	}
	stream, err := transport.StreamOf(resp)
	if err != nil {
		return err
	}
	defer stream.Close()
	if err := out.Send(&modelwire.Start{Model: g.Model, RequestID: compose.Word(resp.Header.Get("X-Request-Id"))}); err != nil {
		return err
	}
	a := newAnswer(out, names, resp.StatusCode, key)
	return a.Follow(stream, a.event, a.ended)
}
