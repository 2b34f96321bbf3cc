// Package openai speaks OpenAI's Chat Completions, to OpenAI and to the many
// servers that offer the same. The official SDK builds the request and decodes
// the chunks; its retries are off, it reads no environment, and below it stands
// package transport. docs/reference/model-openai.md has the mapping.
package openai

import (
	"context"
	"errors"
	"io"
	"net/http"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/ctxd/internal/model/failure"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx"
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
		option.WithHeader("Accept", "text/event-stream"),
		option.WithHeader("User-Agent", "cortexfs/"+libctx.Version),
	}}
	for _, name := range telling {
		client.Options = append(client.Options, option.WithHeaderDel(name))
	}
	if !key.Empty() {
		client.Options = append(client.Options, option.WithAPIKey(key.Reveal()))
	}
	var resp *http.Response
	if err := client.Post(ctx, "chat/completions", params, &resp); err != nil {
		return failure.Broken(transport.Facts(ctx, err), key)
	}
	stream, ok := resp.Body.(*transport.Stream)
	if !ok {
		resp.Body.Close()
		return errdefs.New(errdefs.Internal, "the SDK put something over the transport's stream: a %T", resp.Body)
	}
	defer stream.Close()
	if err := out.Send(&modelwire.Start{Model: g.Model, RequestID: word(failure.Redact(resp.Header.Get("X-Request-Id"), key))}); err != nil {
		return err
	}
	return read(stream, &answer{out: out, names: names, status: resp.StatusCode, key: key})
}

// telling are headers of the SDK that say what machine this is.
var telling = []string{
	"X-Stainless-Lang", "X-Stainless-Package-Version", "X-Stainless-OS", "X-Stainless-Arch", "X-Stainless-Runtime",
	"X-Stainless-Runtime-Version", "X-Stainless-Retry-Count", "X-Stainless-Timeout",
}

// read takes the whole answer. What is known of the usage is sent even if it
// fails.
func read(stream *transport.Stream, a *answer) error {
	for {
		ev, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return a.finish()
		}
		if err != nil {
			var broken *transport.Error
			errors.As(err, &broken)
			return a.fail(failure.Broken(broken, a.key))
		}
		if isDone(ev) {
			continue
		}
		if err := a.event(ev); err != nil {
			var f *modelwire.Failure
			if errors.As(err, &f) {
				return a.fail(f)
			}
			return err
		}
	}
}
