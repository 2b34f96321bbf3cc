package provider

import (
	"net/http"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"cortexfs.org/tests/internal/scripted"
	"github.com/go-json-experiment/json/jsontext"
)

// dialect is a format in which a provider answers with events.
type dialect struct {
	format string
	path   string // of a request below the base URL
	key    func(http.Header) string
	// said is a whole answer: some text, calls, and why it ends ("" for the usual
	// reason). The texts are whole events, the last one the terminal one.
	said func(text []string, calls []scripted.Call, reason string) []string
	// tail is how many of the last events end an answer: without any one of them
	// it is none.
	tail  int
	text  string // one event of text "x"
	fails string // an event that says that the provider has too much to do
	// refused is the text of a refusal by word and sentence.
	refused func(status int, word, sentence string) string
	words   map[string]string // of failures: auth, long, limit
	reasons map[string]string // from the format's reason to ours
	sent    []string          // the two requests of a conversation, in canonical form
}

var dialects = []*dialect{anthropicMessages, openaiResponses, googleGenerate}

// of sets the format of a provider file.
func (d *dialect) of(p *provider.Provider) { p.Format = d.format }

// plays is a model of a server that answers in turn.
func (d *dialect) plays(m *ctxmodel, answers ...scripted.Answer) (libctx.Model, *scripted.Server) {
	m.t.Helper()
	s := scripted.New(m.t, scripted.InTurn(m.t, answers...))
	return m.provider(s.URL, d.of), s
}

// stream is a whole answer of these events, each in a piece of its own.
func stream(events ...string) scripted.Answer {
	return scripted.Seq(scripted.Head(), pieces(events...), scripted.End())
}

func pieces(events ...string) scripted.Answer {
	var all []scripted.Answer
	for _, e := range events {
		all = append(all, scripted.Bytes(e))
	}
	return scripted.Seq(all...)
}

func quoted(text string) string {
	out, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// each runs a test in every format, against one ctxmodel.
func each(t *testing.T, test func(t *testing.T, m *ctxmodel, d *dialect)) {
	m := start(t)
	for _, d := range dialects {
		t.Run(d.format, func(t *testing.T) { test(t, m.in(t), d) })
	}
}

// A conversation with a call: what is sent, what comes back.
func TestFormatConversation(t *testing.T) {
	each(t, func(t *testing.T, m *ctxmodel, d *dialect) {
		model, s := d.plays(m,
			stream(d.said([]string{"I ", "read."}, []scripted.Call{{ID: "id_1", Name: "fs__read", Arguments: `{"n":12345678901234567890,"path":"a"}`}}, "")...),
			stream(d.said([]string{"Grün", "e 日本 🙂"}, nil, "")...))
		g := asks(model)
		g.MaxOutput, g.CacheKey, g.Options = 77, "k", map[string]string{"temperature": "0"}
		g.Messages = append([]modelwire.Message{{Role: "system", Content: []wire.Part{wire.Text("be good")}}}, g.Messages...)
		a := m.ask(g)
		if got := a.said(); got != `tool_calls; text I read.; tool_call call-1 fs.read {"n":12345678901234567890,"path":"a"}` || !a.done {
			t.Fatal(got)
		}
		g.Messages = append(g.Messages,
			modelwire.Message{Role: "assistant", Content: []wire.Part{
				wire.Text("I read."), {Type: "tool_call", Call: "call-2-1", Name: "fs.read", Arguments: a.message.Content[1].Arguments},
			}, Opaque: a.message.Opaque},
			modelwire.Message{Role: "tool", Content: []wire.Part{{Type: "tool_result", Call: "call-2-1", Name: "fs.read", Status: "ok", Text: "content"}}})
		a = m.ask(g)
		if got := a.said(); got != "end; text Grüne 日本 🙂" || a.text != "Grüne 日本 🙂" || !a.done {
			t.Fatal(got)
		}
		if u := a.usage; u == nil || *u.Input != 10 || *u.CacheRead != 4 || *u.Output != 5 {
			t.Errorf("usage %+v", u)
		}
		for i, r := range s.Requests() {
			// Not the canonical form, which would round numbers.
			body := jsontext.Value(r.Body)
			if err := body.Format(jsontext.ReorderRawObjects(true)); err != nil || string(body) != d.sent[i] {
				t.Errorf("request %d:\n%s, not\n%s", i+1, body, d.sent[i])
			}
			if r.Method != "POST" || r.Path != d.path || d.key(r.Header) != key || r.Header.Get("Accept-Encoding") != "" {
				t.Errorf("request %d: %s %s %v", i+1, r.Method, r.Path, r.Header)
			}
			for name := range r.Header {
				if strings.HasPrefix(name, "X-Stainless") || strings.Contains(name, "Idempotency") || name == "Cookie" || name == "Traceparent" || strings.HasPrefix(name, "X-Goog-Api-Client") {
					t.Errorf("request %d has %s", i+1, name)
				}
			}
		}
	})
}

// Nothing comes from the environment of ctxmodel.
func TestFormatEnvironment(t *testing.T) {
	trap := scripted.New(t, func(r *scripted.Request) scripted.Answer {
		t.Errorf("the trap was asked: %s %s", r.Method, r.Path)
		return scripted.Close
	})
	var env []string
	for _, name := range []string{"ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		env = append(env, name+"="+trap.URL)
	}
	m := start(t, append(env, "ANTHROPIC_API_KEY=wrong", "ANTHROPIC_AUTH_TOKEN=wrong", "ANTHROPIC_PROFILE=none", "ANTHROPIC_CUSTOM_HEADERS=X-Trap: yes",
		"GOOGLE_API_KEY=wrong", "GEMINI_API_KEY=wrong", "GOOGLE_GENAI_USE_VERTEXAI=true", "GOOGLE_CLOUD_PROJECT=p", "GOOGLE_APPLICATION_CREDENTIALS=/dev/null", "SSL_CERT_FILE=/dev/null")...)
	for _, d := range dialects {
		s := scripted.New(t, scripted.InTurn(t, stream(d.said([]string{"fine"}, nil, "")...), stream(d.said([]string{"keyless"}, nil, "")...), stream(d.said([]string{"by proxy"}, nil, "")...)))
		if got := m.ask(asks(m.provider(s.URL, d.of))).said(); got != "end; text fine" {
			t.Errorf("%s: %s", d.format, got)
		}
		if got := m.ask(asks(m.provider(s.URL, d.of, func(p *provider.Provider) { p.Key = provider.KeyNone }))).said(); got != "end; text keyless" {
			t.Errorf("%s: %s", d.format, got)
		}
		other := m.provider("http://provider.invalid/", d.of, func(p *provider.Provider) { p.BaseURL, p.Proxy, p.Insecure = "http://provider.invalid", s.URL, true })
		if got := m.ask(asks(other)).said(); got != "end; text by proxy" {
			t.Errorf("%s: %s", d.format, got)
		}
		for i, r := range s.Requests() {
			want := key
			if i == 1 {
				want = ""
			}
			if got := d.key(r.Header); got != want || r.Header.Get("X-Trap") != "" || i == 1 && r.Header.Get("Authorization") != "" {
				t.Errorf("%s, request %d: %v", d.format, i+1, r.Header)
			}
		}
	}
}

// However the bytes of an answer are cut and its lines end, it says the same.
func TestFormatCuts(t *testing.T) {
	each(t, func(t *testing.T, m *ctxmodel, d *dialect) {
		events := d.said([]string{"Grüße, 日本 🙂"}, []scripted.Call{{ID: "a", Name: "tsh", Arguments: `{"args":["ü🙂"]}`}}, "")
		const want = `tool_calls; text Grüße, 日本 🙂; tool_call call-1 tsh {"args":["ü🙂"]}`
		next := make(chan scripted.Answer, 1)
		s := scripted.New(t, func(*scripted.Request) scripted.Answer { return <-next })
		model := m.provider(s.URL, d.of)
		for what, end := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
			body := "\ufeff: hello" + end + ": ping" + end + end + "retry: 5" + end
			for _, e := range events {
				body += strings.ReplaceAll(e, "\n", end) + ":" + end
			}
			for cut := 1; cut < len(body); cut += 1 + cut/100 {
				next <- scripted.Seq(scripted.Head(), scripted.Bytes(body[:cut]), scripted.Bytes(body[cut:]), scripted.End())
				if got := m.ask(asks(model)).said(); got != want {
					t.Fatalf("%s, cut at %d: %s", what, cut, got)
				}
			}
			var single []scripted.Answer
			for i := range len(body) {
				single = append(single, scripted.Bytes(body[i:i+1]))
			}
			next <- scripted.Seq(scripted.Head(), scripted.Seq(single...), scripted.End())
			if got := m.ask(asks(model)).said(); got != want {
				t.Errorf("%s, byte by byte: %s", what, got)
			}
		}
	})
}

// Wherever an answer ends too early, cleanly or not, it is none.
func TestFormatEarlyEnd(t *testing.T) {
	each(t, func(t *testing.T, m *ctxmodel, d *dialect) {
		events := d.said([]string{"Grün"}, []scripted.Call{{ID: "a", Name: "tsh", Arguments: `{}`}}, "")
		body := strings.Join(events, "")
		next := make(chan scripted.Answer, 1)
		s := scripted.New(t, func(*scripted.Request) scripted.Answer { return <-next })
		model := m.provider(s.URL, d.of)
		whole := len(body) - len("\n") // the last line may lack its empty one
		for cut := 0; cut < whole; cut += 1 + cut/100 {
			for what, end := range map[string]scripted.Answer{"cleanly": scripted.End(), "by closing": scripted.Close} {
				next <- scripted.Seq(scripted.Head(), scripted.Bytes(body[:cut]), end)
				a := m.ask(asks(model))
				if a.done || a.message != nil || a.failure == nil || a.failure.Class != "interrupted" || !a.failure.Accepted {
					t.Fatalf("cut at %d, %s: %s", cut, what, a.said())
				}
			}
		}
		for i := len(events) - d.tail; i < len(events); i++ {
			next <- stream(append(append([]string{}, events[:i]...), events[i+1:]...)...)
			if a := m.ask(asks(model)); a.done || a.failure.Class != "interrupted" {
				t.Errorf("without event %d: %s", i, a.said())
			}
		}
		next <- scripted.Seq(scripted.Head(), scripted.Bytes(body[:whole]), scripted.End())
		if a := m.ask(asks(model)); !a.done {
			t.Error(a.said())
		}
		// What comes after the end, or never comes, is not waited for.
		next <- scripted.Seq(scripted.Head(), pieces(events...), pieces(events...), scripted.Hang)
		if a := m.ask(asks(model)); !a.done {
			t.Error(a.said())
		}
	})
}

func TestFormatOddAnswers(t *testing.T) {
	each(t, func(t *testing.T, m *ctxmodel, d *dialect) {
		end := d.said(nil, nil, "")
		call := func(arguments string) scripted.Answer {
			return stream(d.said(nil, []scripted.Call{{ID: "a", Name: "tsh", Arguments: arguments}}, "")...)
		}
		cases := map[string]struct {
			answer scripted.Answer
			want   string
		}{
			"nothing":             {stream(), "EREMOTEIO body 200 interrupted accepted"},
			"no text":             {stream(end...), "end"},
			"calls beside":        {stream(d.said(nil, []scripted.Call{{ID: "x", Name: "tsh", Arguments: `{"a":1}`}, {ID: "x", Name: "fs__read", Arguments: `{"b":2}`}, {Name: "tsh", Arguments: `{}`}}, "")...), `tool_calls; tool_call call-1 tsh {"a":1}; tool_call call-2 fs.read {"b":2}; tool_call call-3 tsh {}`},
			"no tool":             {stream(d.said(nil, []scripted.Call{{ID: "a", Name: "../tsh", Arguments: "{}"}}, "")...), "tool_calls; tool_call call-1  {} !not the name of a tool: ../tsh"},
			"an error":            {stream(d.text, d.fails), "EREMOTEIO provider 200 overloaded " + d.words["overloaded"] + " seen accepted"},
			"an error first":      {stream(d.fails), "EREMOTEIO provider 200 overloaded " + d.words["overloaded"] + " accepted"},
			"no object":           {stream(d.text, "data: \"hello\"\n\n"), "EREMOTEIO decode 200 interrupted seen accepted"},
			"half JSON":           {stream("data: {\"type\":{\n\n"), "EREMOTEIO decode 200 interrupted accepted"},
			"no UTF-8":            {stream("data: {\"type\":\"\xff\"}\n\n"), "EREMOTEIO decode 200 interrupted accepted"},
			"events of later":     {stream(append([]string{"event: weather\ndata: {\"type\":\"weather\",\"rain\":[1]}\n\n", "id: 7\n\n"}, end...)...), "end"},
			"a huge event":        {scripted.Seq(scripted.Head(), scripted.Bytes("data: "+strings.Repeat("x", libctx.MaxEvent+1))), "EREMOTEIO body 200 limit accepted"},
			"17 MiB of arguments": {call(`{"x":"` + strings.Repeat("x", 17<<20) + `"}`), "EREMOTEIO decode 200 limit seen accepted"},
			"too many events":     {scripted.Seq(scripted.Head(), scripted.Bytes(strings.Repeat("data: {}\n\n", libctx.MaxModelEvents+1))), "EREMOTEIO body 200 limit accepted"},
		}
		for theirs, ours := range d.reasons {
			cases["ends by "+theirs] = struct {
				answer scripted.Answer
				want   string
			}{stream(d.said([]string{"x"}, nil, theirs)...), ours + "; text x"}
		}
		for what, c := range cases {
			t.Run(what, func(t *testing.T) {
				m := m.in(t)
				model, s := d.plays(m, c.answer)
				a := m.ask(asks(model))
				if got := a.said(); got != c.want {
					t.Errorf("%s, not %s", got, c.want)
				}
				if a.failure != nil && strings.Contains(a.failure.Message, key) {
					t.Errorf("the key is in %q", a.failure.Message)
				}
				if n := len(s.Requests()); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		}
	})
}

func TestFormatRefusals(t *testing.T) {
	elsewhere := scripted.New(t, func(r *scripted.Request) scripted.Answer {
		t.Errorf("the redirect was followed, with %v", r.Header)
		return scripted.Close
	})
	each(t, func(t *testing.T, m *ctxmodel, d *dialect) {
		refuses := func(status int, word, sentence string, headers ...string) scripted.Answer {
			return scripted.Status(status, "application/json", d.refused(status, d.words[word], sentence), headers...)
		}
		for what, c := range map[string]struct {
			answer scripted.Answer
			want   string
		}{
			"a wrong key":         {refuses(401, "auth", "no "+key), "EACCES provider 401 auth " + d.words["auth"]},
			"a prompt too long":   {refuses(400, "invalid", d.words["long"]), "E2BIG provider 400 context_overflow " + d.words["invalid"]},
			"another fault":       {refuses(400, "invalid", "temperature: too warm"), "EINVAL provider 400 invalid " + d.words["invalid"]},
			"no model":            {refuses(404, "none", "model: m"), "ENOENT provider 404 invalid " + d.words["none"]},
			"slow":                {refuses(429, "limit", "slow down", "Retry-After: 7"), "EREMOTEIO provider 429 rate_limit " + d.words["limit"] + " after 7000"},
			"busy":                {refuses(529, "overloaded", "busy"), "EREMOTEIO provider 529 overloaded " + d.words["overloaded"] + " accepted"},
			"broken":              {scripted.Status(500, "text/html", "<html>\x1b[2J"+key), "EREMOTEIO provider 500 server accepted"},
			"broken without end":  {scripted.Raw("HTTP/1.1 502 x\r\nContent-Type: text/html\r\n\r\n" + strings.Repeat("x", 1<<20)), "EREMOTEIO provider 502 server accepted"},
			"JSON":                {scripted.Status(200, "application/json", `{"content":[]}`), "EREMOTEIO headers 200 other accepted"},
			"a page":              {scripted.Status(200, "text/html", "<html>log in"), "EREMOTEIO headers 200 other accepted"},
			"no type":             {scripted.Status(200, "", "data: {}\n\n"), "EREMOTEIO headers 200 other accepted"},
			"moved":               {scripted.Status(307, "", "", "Location: "+elsewhere.URL+"/x"), "EREMOTEIO provider 307 other"},
			"moved with a stream": {scripted.Status(302, "text/event-stream", "data: {}\n\n", "Location: "+elsewhere.URL), "EREMOTEIO provider 302 other"},
			"nothing":             {scripted.Close, "EREMOTEIO headers 0 network"},
			"a reset":             {scripted.Reset, "EREMOTEIO headers 0 network"},
			"no HTTP":             {scripted.Seq(scripted.Raw("220 mail ready\r\n"), scripted.Close), "EREMOTEIO headers 0 network"},
			"endless headers":     {endless, "EREMOTEIO headers 0 network"},
		} {
			t.Run(what, func(t *testing.T) {
				m := m.in(t)
				model, s := d.plays(m, scripted.Seq(c.answer, scripted.Close))
				a := m.ask(asks(model))
				if got := a.said(); got != c.want {
					t.Errorf("%s, not %s", got, c.want)
				}
				if text := a.failure.Message; text == "" || strings.Contains(text, key) || strings.ContainsAny(text, "\x1b\n") || len(text) > libctx.MaxFailureText {
					t.Errorf("message %q", text)
				}
				if n := len(s.Requests()); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		}
		untrusted := scripted.NewTLS(t, func(*scripted.Request) scripted.Answer {
			t.Error("a server with a wrong certificate got the request")
			return scripted.Close
		})
		if got := m.ask(asks(m.provider(untrusted.URL, d.of))).said(); got != "EREMOTEIO connect 0 network" {
			t.Errorf("a wrong certificate: %s", got)
		}
	})
}

// The connection to the provider ends when the client's does.
func TestFormatCancel(t *testing.T) {
	each(t, func(t *testing.T, m *ctxmodel, d *dialect) {
		for what, before := range map[string]scripted.Answer{
			"before the headers": scripted.Seq(), "before any event": scripted.Head(),
			"after some text": scripted.Seq(scripted.Head(), scripted.Bytes(d.text)), "in an event": scripted.Seq(scripted.Head(), scripted.Bytes("data: {")),
		} {
			t.Run(what, func(t *testing.T) {
				m := m.in(t)
				reached, gone := make(chan struct{}), make(chan struct{})
				model, _ := d.plays(m, scripted.Seq(before, scripted.Then(func() { close(reached) }), func(c *scripted.Conn) error {
					defer close(gone)
					return scripted.Hang(c)
				}), stream(d.said([]string{"next"}, nil, "")...))
				c := m.dial(asks(model))
				await(t, reached)
				c.Close()
				await(t, gone)
				if got := m.ask(asks(model)).said(); got != "end; text next" {
					t.Error(got)
				}
			})
		}
	})
}

// A reset after some text is no answer.
func TestFormatReset(t *testing.T) {
	each(t, func(t *testing.T, m *ctxmodel, d *dialect) {
		read := make(chan struct{})
		model, _ := d.plays(m, scripted.Seq(scripted.Head(), scripted.Bytes(d.text), scripted.Until(read), scripted.Reset))
		c := m.dial(asks(model))
		defer c.Close()
		r := newReader(c)
		r.until(t, "delta")
		close(read)
		r.until(t, "done")
		if got := r.said(); got != "EREMOTEIO body 200 interrupted seen accepted" {
			t.Error(got)
		}
	})
}
