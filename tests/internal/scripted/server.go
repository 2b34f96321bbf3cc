// Package scripted is a model provider whose every byte a test decides: HTTP or
// HTTPS on loopback, answers played in turn, as well or as badly as wanted. It
// keeps what it was asked.
package scripted

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Request is one request as it came.
type Request struct {
	Method string
	Path   string
	Header http.Header
	Body   []byte
}

// Chat is what a request for a chat completion asks.
type Chat struct {
	Model    string    `json:"model"`
	Messages []Message `json:"messages"`
	Tools    []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	Stream     bool            `json:"stream"`
}

// Message is one message of it. Content is a text; ToolCalls are an assistant's.
type Message struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// Chat decodes the body; it fails the test if that is no such request.
func (r *Request) Chat(t testing.TB) Chat {
	t.Helper()
	var c Chat
	if err := json.Unmarshal(r.Body, &c); err != nil {
		t.Fatalf("the request is %.300q: %v", r.Body, err)
	}
	return c
}

// Server is a provider. It ends with its test.
type Server struct {
	URL string // without a slash at its end

	mu       sync.Mutex
	arrived  *sync.Cond
	requests []*Request
	open     map[net.Conn]bool
	closed   bool
	forget   bool
}

// New starts a provider that answers each request as reply says; reply may be
// called from several goroutines.
func New(t testing.TB, reply func(*Request) Answer) *Server {
	t.Helper()
	return start(t, "http", func(l net.Listener) net.Listener { return l }, reply)
}

// NewTLS is New with HTTPS and a certificate that nobody trusts.
func NewTLS(t testing.TB, reply func(*Request) Answer) *Server {
	t.Helper()
	config := &tls.Config{Certificates: []tls.Certificate{certificate(t)}}
	return start(t, "https", func(l net.Listener) net.Listener { return tls.NewListener(l, config) }, reply)
}

// InTurn answers the first request with the first answer, and so on. One request
// more fails the test.
func InTurn(t testing.TB, answers ...Answer) func(*Request) Answer {
	next := make(chan Answer, len(answers))
	for _, a := range answers {
		next <- a
	}
	return func(r *Request) Answer {
		select {
		case a := <-next:
			return a
		default:
			t.Errorf("request %d of %d: %s %s", len(answers)+1, len(answers), r.Method, r.Path)
			return Status(500, "text/plain", "the script is over")
		}
	}
}

func start(t testing.TB, scheme string, wrap func(net.Listener) net.Listener, reply func(*Request) Answer) *Server {
	t.Helper()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := wrap(plain)
	s := &Server{URL: scheme + "://" + l.Addr().String(), open: map[net.Conn]bool{}}
	s.arrived = sync.NewCond(&s.mu)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if !s.enter(c) {
				c.Close()
				return
			}
			all.Go(func() {
				defer s.leave(c)
				s.serve(c, reply)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.stop()
		all.Wait()
	})
	return s
}

func (s *Server) enter(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = true
	return !s.closed
}

func (s *Server) leave(c net.Conn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.open {
		c.Close()
	}
	s.arrived.Broadcast()
}

// serve plays the requests of a connection until one of its answers ends it.
func (s *Server) serve(c net.Conn, reply func(*Request) Answer) {
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		kept := &Request{Method: req.Method, Path: req.URL.Path, Header: req.Header, Body: body}
		s.mu.Lock()
		if !s.forget {
			s.requests = append(s.requests, kept)
		}
		s.arrived.Broadcast()
		s.mu.Unlock()
		if err := reply(kept)(&Conn{c, r}); err != nil {
			return
		}
	}
}

// Requests are those that came so far.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Request(nil), s.requests...)
}

// Forget keeps no request from now on: reply sees them all.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget = true
}

// Await waits until n requests have come.
func (s *Server) Await(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.requests) < n && !s.closed {
		s.arrived.Wait()
	}
}

// certificate is one for 127.0.0.1, signed by itself.
func certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

var errEnd = errors.New("the answer ends the connection")
