package failure

import (
	"errors"
	"net/http"
	"testing"

	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
)

func TestPage(t *testing.T) {
	for _, c := range []struct {
		status            int
		kind, body        string
		phase, class, say string
	}{
		{200, "text/html; charset=utf-8", "<!DOCTYPE html><head>\n<title lang=en>Sign\n in </title><body>maximum context length", "headers", "other", "HTTP 200: a web page came, not an answer: Sign in"},
		{200, "text/plain", " <HTML><body>x", "headers", "other", "HTTP 200: a web page came, not an answer"},
		{502, "text/html", "<html><title>502 Bad key-0123456789 Gateway</title>", "provider", "server", "HTTP 502: a web page came, not an answer: 502 Bad [redacted] Gateway"},
		{404, "text/html", "", "provider", "invalid", "HTTP 404: a web page came, not an answer"},
		{200, "text/html", "<title>\x1b[2J\xff</title>", "headers", "other", "HTTP 200: a web page came, not an answer: \\x1b[2J\uFFFD"},
		{200, "application/json", `{"error":{"message":"<html>"}}`, "headers", "other", "HTTP 200: the answer is application/json, not an event stream: <html>"},
	} {
		e := &transport.Error{
			Phase: c.phase, Kind: errdefs.Provider, Status: c.status, Refused: true, Body: []byte(c.body),
			Header: http.Header{"Content-Type": {c.kind}},
			Err:    errors.New("x"),
		}
		f := Broken(e, provider.NewSecret("key-0123456789"))
		if f.Class != c.class || f.Phase != c.phase || f.Status != c.status || f.Message != c.say {
			t.Errorf("%d %s: %+v", c.status, c.body, f)
		}
		if _, err := modelwire.MarshalFrame(&modelwire.Error{Failure: *f}); err != nil {
			t.Error(err)
		}
	}
}
