// Package detect looks for servers of models on this machine: the ports that
// well-known ones listen on, on loopback alone, one question each. What answers
// like an OpenAI-compatible server is found, whatever it is.
package detect

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
)

// Server is a kind of server and where it listens by default.
type Server struct {
	Name string // a provider name
	Addr string // host and port
}

// Known are the servers that are looked for.
var Known = []Server{
	{"ollama", "127.0.0.1:11434"},
	{"lmstudio", "127.0.0.1:1234"},
	{"llama.cpp", "127.0.0.1:8080"},
	{"vllm", "127.0.0.1:8000"},
	{"jan", "127.0.0.1:1337"},
}

// Local asks the known servers, all at once, and calls found for those that
// answer, in the order of the list. Its error is that of found, or the
// context's.
func Local(ctx context.Context, found func(*modelwire.Found) error) error {
	return among(ctx, Known, found)
}

func among(ctx context.Context, servers []Server, found func(*modelwire.Found) error) error {
	ctx, cancel := context.WithTimeout(ctx, libctx.DetectTimeout)
	defer cancel()
	base := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: libctx.DetectTimeout}).DialContext,
		MaxResponseHeaderBytes: libctx.MaxHTTPHead,
		DisableKeepAlives:      true,
		DisableCompression:     true,
	}
	answers := make([]*modelwire.Found, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { answers[i] = ask(ctx, base, s) })
	}
	all.Wait()
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return err
	}
	for _, f := range answers {
		if f == nil {
			continue
		}
		if err := found(f); err != nil {
			return err
		}
	}
	return nil
}

// ask is what a server offers, nil if none is there.
func ask(ctx context.Context, base http.RoundTripper, s Server) *modelwire.Found {
	url := "http://" + s.Addr + "/v1"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/models", nil)
	if err != nil {
		return nil
	}
	// Not a client, which would follow redirects.
	resp, err := base.RoundTrip(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, libctx.MaxDetectBody))
	if err != nil {
		return nil
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &list) != nil || list.Data == nil {
		return nil
	}
	f := &modelwire.Found{Name: s.Name, Format: "openai.chat", BaseURL: url, Models: []string{}}
	for _, m := range list.Data {
		if len(f.Models) == libctx.MaxProviderModels {
			break
		}
		// A name that a provider file could not hold is of no use.
		if m.ID != "" && len(m.ID) <= libctx.MaxModelID && inert.Line(wire.Clean([]byte(m.ID))) == m.ID && !slices.Contains(f.Models, m.ID) {
			f.Models = append(f.Models, m.ID)
		}
	}
	return f
}
