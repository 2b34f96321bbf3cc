// Package responses speaks OpenAI's Responses, to OpenAI and to servers that
// offer the same. Nothing is kept at the provider: each request has the whole
// conversation. The official SDK builds the request and decodes the events; its
// retries are off, it reads no environment, and below it stands package
// transport. docs/reference/model-responses.md has the mapping.
package responses

import (
	"bytes"
	"context"
	"net/http"
	"slices"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/ctxd/internal/model/failure"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// Driver is the driver of the format "openai.responses". It keeps connections
// open for the next request. The zero value is ready.
type Driver struct{ pool transport.Pool }

var _ model.Driver = (*Driver)(nil)

// Generate does one request (model.Driver).
func (d *Driver) Generate(ctx context.Context, p *provider.Provider, key provider.Secret, g *modelwire.Generate, out model.Sink) error {
	names := toolnames.New(g.Tools)
	body, err := request(p, g, names)
	if err != nil {
		return modelwire.Fail(errdefs.KindOf(err), modelwire.PhasePreSend, modelwire.ClassInvalid, "%s", err)
	}
	below, err := d.pool.Get(p.Proxy, isLast)
	if err != nil {
		return modelwire.Fail(errdefs.Invalid, modelwire.PhasePreSend, modelwire.ClassInvalid, "%s", err)
	}
	client := client(p, key, below)
	var resp *http.Response
	if err := client.Post(ctx, "responses", body, &resp); err != nil {
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
	a := &answer{Answer: compose.New(out, names, resp.StatusCode), request: g, key: key}
	return a.Follow(stream, a.event, a.ended)
}

// client is not openai.NewClient, which reads keys, addresses and headers from
// the environment.
func client(p *provider.Provider, key provider.Secret, below http.RoundTripper) openai.Client {
	c := openai.Client{Options: []option.RequestOption{
		option.WithBaseURL(p.BaseURL),
		option.WithHTTPClient(&http.Client{Transport: below}),
		option.WithMaxRetries(0),
		option.WithHeader("Content-Type", "application/json"),
	}}
	if !key.Empty() {
		c.Options = append(c.Options, option.WithAPIKey(key.Reveal()))
	}
	return c
}

// The events that end an answer, one way or another.
const (
	completed  = "response.completed"
	incomplete = "response.incomplete"
	failed     = "response.failed"
	refused    = "error"
)

var last = []string{completed, incomplete, failed, refused}

// isLast reports a terminal event. It looks into the data only where that may
// be one.
func isLast(ev transport.Event) bool {
	if ev.Type != "" {
		return slices.Contains(last, ev.Type)
	}
	return slices.ContainsFunc(last, func(kind string) bool { return bytes.Contains(ev.Data, []byte(kind)) }) &&
		slices.Contains(last, kindOf(ev))
}

// kindOf is the type of an event: that of its event line, else that of its data.
func kindOf(ev transport.Event) string {
	if ev.Type != "" {
		return ev.Type
	}
	var typed struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(ev.Data, &typed, jsontext.AllowDuplicateNames(true)) != nil {
		return ""
	}
	return typed.Type
}
