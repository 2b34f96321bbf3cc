// Package anthropic speaks Anthropic's Messages, to Anthropic and to servers
// that offer the same. The official SDK builds the request and decodes the
// events; its retries are off, it reads no environment and no credential files,
// and below it stands package transport. docs/reference/model-anthropic.md has
// the mapping.
package anthropic

import (
	"bytes"
	"context"
	"net/http"
	"regexp"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/ctxd/internal/model/failure"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Driver is the driver of the format "anthropic.messages". It keeps connections
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
	var resp *http.Response
	client := client(p, key, below)
	if beta := g.Options[betaOption]; beta != "" {
		client.Options = append(client.Options, option.WithHeader("Anthropic-Beta", beta))
	}
	if err := client.Post(ctx, path(p.BaseURL), body, &resp); err != nil {
		return failure.Broken(transport.Facts(ctx, err), key)
	}
	stream, err := transport.StreamOf(resp)
	if err != nil {
		return err
	}
	defer stream.Close()
	if err := out.Send(&modelwire.Start{Model: g.Model, RequestID: compose.Word(resp.Header.Get("Request-Id"))}); err != nil {
		return err
	}
	a := &answer{Answer: compose.New(out, names, resp.StatusCode), request: g, key: key}
	return a.Follow(stream, a.event, a.ended)
}

// client is not anthropic.NewClient, which reads keys, profiles, addresses and
// headers from the environment and from files.
func client(p *provider.Provider, key provider.Secret, below http.RoundTripper) anthropic.Client {
	c := anthropic.Client{Options: []option.RequestOption{
		option.WithBaseURL(p.BaseURL),
		option.WithHTTPClient(&http.Client{Transport: below}),
		option.WithMaxRetries(0),
	}}
	if !key.Empty() {
		c.Options = append(c.Options, option.WithAPIKey(key.Reveal()))
	}
	return c
}

// versioned is a base URL that names the version of the interface itself.
var versioned = regexp.MustCompile(`://[^/]+(?:/.*)?/v[0-9]+$`)

// path is where requests go below a base URL.
func path(base string) string {
	if versioned.MatchString(base) {
		return "messages"
	}
	return "v1/messages"
}

// isLast reports the terminal event.
func isLast(ev transport.Event) bool {
	if ev.Type != "" {
		return ev.Type == lastEvent
	}
	var kind struct {
		Type string `json:"type"`
	}
	return bytes.Contains(ev.Data, []byte(lastEvent)) &&
		json.Unmarshal(ev.Data, &kind, jsontext.AllowDuplicateNames(true)) == nil && kind.Type == lastEvent
}

const lastEvent = "message_stop"
