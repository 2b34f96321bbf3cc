package google

import (
	"net/http"

	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx/provider"
)

// placeholder stands for the key in the SDK, which wants one, would look for it
// in the environment, and shows it in its errors.
const placeholder = "key"

// carrier is the RoundTripper of one request: it puts the key in, takes out what
// the SDK tells of this machine, and keeps the answer for us. The SDK gets an
// empty one.
type carrier struct {
	below  http.RoundTripper
	key    provider.Secret
	stream *transport.Stream // the answer; nil if there is none
	status int
}

// RoundTrip sends the request (http.RoundTripper).
func (c *carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for _, name := range []string{"X-Goog-Api-Client", "X-Goog-Api-Key", "X-Server-Timeout"} {
		req.Header.Del(name)
	}
	if !c.key.Empty() {
		req.Header.Set("X-Goog-Api-Key", c.key.Reveal())
	}
	resp, err := c.below.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	stream, err := transport.StreamOf(resp)
	if err != nil {
		return nil, err
	}
	c.stream, c.status = stream, resp.StatusCode
	resp.Body = http.NoBody
	return resp, nil
}
