package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// server answers each request with the next script, byte by byte as that wants.
type server struct {
	url   string
	conns atomic.Int32
	got   chan *http.Request
}

// script plays one answer; that it returns an error, or nil for "keep", says
// whether the connection goes on.
type script func(c net.Conn) error

var errClose = errors.New("close")

func serve(t *testing.T, scripts ...script) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{url: "http://" + l.Addr().String(), got: make(chan *http.Request, 100)}
	next := make(chan script, len(scripts))
	for _, f := range scripts {
		next <- f
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			all.Go(func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, req.Body); err != nil {
						return
					}
					s.got <- req
					if (<-next)(c) != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		close(next)
		l.Close()
		all.Wait()
	})
	return s
}

// says writes a text.
func says(text string) script {
	return func(c net.Conn) error {
		_, err := io.WriteString(c, text)
		return err
	}
}

// then plays scripts one after another.
func then(scripts ...script) script {
	return func(c net.Conn) error {
		for _, f := range scripts {
			if err := f(c); err != nil {
				return err
			}
		}
		return nil
	}
}

func closes(net.Conn) error { return errClose }

func resets(c net.Conn) error {
	c.(*net.TCPConn).SetLinger(0)
	return errClose
}

// waits does nothing until the client is gone.
func waits(c net.Conn) error {
	_, err := c.Read(make([]byte, 1))
	if err == nil {
		err = errClose
	}
	return err
}

const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

func last(ev Event) bool { return string(ev.Data) == "[DONE]" }

var times = Times{Connect: time.Minute, Headers: time.Minute, Silence: time.Minute, Error: time.Minute, Request: time.Minute}

// ask sends a request and reads the answer to its end; the error is the
// transport's.
func ask(ctx context.Context, t *testing.T, tr *Transport, url string) (string, *Error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return "", Facts(ctx, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return string(text), Facts(ctx, err)
	}
	return string(text), nil
}

func newTransport(t *testing.T, times Times) *Transport {
	tr := New(nil, times, last)
	t.Cleanup(tr.CloseIdle)
	return tr
}

func TestAnswers(t *testing.T) {
	for what, c := range map[string]struct {
		script script
		want   string // what an SDK reads
		err    string // phase kind status why, "*" is anything
	}{
		"an answer":      {says(head + chunk(": x\r\ndata: a\r\n\r") + chunk("\ndata: [DONE]\r\n\r\n") + "0\r\n\r\n"), "data: a\n\ndata: [DONE]\n\n", ""},
		"[DONE] twice":   {says(head + chunk("data: a\n\ndata: [DONE]\n\ndata: [DONE]\n\ndata: b\n\n") + "0\r\n\r\n"), "data: a\n\ndata: [DONE]\n\n", ""},
		"without a line": {says(head + chunk("data: a\n\ndata: [DONE]\n") + "0\r\n\r\n"), "data: a\n\ndata: [DONE]\n\n", ""},
		"it never closes": {
			then(says(head+chunk("data: [DONE]\n\n")), waits), "data: [DONE]\n\n", "",
		},
		"without a length": {then(says("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: [DONE]\n\n"), closes), "data: [DONE]\n\n", ""},
		"a clean early end": {
			says(head + chunk("data: a\n\n") + "0\r\n\r\n"), "data: a\n\n", "body EREMOTEIO 200 the answer ends before its last event",
		},
		"no answer in it":  {says(head + "0\r\n\r\n"), "", "body EREMOTEIO 200 the answer ends before its last event"},
		"inside an event":  {says(head + chunk("data: a\n\ndata: b\n") + "0\r\n\r\n"), "data: a\n\n", "body EREMOTEIO 200 the answer ends inside an event"},
		"an unclean end":   {then(says(head+chunk("data: a\n\n")), closes), "data: a\n\n", "body EREMOTEIO 200 unexpected EOF"},
		"inside a chunk":   {then(says(head+"20\r\ndata: a\n\nda"), closes), "data: a\n\n", "body EREMOTEIO 200 unexpected EOF"},
		"no UTF-8":         {says(head + chunk("data: a\n\ndata: \xff\n\n") + "0\r\n\r\n"), "data: a\n\n", "decode EREMOTEIO 200 the event stream is not UTF-8"},
		"no HTTP":          {then(says("SSH-2.0-x\r\n\r\n"), closes), "", "headers EREMOTEIO 0 *"},
		"nothing":          {closes, "", "headers EREMOTEIO 0 *"},
		"a reset at once":  {resets, "", "headers EREMOTEIO 0 *"},
		"half the headers": {then(says("HTTP/1.1 200 OK\r\nContent-Ty"), closes), "", "headers EREMOTEIO 0 *"},
		"headers without end": {
			func(c net.Conn) error {
				if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n"); err != nil {
					return err
				}
				for i := 0; ; i++ {
					if _, err := fmt.Fprintf(c, "X-%d: %s\r\n", i, strings.Repeat("x", 1000)); err != nil {
						return err
					}
				}
			}, "", "headers EREMOTEIO 0 *",
		},
		"JSON":              {says("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"), "", "headers EREMOTEIO 200 the answer is no event stream: {}"},
		"no type":           {says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"), "", "headers EREMOTEIO 200 the answer is no event stream: ab"},
		"an odd type":       {says("HTTP/1.1 200 OK\r\nContent-Type: ;;\r\nContent-Length: 2\r\n\r\nab"), "", "headers EREMOTEIO 200 the answer is no event stream: ab"},
		"nothing, 204":      {says("HTTP/1.1 204 No Content\r\nContent-Type: text/plain\r\n\r\n"), "", "headers EREMOTEIO 204 the answer is no event stream: "},
		"compressed":        {says("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab"), "", "headers EREMOTEIO 200 the answer is compressed: ab"},
		"an error":          {says("HTTP/1.1 429 Slow\r\nContent-Type: text/event-stream\r\nContent-Length: 2\r\n\r\nab"), "", "provider EREMOTEIO 429 status 429 Slow: ab"},
		"an error, cut":     {then(says("HTTP/1.1 500 Oh\r\nContent-Length: 9\r\n\r\nab"), closes), "", "provider EREMOTEIO 500 status 500 Oh: ab"},
		"a long error":      {then(says("HTTP/1.1 500 Oh\r\n\r\n"+strings.Repeat("x", 1<<20)), closes), "", "provider EREMOTEIO 500 status 500 Oh: " + strings.Repeat("x", libctx.MaxErrorBody)},
		"a redirect":        {says("HTTP/1.1 307 Go\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"), "", "provider EREMOTEIO 307 status 307 Go: "},
		"hints, then a end": {then(says("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), says(head+chunk("data: [DONE]\n\n")+"0\r\n\r\n")), "data: [DONE]\n\n", ""},
	} {
		t.Run(what, func(t *testing.T) {
			s := serve(t, c.script)
			got, err := ask(t.Context(), t, newTransport(t, times), s.url)
			if got != c.want {
				t.Errorf("read %q, not %q", got, c.want)
			}
			problem := ""
			if err != nil {
				problem = fmt.Sprintf("%s %s %d %v", err.Phase, err.Kind, err.Status, err)
				if err.Refused {
					problem += ": " + string(err.Body)
				}
			}
			if rest, any := strings.CutSuffix(c.err, "*"); any && strings.HasPrefix(problem, rest) {
				problem = c.err
			}
			if problem != c.err {
				t.Errorf("%.300s, not %.300s", problem, c.err)
			}
			if n := len(s.got); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// A reset throws away what the other side has not read, so it waits for that.
func TestReset(t *testing.T) {
	read := make(chan struct{})
	s := serve(t, func(c net.Conn) error {
		if err := says(head + chunk("data: a\n\n"))(c); err != nil {
			return err
		}
		<-read
		return resets(c)
	})
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := newTransport(t, times).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stream := resp.Body.(*Stream)
	if ev, err := stream.Next(); err != nil || string(ev.Data) != "a" {
		t.Fatalf("%q, %v", ev.Data, err)
	}
	close(read)
	for range 2 { // and says so again
		_, err = stream.Next()
		var e *Error
		if !errors.As(err, &e) || e.Phase != "body" || e.Kind != errdefs.Provider || e.Status != 200 {
			t.Errorf("%+v", err)
		}
	}
}

// bubble runs a test in made-up time, with a transport whose connections are
// pipes to a server that plays a script.
func bubble(t *testing.T, f script, do func(t *testing.T, tr *Transport)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tr := New(nil, Standard, last)
		var all sync.WaitGroup
		tr.base.DialContext = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			all.Go(func() {
				defer server.Close()
				if req, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
					io.Copy(io.Discard, req.Body)
					f(server)
				}
			})
			return client, nil
		}
		do(t, tr)
		tr.CloseIdle()
		all.Wait()
	})
}

func TestTimes(t *testing.T) {
	for what, c := range map[string]struct {
		script script
		err    string
		after  time.Duration
	}{
		"no headers":       {waits, "headers ETIMEDOUT 0 no answer after 10m0s", 10 * time.Minute},
		"headers in drops": {drip("HTTP/1.1 200 OK\r\n", "X: y\r\n", time.Minute), "headers ETIMEDOUT 0 no answer after 10m0s", 10 * time.Minute},
		"silence":          {then(says(head+chunk("data: a\n\n")), waits), "body ETIMEDOUT 200 no more of the answer after 5m0s", 5 * time.Minute},
		"silence, late":    {then(says(head), pause(4*time.Minute), says(chunk("data: a\n\n")), waits), "body ETIMEDOUT 200 no more of the answer after 5m0s", 9 * time.Minute},
		"a refusal": {
			then(says("HTTP/1.1 500 Oh\r\nContent-Length: 9\r\n\r\nab"), waits), "provider EREMOTEIO 500 status 500 Oh", 10 * time.Second,
		},
		"comments":      {drip(head, chunk(": x\n\n"), time.Minute), "body ETIMEDOUT 200 the answer has no end after 2h0m0s", 2 * time.Hour},
		"a slow answer": {then(drips(100, head, chunk("data: a\n\n"), time.Minute), says(chunk("data: [DONE]\n\n")+"0\r\n\r\n")), "", 100 * time.Minute},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, c.script, func(t *testing.T, tr *Transport) {
				began := time.Now()
				_, err := ask(t.Context(), t, tr, "http://provider.invalid")
				problem := ""
				if err != nil {
					problem = fmt.Sprintf("%s %s %d %v", err.Phase, err.Kind, err.Status, err)
				}
				if took := time.Since(began); problem != c.err || took != c.after {
					t.Errorf("%s after %v, not %s after %v", problem, took, c.err, c.after)
				}
			})
		})
	}
}

func pause(d time.Duration) script {
	return func(net.Conn) error {
		<-time.After(d)
		return nil
	}
}

// drips writes a text, then a piece n times, a time apart.
func drips(n int, first, piece string, apart time.Duration) script {
	return func(c net.Conn) error {
		if err := says(first)(c); err != nil {
			return err
		}
		for range n {
			<-time.After(apart)
			if err := says(piece)(c); err != nil {
				return err
			}
		}
		return nil
	}
}

func drip(first, piece string, apart time.Duration) script { return drips(1<<30, first, piece, apart) }

// A reader that takes its time is not the provider's silence.
func TestSlowReader(t *testing.T) {
	bubble(t, says(head+chunk("data: a\n\n")+chunk("data: [DONE]\n\n")+"0\r\n\r\n"), func(t *testing.T, tr *Transport) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://provider.invalid", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		stream := resp.Body.(*Stream)
		for _, want := range []string{"a", "[DONE]"} {
			<-time.After(2 * Standard.Silence)
			if ev, err := stream.Next(); err != nil || string(ev.Data) != want {
				t.Errorf("%q, %v", ev.Data, err)
			}
		}
	})
}

func TestCancel(t *testing.T) {
	for what, c := range map[string]struct {
		script script
		phase  string
	}{
		"before the headers": {waits, "headers"},
		"inside the headers": {then(says("HTTP/1.1 200 OK\r\nX:"), waits), "headers"},
		"in the body":        {then(says(head+chunk("data: a\n\n")), waits), "body"},
		"in a refusal":       {then(says("HTTP/1.1 500 Oh\r\nContent-Length: 9\r\n\r\nab"), waits), "body"},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, c.script, func(t *testing.T, tr *Transport) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				began := time.Now()
				_, err := ask(ctx, t, tr, "http://provider.invalid")
				if err == nil || err.Kind != errdefs.Cancelled || err.Phase != c.phase || time.Since(began) != time.Second {
					t.Errorf("%+v after %v", err, time.Since(began))
				}
			})
		})
	}
	t.Run("while connecting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tr := New(nil, Standard, last)
			tr.base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(libctx.ProviderConnect - time.Second):
					return nil, errors.New("unreachable")
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			began := time.Now()
			_, err := ask(ctx, t, tr, "http://provider.invalid")
			if err == nil || err.Kind != errdefs.Cancelled || err.Phase != "connect" || time.Since(began) != time.Second {
				t.Errorf("%+v after %v", err, time.Since(began))
			}
			<-time.After(libctx.ProviderConnect) // net/http goes on dialling, for a next request
		})
	})
}

func TestConnect(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, e := ask(t.Context(), t, newTransport(t, times), "http://"+l.Addr().String())
	if e == nil || e.Phase != "connect" || e.Kind != errdefs.Provider || e.Status != 0 {
		t.Errorf("nobody listens: %+v", e)
	}
	// A peer that does not answer TLS is held to the time of the connection.
	limits := times
	limits.Connect = 50 * time.Millisecond
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	_, e = ask(t.Context(), t, newTransport(t, limits), "https://"+mute.Addr().String())
	if e == nil || e.Phase != "connect" || e.Kind != errdefs.Timeout {
		t.Errorf("no TLS: %+v", e)
	}
}

func TestTLS(t *testing.T) {
	var requests atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: "+r.Proto+"\n\ndata: [DONE]\n\n")
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	_, e := ask(t.Context(), t, newTransport(t, times), s.URL)
	if e == nil || e.Phase != "connect" || e.Kind != errdefs.Provider {
		t.Errorf("an unknown authority: %+v", e)
	}
	tr := newTransport(t, times)
	tr.base.TLSClientConfig = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	got, e := ask(t.Context(), t, tr, s.URL)
	if e != nil || got != "data: HTTP/2.0\n\ndata: [DONE]\n\n" {
		t.Errorf("%q, %v", got, e)
	}
	_, e = ask(t.Context(), t, tr, strings.Replace(s.URL, "127.0.0.1", "localhost", 1))
	if e == nil || e.Phase != "connect" {
		t.Errorf("another name: %+v", e)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// The connection of an answer that ended is used again, also when the request's
// context is over before its last bytes have come.
func TestReuse(t *testing.T) {
	ended := make(chan struct{})
	s := serve(t,
		func(c net.Conn) error {
			if err := says(head + chunk("data: a\n\n") + chunk("data: [DONE]\n\n"))(c); err != nil {
				return err
			}
			<-ended
			return says("0\r\n\r\n")(c)
		},
		says(head+chunk("data: [DONE]\n\n")+"0\r\n\r\n"))
	tr := newTransport(t, times)
	idle := make(chan struct{})
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		PutIdleConn: func(error) { close(idle) },
	}))
	if got, err := ask(ctx, t, tr, s.url); err != nil || got != "data: a\n\ndata: [DONE]\n\n" {
		t.Fatalf("%q, %v", got, err)
	}
	cancel()
	close(ended)
	<-idle
	if got, err := ask(t.Context(), t, tr, s.url); err != nil || got != "data: [DONE]\n\n" {
		t.Fatalf("%q, %v", got, err)
	}
	if n := s.conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Nothing is taken from the environment; a proxy is only the one that is given.
func TestProxy(t *testing.T) {
	s := serve(t, says(head+chunk("data: [DONE]\n\n")+"0\r\n\r\n"))
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, s.url)
	}
	_, e := ask(t.Context(), t, newTransport(t, times), "http://provider.invalid/v1")
	if e == nil || e.Phase != "connect" {
		t.Errorf("without a proxy: %+v", e)
	}
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	tr := New(u, times, last)
	defer tr.CloseIdle()
	if got, e := ask(t.Context(), t, tr, "http://provider.invalid/v1"); e != nil || got != "data: [DONE]\n\n" {
		t.Errorf("%q, %v", got, e)
	}
	if req := <-s.got; req.URL.String() != "http://provider.invalid/v1" {
		t.Errorf("the proxy was asked for %s", req.URL)
	}
}
