package provider

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/tests/internal/scripted"
)

func TestRefusals(t *testing.T) {
	m := start(t)
	elsewhere := scripted.New(t, func(r *scripted.Request) scripted.Answer {
		t.Errorf("the redirect was followed, with %q", r.Header.Get("Authorization"))
		return scripted.Text("elsewhere")
	})
	for what, c := range map[string]struct {
		answer scripted.Answer
		want   string
	}{
		"a wrong key":         {scripted.Status(401, "application/json", `{"error":{"message":"Incorrect API key provided: `+key+`","type":"invalid_request_error","code":"invalid_api_key"}}`), "EACCES provider 401 auth invalid_api_key"},
		"a prompt too long":   {scripted.Status(400, "application/json", `{"error":{"message":"maximum context length is 8 tokens","type":"invalid_request_error","code":"context_length_exceeded"}}`), "E2BIG provider 400 context_overflow context_length_exceeded"},
		"quota":               {scripted.Status(429, "application/json", `{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}`), "EREMOTEIO provider 429 quota insufficient_quota"},
		"no model":            {scripted.Status(404, "application/json", `{"error":{"message":"x","code":"model_not_found"}}`), "ENOENT provider 404 invalid model_not_found"},
		"broken":              {scripted.Status(500, "text/html", "<html>\x1b[2J"+key), "EREMOTEIO provider 500 server accepted"},
		"broken without end":  {scripted.Raw("HTTP/1.1 502 x\r\nContent-Type: text/html\r\n\r\n" + strings.Repeat("x", 1<<20)), "EREMOTEIO provider 502 server accepted"},
		"request timeout":     {scripted.Status(408, "", ""), "EREMOTEIO provider 408 interrupted accepted"},
		"JSON":                {scripted.Status(200, "application/json", `{"choices":[{"message":{"content":"hello"}}]}`), "EREMOTEIO headers 200 other accepted"},
		"an error with 200":   {scripted.Status(200, "application/json", `{"error":{"message":"x","code":"rate_limit_exceeded"}}`, "Retry-After: 3"), "EREMOTEIO headers 200 rate_limit rate_limit_exceeded after 3000 accepted"},
		"a page":              {scripted.Status(200, "text/html", "<html>log in"), "EREMOTEIO headers 200 other accepted"},
		"no type":             {scripted.Status(200, "", "data: [DONE]\n\n"), "EREMOTEIO headers 200 other accepted"},
		"moved":               {scripted.Status(307, "", "", "Location: "+elsewhere.URL+"/chat/completions"), "EREMOTEIO provider 307 other"},
		"moved with a stream": {scripted.Status(302, "text/event-stream", "data: [DONE]\n\n", "Location: "+elsewhere.URL), "EREMOTEIO provider 302 other"},
		"nothing":             {scripted.Close, "EREMOTEIO headers 0 network"},
		"a reset":             {scripted.Reset, "EREMOTEIO headers 0 network"},
		"no HTTP":             {scripted.Seq(scripted.Raw("220 mail ready\r\n"), scripted.Close), "EREMOTEIO headers 0 network"},
		"endless headers":     {endless, "EREMOTEIO headers 0 network"},
		"slow":                {scripted.Status(429, "", "", "Retry-After: 7"), "EREMOTEIO provider 429 rate_limit after 7000"},
		"slow, decimal":       {scripted.Status(429, "", "", "Retry-After: 0.25"), "EREMOTEIO provider 429 rate_limit after 250"},
		"slow, ms":            {scripted.Status(429, "", "", "Retry-After-Ms: 120"), "EREMOTEIO provider 429 rate_limit after 120"},
		"slow, date":          {scripted.Status(503, "", "", "Date: Sun, 01 Mar 2026 12:00:00 GMT", "Retry-After: Sun, 01 Mar 2026 12:01:00 GMT"), "EREMOTEIO provider 503 overloaded after 60000 accepted"},
		"slow, past date":     {scripted.Status(503, "", "", "Retry-After: Sun, 01 Mar 2020 12:01:00 GMT"), "EREMOTEIO provider 503 overloaded accepted"},
		"slow, negative":      {scripted.Status(429, "", "", "Retry-After: -7"), "EREMOTEIO provider 429 rate_limit"},
		"slow, huge":          {scripted.Status(429, "", "", "Retry-After: 99999999999999999999"), "EREMOTEIO provider 429 rate_limit after 86400000"},
		"slow, garbage":       {scripted.Status(429, "", "", "Retry-After: soon"), "EREMOTEIO provider 429 rate_limit"},
	} {
		t.Run(what, func(t *testing.T) {
			m := m.in(t)
			model, s := m.plays(scripted.Seq(c.answer, scripted.Close))
			a := m.ask(asks(model))
			if got := a.said(); got != c.want {
				t.Errorf("%s, not %s", got, c.want)
			}
			if len(a.frames) != 2 || a.done {
				t.Errorf("%d frames, done %v", len(a.frames), a.done)
			}
			if text := a.failure.Message; text == "" || strings.Contains(text, key) || strings.ContainsAny(text, "\x1b\n") || len(text) > libctx.MaxFailureText {
				t.Errorf("message %q", text)
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// endless writes headers until nobody takes them.
func endless(c *scripted.Conn) error {
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n"); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if _, err := fmt.Fprintf(c, "X-%d: %s\r\n", i, strings.Repeat("x", 4096)); err != nil {
			return err
		}
	}
}

func TestNotReached(t *testing.T) {
	m := start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if got := m.ask(asks(m.provider("http://" + l.Addr().String()))).said(); got != "EREMOTEIO connect 0 network" {
		t.Errorf("nobody listens: %s", got)
	}
	if got := m.ask(asks(m.provider("https://provider.invalid/v1"))).said(); got != "EREMOTEIO connect 0 network" {
		t.Errorf("no such name: %s", got)
	}
	s := scripted.NewTLS(t, func(*scripted.Request) scripted.Answer {
		t.Error("a server with a wrong certificate got the request")
		return scripted.Text("x")
	})
	a := m.ask(asks(m.provider(s.URL)))
	if got := a.said(); got != "EREMOTEIO connect 0 network" || !strings.Contains(a.failure.Message, "certificate") {
		t.Errorf("a wrong certificate: %s: %s", got, a.failure.Message)
	}
	plain := scripted.New(t, scripted.InTurn(t))
	if got := m.ask(asks(m.provider(strings.Replace(plain.URL, "http:", "https:", 1)))).said(); got != "EREMOTEIO connect 0 network" {
		t.Errorf("no TLS: %s", got)
	}
	g := asks(m.provider(plain.URL))
	g.Options = map[string]string{"stream": "false"}
	if got := m.ask(g).said(); got != "EINVAL pre_send 0 invalid" {
		t.Errorf("a wrong option: %s", got)
	}
}

// A reset after text is incomplete whatever the text says.
func TestResetAfterText(t *testing.T) {
	m := start(t)
	read := make(chan struct{})
	model, _ := m.plays(scripted.Seq(scripted.Head(), scripted.Events(scripted.Content("The answer.")), scripted.Until(read), scripted.Reset))
	c := m.dial(asks(model))
	defer c.Close()
	r := newReader(c)
	r.until(t, "delta")
	close(read)
	r.until(t, "done")
	if got := r.said(); got != "EREMOTEIO body 200 interrupted seen accepted" {
		t.Error(got)
	}
}

// The connection to the provider ends when the client's does, wherever the
// request is, and the next request is answered.
func TestCancel(t *testing.T) {
	m := start(t)
	for what, before := range map[string]scripted.Answer{
		"before the headers": scripted.Seq(),
		"in the headers":     scripted.Raw("HTTP/1.1 200 OK\r\nX-"),
		"before any event":   scripted.Head(),
		"after some text":    scripted.Seq(scripted.Head(), scripted.Events(scripted.Content("x"))),
		"in an event":        scripted.Seq(scripted.Head(), scripted.Bytes("data: {")),
		"in a refusal":       scripted.Raw("HTTP/1.1 500 x\r\nContent-Length: 100\r\n\r\nab"),
	} {
		t.Run(what, func(t *testing.T) {
			m := m.in(t)
			reached, gone := make(chan struct{}), make(chan struct{})
			s := scripted.New(t, scripted.InTurn(t, scripted.Seq(before, scripted.Then(func() { close(reached) }), func(c *scripted.Conn) error {
				defer close(gone)
				return scripted.Hang(c)
			}), scripted.Text("next")))
			model := m.provider(s.URL)
			c := m.dial(asks(model))
			await(t, reached)
			c.Close()
			await(t, gone)
			if got := m.ask(asks(model)).said(); got != "end; text next" {
				t.Error(got)
			}
		})
	}
}

// Providers that hang, flood or do not read hold up nobody else.
func TestAtOnce(t *testing.T) {
	m := start(t)
	hold := make(chan struct{})
	s := scripted.New(t, func(r *scripted.Request) scripted.Answer {
		if strings.Contains(string(r.Body), "hang") {
			return scripted.Seq(scripted.Head(), scripted.Until(hold), scripted.Events(scripted.Finish("stop"), scripted.Done), scripted.End())
		}
		return scripted.Text("quick")
	})
	model := m.provider(s.URL)
	var hanging []*reader
	for range 20 {
		g := asks(model)
		g.Messages[0].Content[0].Text = "hang"
		c := m.dial(g)
		defer c.Close()
		hanging = append(hanging, newReader(c))
	}
	s.Await(20)
	for range 20 {
		if got := m.ask(asks(model)).said(); got != "end; text quick" {
			t.Error(got)
		}
	}
	close(hold)
	for _, r := range hanging {
		if r.until(t, "done"); r.said() != "end" {
			t.Error(r.said())
		}
	}
}

func TestProbe(t *testing.T) {
	m := start(t)
	model, s := m.plays(scripted.Text("ok"), scripted.Status(401, "application/json", `{"error":{"message":"no `+key+`","code":"invalid_api_key"}}`))
	name := modelwire.ProviderOf(model)
	for _, want := range []bool{true, false} {
		a := m.ask(&modelwire.Probe{Provider: name})
		v, ok := a.frames[0].(*modelwire.Verdict)
		if !ok || v.OK != want || v.Model != model || !a.done {
			t.Errorf("%+v", a.frames[0])
		}
		if !want && (v.Failure.Class != "auth" || strings.Contains(v.Failure.Message, key)) {
			t.Errorf("%+v", v.Failure)
		}
	}
	if c := s.Requests()[0].Chat(t); len(c.Tools) != 0 || len(c.Messages) != 1 {
		t.Errorf("the probe is %+v", c)
	}
	if a := m.ask(&modelwire.Probe{Provider: "unheard"}); a.frames[0].(*modelwire.Verdict).OK {
		t.Error("an unknown provider works")
	}
}

// A key that is missing, or that others can read, goes nowhere.
func TestKeys(t *testing.T) {
	m := start(t)
	s := scripted.New(t, scripted.InTurn(t))
	model := m.provider(s.URL)
	if err := provider.RemoveKeys(m.layout, modelwire.ProviderOf(model)); err != nil {
		t.Fatal(err)
	}
	if got := m.ask(asks(model)).said(); got != "ENOENT pre_send 0 auth" {
		t.Error(got)
	}
}

func await(t *testing.T, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(time.Minute):
		t.Fatal("what was awaited did not happen")
	}
}
