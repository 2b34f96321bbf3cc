package provider

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"cortexfs.org/tests/internal/scripted"
	"github.com/go-json-experiment/json/jsontext"
)

// A conversation: what is sent, and what comes back.
func TestConversation(t *testing.T) {
	m := start(t)
	model, s := m.plays(
		scripted.Calls(scripted.Call{ID: "id-1", Name: "fs__read", Arguments: `{"path":"a"}`}),
		scripted.Seq(scripted.Head("X-Request-Id: req-7\u202e"), scripted.Events(scripted.Content("Grün"), scripted.Content("e 日本 🙂"), scripted.Finish("stop"), scripted.Usage(12, 3), scripted.Done), scripted.End()))
	g := asks(model)
	g.MaxOutput, g.Effort, g.CacheKey = 77, "low", "k"
	g.Options = map[string]string{"temperature": "0"}
	a := m.ask(g)
	if got := a.said(); got != `tool_calls; tool_call call-1 fs.read {"path":"a"}` || !a.done {
		t.Fatal(got)
	}
	g.Messages = append(g.Messages,
		modelwire.Message{Role: "assistant", Content: []wire.Part{
			{Type: "reasoning", Text: "hm"}, {Type: "tool_call", Call: "call-2-1", Name: "fs.read", Arguments: jsontext.Value(`{"path":"a"}`)},
		}},
		modelwire.Message{Role: "tool", Content: []wire.Part{{Type: "tool_result", Call: "call-2-1", Name: "fs.read", Status: "ok", Text: "content"}}})
	a = m.ask(g)
	if got := a.said(); got != "end; text Grüne 日本 🙂" || a.text != "Grüne 日本 🙂" || !a.done {
		t.Fatal(got)
	}
	if start := a.frames[0].(*modelwire.Start); start.RequestID != `req-7\u202e` || start.Model != model {
		t.Errorf("%+v", start)
	}
	if u := a.usage; u == nil || *u.Input != 12 || *u.Output != 3 || u.CacheRead != nil || u.Reasoning != nil {
		t.Errorf("usage %+v", u)
	}
	requests := s.Requests()
	want := []string{
		`{"max_tokens":77,"messages":[{"content":"hello","role":"user"}],"model":"vendor/m:1","reasoning_effort":"low","stream":true,"stream_options":{"include_usage":true},"temperature":0,"tools":[{"function":{"name":"fs__read","parameters":{"type":"object"}},"type":"function"},{"function":{"name":"tsh","parameters":{"type":"object"}},"type":"function"}]}`,
		`{"max_tokens":77,"messages":[{"content":"hello","role":"user"},{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"path\":\"a\"}","name":"fs__read"},"id":"call-2-1","type":"function"}]},{"content":"content","role":"tool","tool_call_id":"call-2-1"}],"model":"vendor/m:1","reasoning_effort":"low","stream":true,"stream_options":{"include_usage":true},"temperature":0,"tools":[{"function":{"name":"fs__read","parameters":{"type":"object"}},"type":"function"},{"function":{"name":"tsh","parameters":{"type":"object"}},"type":"function"}]}`,
	}
	for i, r := range requests {
		body := jsontext.Value(r.Body)
		if err := body.Canonicalize(); err != nil || string(body) != want[i] {
			t.Errorf("request %d:\n%s, not\n%s", i+1, body, want[i])
		}
		if r.Method != "POST" || r.Path != "/chat/completions" || r.Header.Get("Authorization") != "Bearer "+key ||
			r.Header.Get("Accept") != "text/event-stream" || r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("request %d: %s %s %v", i+1, r.Method, r.Path, r.Header)
		}
		for name := range r.Header {
			if strings.HasPrefix(name, "X-Stainless") || strings.Contains(name, "Idempotency") || name == "Cookie" {
				t.Errorf("request %d has %s", i+1, name)
			}
		}
	}
}

// What a library would find in the environment leads nowhere, and the key is in
// nothing that others see.
func TestNothingFromEnvironment(t *testing.T) {
	trap := scripted.New(t, func(r *scripted.Request) scripted.Answer {
		t.Errorf("the trap was asked: %s %s", r.Method, r.Path)
		return scripted.Text("trapped")
	})
	var env []string
	for _, name := range []string{"OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		env = append(env, name+"="+trap.URL)
	}
	m := start(t, append(env, "OPENAI_API_KEY=sk-wrong", "OPENAI_ORG_ID=org", "OPENAI_PROJECT_ID=project", "OPENAI_CUSTOM_HEADERS=X-Trap: yes", "SSL_CERT_FILE=/dev/null")...)
	s := scripted.New(t, scripted.InTurn(t, scripted.Text("fine"), scripted.Text("keyless"), scripted.Text("by proxy")))
	if got := m.ask(asks(m.provider(s.URL))).said(); got != "end; text fine" {
		t.Error(got)
	}
	if got := m.ask(asks(m.provider(s.URL, func(p *provider.Provider) { p.Key = provider.KeyNone }))).said(); got != "end; text keyless" {
		t.Error(got)
	}
	requests := s.Requests()
	for _, r := range requests {
		for _, name := range []string{"X-Trap", "Openai-Organization", "Openai-Project"} {
			if r.Header.Get(name) != "" {
				t.Errorf("a request has %s", name)
			}
		}
	}
	if v, ok := requests[1].Header["Authorization"]; ok {
		t.Errorf("without a key: %q", v)
	}
	// Through the proxy of the provider's file, and no other.
	other := m.provider("http://provider.invalid/v1", func(p *provider.Provider) { p.Proxy, p.Insecure = s.URL, true })
	if got := m.ask(asks(other)).said(); got != "end; text by proxy" {
		t.Error(got)
	}
	for _, name := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", m.cmd.Process.Pid, name))
		if err == nil && strings.Contains(string(text), key) {
			t.Errorf("the key is in %s", name)
		}
	}
}

// However the bytes of an answer are cut, it says the same.
func TestCuts(t *testing.T) {
	m := start(t)
	events := []string{scripted.Content("Grüße, 日本 🙂"), scripted.Tool(0, "a", "tsh", `{"args":["ü🙂"]}`), scripted.Finish("tool_calls"), scripted.Usage(3, 2), scripted.Done}
	for what, end := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
		body := "\ufeff: hello" + end
		for i, e := range events {
			switch i {
			case 0:
				head, tail, _ := strings.Cut(e, `"choices"`)
				body += "event: chunk" + end + "data:" + head + end + `data:  "choices"` + tail + end + ": ping" + end + end
			default:
				body += "data: " + e + end + end
			}
		}
		next := make(chan scripted.Answer, 1)
		s := scripted.New(t, func(*scripted.Request) scripted.Answer { return <-next })
		model := m.provider(s.URL)
		for cut := 1; cut < len(body); cut += 1 + cut/200 {
			next <- scripted.Seq(scripted.Head(), scripted.Bytes(body[:cut]), scripted.Bytes(body[cut:]), scripted.End())
			if got := m.ask(asks(model)).said(); got != `tool_calls; text Grüße, 日本 🙂; tool_call call-1 tsh {"args":["ü🙂"]}` {
				t.Fatalf("%s, cut at %d: %s", what, cut, got)
			}
		}
		var single []scripted.Answer
		for i := range len(body) {
			single = append(single, scripted.Bytes(body[i:i+1]))
		}
		next <- scripted.Seq(scripted.Head(), scripted.Seq(single...), scripted.End())
		if got := m.ask(asks(model)).said(); got != `tool_calls; text Grüße, 日本 🙂; tool_call call-1 tsh {"args":["ü🙂"]}` {
			t.Errorf("%s, byte by byte: %s", what, got)
		}
	}
}

// Wherever an answer ends too early, cleanly or not, it is none.
func TestEarlyEnd(t *testing.T) {
	m := start(t)
	var body string
	for _, e := range []string{scripted.Content("Grün"), scripted.Tool(0, "a", "tsh", `{}`), scripted.Finish("tool_calls"), scripted.Usage(3, 2), scripted.Done} {
		body += "data: " + e + "\n\n"
	}
	next := make(chan scripted.Answer, 1)
	s := scripted.New(t, func(*scripted.Request) scripted.Answer { return <-next })
	model := m.provider(s.URL)
	whole := len(body) - len("\n") // the last line may lack its empty one
	for cut := range whole {
		for what, end := range map[string]scripted.Answer{"cleanly": scripted.End(), "by closing": scripted.Close} {
			next <- scripted.Seq(scripted.Head(), scripted.Bytes(body[:cut]), end)
			a := m.ask(asks(model))
			if a.done || a.message != nil || a.failure == nil || a.failure.Class != "interrupted" || !a.failure.Accepted {
				t.Fatalf("cut at %d, %s: %s", cut, what, a.said())
			}
		}
	}
	next <- scripted.Seq(scripted.Head(), scripted.Bytes(body[:whole]), scripted.End())
	if a := m.ask(asks(model)); !a.done {
		t.Errorf("%s", a.said())
	}
}

func TestOddAnswers(t *testing.T) {
	m := start(t)
	for what, c := range map[string]struct {
		answer scripted.Answer
		want   string
	}{
		"[DONE] twice":          {scripted.Stream(scripted.Content("x"), scripted.Finish("stop"), scripted.Done, scripted.Done), "end; text x"},
		"[DONE] and no end":     {scripted.Seq(scripted.Head(), scripted.Events(scripted.Content("x"), scripted.Finish("stop"), scripted.Done), scripted.Hang), "end; text x"},
		"no [DONE]":             {scripted.Stream(scripted.Content("x"), scripted.Finish("stop")), "EREMOTEIO body 200 interrupted seen accepted"},
		"no finish_reason":      {scripted.Stream(scripted.Content("x"), scripted.Done), "EREMOTEIO body 200 interrupted seen accepted"},
		"[DONE] alone":          {scripted.Stream(scripted.Done), "EREMOTEIO body 200 interrupted accepted"},
		"nothing":               {scripted.Stream(), "EREMOTEIO body 200 interrupted accepted"},
		"no text":               {scripted.Stream(scripted.Finish("stop"), scripted.Done), "end"},
		"blank text":            {scripted.Text(" \n"), "end; text  \n"},
		"reasoning alone":       {scripted.Stream(scripted.Delta(`"reasoning_content":"hm"`), scripted.Finish("stop"), scripted.Done), "end; reasoning hm"},
		"refusal":               {scripted.Stream(scripted.Delta(`"refusal":"no"`), scripted.Finish("stop"), scripted.Done), "refusal; text no"},
		"filtered":              {scripted.Stream(scripted.Content("x"), scripted.Finish("content_filter"), scripted.Done), "filtered; text x"},
		"length":                {scripted.Stream(scripted.Tool(0, "a", "tsh", `{"args":[`), scripted.Finish("length"), scripted.Done), `length; tool_call call-1 tsh {} !the arguments are not JSON: {"args":[`},
		"blank arguments":       {scripted.Calls(scripted.Call{ID: "a", Name: "tsh"}, scripted.Call{ID: "b", Name: "tsh", Arguments: " \n"}), "tool_calls; tool_call call-1 tsh {}; tool_call call-2 tsh {}"},
		"no JSON":               {scripted.Calls(scripted.Call{ID: "a", Name: "tsh", Arguments: "ls -l"}), "tool_calls; tool_call call-1 tsh {} !the arguments are not JSON: ls -l"},
		"no tool":               {scripted.Calls(scripted.Call{ID: "a", Name: "../tsh", Arguments: "{}"}), "tool_calls; tool_call call-1  {} !not the name of a tool: ../tsh"},
		"ids missing and twice": {scripted.Stream(scripted.Tool(0, "", "tsh", `{"a":1}`), scripted.Tool(1, "x", "tsh", `{"b":2}`), scripted.Tool(2, "x", "tsh", `{"c":3}`), scripted.Finish("tool_calls"), scripted.Done), `tool_calls; tool_call call-1 tsh {"a":1}; tool_call call-2 tsh {"b":2}; tool_call call-3 tsh {"c":3}`},
		"one index, three ids":  {scripted.Stream(scripted.Tool(0, "x", "tsh", `{"a":1}`), scripted.Tool(0, "y", "tsh", `{"b":`), scripted.Tool(0, "", "", `2}`), scripted.Tool(0, "z", "tsh", ``), scripted.Finish("tool_calls"), scripted.Done), `tool_calls; tool_call call-1 tsh {"a":1}; tool_call call-2 tsh {"b":2}; tool_call call-3 tsh {}`},
		"interleaved":           {scripted.Stream(scripted.Tool(0, "x", "tsh", `{"a"`), scripted.Tool(1, "y", "fs__read", `{"b"`), scripted.Tool(0, "", "", `:1}`), scripted.Tool(1, "", "", `:2}`), scripted.Finish("tool_calls"), scripted.Done), `tool_calls; tool_call call-1 tsh {"a":1}; tool_call call-2 fs.read {"b":2}`},
		"an error":              {scripted.Stream(scripted.Content("x"), `{"error":{"message":"slow `+key+`","type":"server_error","code":"rate_limit_exceeded"}}`, scripted.Done), "EREMOTEIO provider 200 rate_limit rate_limit_exceeded seen accepted"},
		"an error first":        {scripted.Stream(`{"error":{"message":"busy","code":503}}`), "EREMOTEIO provider 200 overloaded 503 accepted"},
		"no chunk":              {scripted.Stream(scripted.Content("x"), `"hello"`), "EREMOTEIO decode 200 interrupted seen accepted"},
		"half JSON":             {scripted.Stream(`{"choices":[{`), "EREMOTEIO decode 200 interrupted accepted"},
		"no UTF-8":              {scripted.Seq(scripted.Head(), scripted.Bytes("data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n"), scripted.End()), "EREMOTEIO decode 200 interrupted accepted"},
		"usage twice":           {scripted.Stream(scripted.Usage(1, 1), scripted.Content("x"), scripted.Finish("stop"), scripted.Usage(2, 2), scripted.Done), "end; text x"},
		"unknown members":       {scripted.Stream(`{"new":{"a":[1]},"error":null,"usage":null,"choices":[{"index":0,"delta":{"content":"x","new":1}}]}`, scripted.Finish("stop"), scripted.Done), "end; text x"},
		"a reset":               {scripted.Seq(scripted.Head(), scripted.Reset), "EREMOTEIO"},
		"a huge event":          {scripted.Seq(scripted.Head(), scripted.Bytes("data: "+strings.Repeat("x", libctx.MaxEvent+1))), "EREMOTEIO body 200 limit accepted"},
		"17 MiB of arguments":   {scripted.Calls(scripted.Call{ID: "a", Name: "tsh", Arguments: `{"x":"` + strings.Repeat("x", 17<<20) + `"}`}), "EREMOTEIO decode 200 limit seen accepted"},
		"too many events":       {scripted.Seq(scripted.Head(), scripted.Bytes(strings.Repeat("data: {}\n\n", libctx.MaxModelEvents+1))), "EREMOTEIO body 200 limit accepted"},
	} {
		t.Run(what, func(t *testing.T) {
			m := m.in(t)
			model, s := m.plays(c.answer)
			a := m.ask(asks(model))
			if got := a.said(); got != c.want && !(what == "a reset" && strings.HasPrefix(got, c.want)) {
				t.Errorf("%s, not %s", got, c.want)
			}
			if a.done != (a.failure == nil) || a.done != (a.message != nil) {
				t.Errorf("done %v, message %v, failure %v", a.done, a.message, a.failure)
			}
			if a.failure != nil && strings.Contains(a.failure.Message, key) {
				t.Errorf("the key is in %q", a.failure.Message)
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// 16 MiB of arguments, and a message that is just short enough, come through.
func TestLargeAnswers(t *testing.T) {
	m := start(t)
	arguments := `{"x":"` + strings.Repeat("x", libctx.MaxModelArguments-8) + `"}`
	model, _ := m.plays(
		scripted.Calls(scripted.Call{ID: "a", Name: "tsh", Arguments: arguments}, scripted.Call{ID: "b", Name: "tsh", Arguments: `{"y":"` + strings.Repeat("y", 7<<20) + `"}`}),
		scripted.Text(strings.Repeat("z", 12<<20), strings.Repeat("z", 12<<20)))
	a := m.ask(asks(model))
	if !a.done || len(a.message.Content) != 2 || string(a.message.Content[0].Arguments) != arguments {
		t.Errorf("%.300s", a.said())
	}
	a = m.ask(asks(model))
	if a.done || a.failure.Class != "limit" {
		t.Errorf("%.300s", a.said())
	}
}
