// Package transport carries the requests of every driver: one http.RoundTripper
// below the providers' SDKs that knows where a request is (connect, headers,
// body), holds each phase to its time, bounds every byte that comes back, and
// lets through only a 2xx answer that is an event stream. Whatever else comes is
// a *Error with the facts a driver needs; the SDK above never sees it.
//
// It follows no redirect, knows no proxy but the one it is told, keeps no
// cookies, and reads no environment. What docs/reference/model-openai.md says of
// HTTP is done here.
package transport

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
)

// Times are how long the phases of a request may take.
type Times struct {
	Connect time.Duration // name, connection and TLS
	Headers time.Duration // from there until the answer's headers are in
	Silence time.Duration // without a byte of the answer
	Error   time.Duration // for the text of a refusal
	Request time.Duration // everything together
}

// Standard are the times of libctx's limits.
var Standard = Times{
	Connect: libctx.ProviderConnect, Headers: libctx.ProviderHeaders, Silence: libctx.ProviderSilence,
	Error: libctx.ProviderError, Request: libctx.ProviderRequest,
}

// Transport is a RoundTripper whose answers have a *Stream as their body. It may
// be used from any goroutine. Its owner calls CloseIdle when it needs it no more.
type Transport struct {
	base     *http.Transport
	times    Times
	terminal func(Event) bool
}

// New makes a transport. The proxy may be nil; terminal reports whether an event
// is the last one of a stream, whatever follows it.
func New(proxy *url.URL, times Times, terminal func(Event) bool) *Transport {
	t := &Transport{times: times, terminal: terminal}
	t.base = &http.Transport{
		DialContext:            (&net.Dialer{Timeout: times.Connect}).DialContext,
		TLSHandshakeTimeout:    times.Connect,
		DisableCompression:     true, // what is counted and timed is what was sent
		MaxResponseHeaderBytes: libctx.MaxHTTPHead,
		MaxIdleConns:           libctx.MaxIdleProviders,
		MaxIdleConnsPerHost:    libctx.MaxIdleProviders,
		IdleConnTimeout:        libctx.ProviderIdle,
		ForceAttemptHTTP2:      true,
	}
	if proxy != nil {
		t.base.Proxy = http.ProxyURL(proxy)
	}
	return t
}

// CloseIdle closes the connections that no request uses.
func (t *Transport) CloseIdle() { t.base.CloseIdleConnections() }

// RoundTrip sends a request once. An answer that is no event stream, and
// everything that goes wrong, is a *Error; else the body is a *Stream, which the
// caller closes. Cancelling the request's context ends any phase at once.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	w := watch(req.Context(), t.times)
	sent := req.Clone(httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { w.enter(modelwire.PhaseHeaders, t.times.Headers) },
	}))
	header(sent.Header)
	w.enter(modelwire.PhaseConnect, t.times.Connect)
	resp, err := t.base.RoundTrip(sent)
	if err != nil {
		return nil, w.end(w.fail(err))
	}
	w.enter(modelwire.PhaseBody, 0)
	if why := refused(resp); why != "" {
		return nil, w.end(t.refusal(w, resp, why))
	}
	resp.Body = newStream(resp, w, t.times.Silence, t.terminal)
	return resp, nil
}

// header says what is wanted and who asks, and takes out what an SDK tells about
// this machine.
func header(h http.Header) {
	h.Set("Accept", eventStream)
	h.Set("User-Agent", "cortexfs/"+libctx.Version)
	for name := range h {
		if strings.HasPrefix(name, "X-Stainless-") {
			delete(h, name)
		}
	}
}

// refused says why an answer is not the event stream that was asked for.
func refused(resp *http.Response) string {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	coding := resp.Header.Get("Content-Encoding")
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return "status " + resp.Status
	case err != nil || kind != eventStream:
		return "the answer is no event stream"
	case coding != "" && !strings.EqualFold(coding, "identity"):
		return "the answer is compressed"
	}
	return ""
}

const eventStream = "text/event-stream"

// refusal reads what a refusing answer says, within bounds of size and time.
func (t *Transport) refusal(w *watcher, resp *http.Response, why string) *Error {
	phase := modelwire.PhaseProvider
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		phase = modelwire.PhaseHeaders
	}
	w.enter(modelwire.PhaseBody, t.times.Error)
	// A text that breaks off or never ends is no news: the status stands.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, libctx.MaxErrorBody))
	resp.Body.Close()
	if err := w.cancelled(); err != nil {
		return err
	}
	return &Error{
		Phase: phase, Kind: errdefs.Provider, Status: resp.StatusCode, Refused: true, Header: resp.Header, Body: body, Err: errors.New(why),
	}
}

// Error is what became of a request that did not end well.
type Error struct {
	Phase   string       // one of modelwire's
	Kind    errdefs.Kind // Cancelled, Timeout, TooBig, or Provider
	Status  int          // of the answer; 0 if there was none
	Refused bool         // the answer was no event stream; Header and Body say what it was
	Header  http.Header
	Body    []byte // at most libctx.MaxErrorBody
	Err     error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Facts is the *Error below an error of an SDK; an error that has none was made
// before anything was sent.
func Facts(ctx context.Context, err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case ctx.Err() != nil:
		return &Error{Phase: modelwire.PhasePreSend, Kind: errdefs.Cancelled, Err: errCancelled}
	}
	return &Error{Phase: modelwire.PhasePreSend, Kind: errdefs.Invalid, Err: err}
}
