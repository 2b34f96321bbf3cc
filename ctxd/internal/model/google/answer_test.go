package google

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/ctxd/internal/model/sinktest"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

const key = "hush-hush-key"

func someProvider(id string) *provider.Provider {
	return &provider.Provider{Name: "p", Format: "google.generate", BaseURL: "https://generativelanguage.googleapis.com", Key: provider.KeyRequired, Models: []provider.Model{{ID: id, Name: "m"}}}
}

func says(text string) modelwire.Message {
	return modelwire.Message{Role: "user", Content: []wire.Part{wire.Text(text)}}
}

// served plays events to a driver from a server on loopback, and returns the
// body of the request too.
func served(t testing.TB, p *provider.Provider, g *modelwire.Generate, events ...string) (*sinktest.Sink, string, error) {
	t.Helper()
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			if _, err := fmt.Fprintf(w, "data: %s\n\n", e); err != nil {
				return // the driver has enough
			}
		}
	}))
	defer s.Close()
	p.BaseURL = s.URL
	d := new(Driver)
	out := &sinktest.Sink{}
	err := d.Generate(context.Background(), p, provider.NewSecret(key), g, out)
	if below, poolErr := d.pool.Get("", isLast); poolErr == nil {
		below.CloseIdle()
	}
	return out, string(body), err
}

// play is served for a plain request.
func play(t testing.TB, events ...string) (*sinktest.Sink, error) {
	t.Helper()
	s, _, err := served(t, someProvider("m"), &modelwire.Generate{
		Model: "p/m", Messages: []modelwire.Message{says("hello")}, Tools: []modelwire.Tool{{Name: "fs.read", Parameters: jsontext.Value("{}")}, {Name: "tsh", Parameters: jsontext.Value("{}")}},
	}, events...)
	return s, err
}

func parts(list string) string {
	return `{"candidates":[{"content":{"parts":[` + list + `],"role":"model"}}]}`
}

func ends(reason string) string {
	return `{"candidates":[{"content":{"role":"model"},"finishReason":"` + reason + `"}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"toolUsePromptTokenCount":5,"candidatesTokenCount":7,"thoughtsTokenCount":3,"totalTokenCount":115}}`
}

const usage = "usage 45 60 - 10 3\n"

func TestAnswer(t *testing.T) {
	for what, c := range map[string]struct {
		events []string
		want   string
	}{
		"text":              {[]string{parts(`{"text":"Hel"}`), parts(`{"text":"lo"},{"text":"!"}`), ends("STOP")}, "text Hel\ntext lo\ntext !\nstop end\n  text Hello!\n" + usage},
		"nothing":           {[]string{ends("STOP")}, "stop end\n" + usage},
		"length":            {[]string{ends("MAX_TOKENS")}, "stop length\n" + usage},
		"filtered":          {[]string{parts(`{"text":"x"}`), ends("SAFETY")}, "text x\nstop filtered\n  text x\n" + usage},
		"a picture":         {[]string{ends("IMAGE_RECITATION")}, "stop filtered\n" + usage},
		"a call nobody can": {[]string{ends("MALFORMED_FUNCTION_CALL")}, "stop other\n" + usage},
		"a blocked prompt":  {[]string{`{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":9}}`}, "stop filtered\nusage 9 - - - -\n"},
		"usage after":       {[]string{`{"candidates":[{"finishReason":"STOP"}]}`, `{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1}}`}, "stop end\nusage 9 - - 1 -\n"},
		"no usage":          {[]string{parts(`{"text":"x"}`), `{"candidates":[{"finishReason":"STOP"}]}`}, "text x\nstop end\n  text x\n"},
		"usage of nothing":  {[]string{`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{}}`}, "stop end\n"},
		"usage no one has":  {[]string{`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":-9}}`}, "stop end\n"},
		"no reason yet":     {[]string{`{"candidates":[{"finishReason":"FINISH_REASON_UNSPECIFIED"}],"usageMetadata":{"promptTokenCount":9}}`, ends("STOP")}, "stop end\n" + usage},
		"other parts":       {[]string{parts(`{"executableCode":{"code":"1"}},{"inlineData":{"mimeType":"x","data":""}},null,{"hologram":{}}`), `{"candidates":[null]}`, `{"candidates":[]}`, `{"future":1}`, ends("STOP")}, "stop end\n" + usage},
		"thinking":          {[]string{parts(`{"text":"h","thought":true}`), parts(`{"text":"m","thought":true},{"text":"x"}`), ends("STOP")}, "think h\nthink m\ntext x\nstop end\n  reasoning hm\n  text x\n" + usage},
		"NUL":               {[]string{parts(`{"text":"a\u0000b"}`), ends("STOP")}, "text a␀b\nstop end\n  text a␀b\n" + usage},
		"calls": {
			[]string{parts(`{"text":"I read."},{"functionCall":{"name":"fs__read","args":{ "path":"a","n":12345678901234567890}}}`), parts(`{"functionCall":{"name":"tsh","id":"x"}},{"functionCall":{"name":"../x","args":null}},{"functionCall":{"args":{"a":1,"a":2},"name":"tsh"}}`), ends("STOP")},
			"text I read.\ncall 0  fs.read\nargs 0 { \"path\":\"a\",\"n\":12345678901234567890}\ncall 1 x tsh\ncall 2  ../x\ncall 3  tsh\nargs 3 {\"a\":1,\"a\":2}\nstop tool_calls\n  text I read.\n" +
				"  tool_call call-1fs.read{\"path\":\"a\",\"n\":12345678901234567890}\n  tool_call call-2tsh{}\n  tool_call call-3{} !not the name of a tool: ../x\n  tool_call call-4tsh{} !the arguments are not JSON: {\"a\":1,\"a\":2}\n" + usage,
		},
		"signatures": {
			[]string{
				parts(`{"text":"a"}`), parts(`{"text":"b","thoughtSignature" : "S-_1"}`), parts(`{"text":"c"}`), parts(`{"functionCall":{"name":"tsh","args":{"thoughtSignature":"mine"}},"thoughtSignature":"S2"},{"functionCall":{"name":"tsh"}}`),
				parts(`{"text":"","thoughtSignature":"S3"}`), parts(`{"text":"hm","thought":true,"thoughtSignature":"S4"}`), ends("STOP"),
			},
			"text a\ntext b\ntext c\ncall 0  tsh\nargs 0 {\"thoughtSignature\":\"mine\"}\ncall 1  tsh\nthink hm\nstop tool_calls\n  text a\n  text b\n  text c\n  tool_call call-1tsh{\"thoughtSignature\":\"mine\"}\n  tool_call call-2tsh{}\n  reasoning hm\n" +
				`  opaque p/m [{"at":1,"data":"S-_1"},{"at":3,"data":"S2"},{"at":5,"data":{"text":"","thoughtSignature":"S3"}},{"at":5,"data":{"thought":true,"text":"hm","thoughtSignature":"S4"}}]` + "\n" + usage,
		},
	} {
		s, err := play(t, c.events...)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if diff := cmp.Diff(c.want, s.String()); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
}

func TestFailures(t *testing.T) {
	big := strings.Repeat("x", 8<<20)
	for what, c := range map[string]struct {
		events []string
		want   string
	}{
		"no reason":      {[]string{parts(`{"text":"x"}`)}, "EREMOTEIO body 200 interrupted  seen true"},
		"overloaded":     {[]string{`{"error":{"code":503,"message":"busy hush-hush-key","status":"UNAVAILABLE"}}`}, "EREMOTEIO provider 200 overloaded UNAVAILABLE seen false"},
		"with a wait":    {[]string{`{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}]}}`}, "EREMOTEIO provider 200 rate_limit RESOURCE_EXHAUSTED seen false after 1500"},
		"a wrong key":    {[]string{`{"error":{"code":400,"message":"x","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`}, "EACCES provider 200 auth INVALID_ARGUMENT seen false"},
		"an odd error":   {[]string{`{"error":"out of order"}`}, "EREMOTEIO provider 200 other  seen false"},
		"no JSON":        {[]string{`hello`}, "EREMOTEIO decode 200 interrupted  seen false"},
		"no object":      {[]string{`[]`}, "EREMOTEIO decode 200 interrupted  seen false"},
		"other members":  {[]string{`{"candidates":{"content":1}}`}, "EREMOTEIO decode 200 interrupted  seen false"},
		"long arguments": {[]string{parts(`{"functionCall":{"name":"tsh","args":{"a":"` + big + big + `"}}}`)}, "EREMOTEIO decode 200 limit  seen true"},
		"long text":      {[]string{parts(`{"text":"` + big + `"}`), parts(`{"text":"` + big + `"}`), parts(`{"text":"` + big + `"}`), parts(`{"text":"x"}`)}, "EREMOTEIO decode 200 limit  seen true"},
		"many calls":     {[]string{parts(strings.Repeat(`{"functionCall":{"name":"tsh"}},`, libctx.MaxModelParts) + `{"functionCall":{"name":"tsh"}}`)}, "EREMOTEIO decode 200 limit  seen true"},
	} {
		s, err := play(t, c.events...)
		var f *modelwire.Failure
		if !errors.As(err, &f) {
			t.Fatalf("%s: %v", what, err)
		}
		got := fmt.Sprintf("%s %s %d %s %s seen %v", f.Code, f.Phase, f.Status, f.Class, f.ProviderCode, f.GenerationSeen)
		if f.RetryAfterMS > 0 {
			got += fmt.Sprintf(" after %d", f.RetryAfterMS)
		}
		if got != c.want || !f.Accepted || strings.Contains(f.Message, "hush") {
			t.Errorf("%s: %s, not %s (%s)", what, got, c.want, f.Message)
		}
		if strings.Contains(s.String(), "stop") {
			t.Errorf("%s: a message", what)
		}
	}
}

// Whoever takes the frames ends the request, with the error it has.
func TestGone(t *testing.T) {
	gone := errors.New("nobody reads")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\ndata: %s\n\n", parts(`{"text":"x"}`), ends("STOP"))
	}))
	defer s.Close()
	p := someProvider("m")
	p.BaseURL = s.URL + "/v1"
	g := &modelwire.Generate{Model: "p/m", Messages: []modelwire.Message{says("hello")}}
	for n := range 4 {
		left := n
		err := new(Driver).Generate(context.Background(), p, provider.NewSecret(""), g, sender(func(modelwire.Frame) error {
			if left--; left < 0 {
				return gone
			}
			return nil
		}))
		if !errors.Is(err, gone) {
			t.Errorf("after %d frames: %v", n, err)
		}
	}
}

type sender func(modelwire.Frame) error

func (s sender) Send(f modelwire.Frame) error { return s(f) }

// What can not be sent fails before anything is, and shows nothing of it.
func TestUnsent(t *testing.T) {
	g := &modelwire.Generate{Model: "p/m", Messages: []modelwire.Message{says("secret words")}}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var f *modelwire.Failure
	if err := new(Driver).Generate(ctx, someProvider("m"), provider.NewSecret(key), g, &sinktest.Sink{}); !errors.As(err, &f) || f.Code != errdefs.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	p := someProvider("m")
	p.BaseURL = "https://[bad"
	if err := new(Driver).Generate(context.Background(), p, provider.NewSecret(key), g, &sinktest.Sink{}); !errors.As(err, &f) || f.Code != errdefs.Invalid || strings.Contains(f.Message, "secret") || strings.Contains(f.Message, key) {
		t.Errorf("a wrong address: %v", err)
	}
}

func TestIsLast(t *testing.T) {
	for what, c := range map[string]struct {
		data string
		want bool
	}{
		"as it is":      {ends("STOP"), true},
		"only a reason": {`{"candidates":[{"finishReason":"STOP"}]}`, false},
		"only costs":    {`{"candidates":[{"finishReason":""}],"usageMetadata":{}}`, false},
		"blocked":       {`{"promptFeedback":{"blockReason":"OTHER"},"usageMetadata":{}}`, true},
		"only said":     {parts(`{"text":"finishReason usageMetadata"}`), false},
		"no JSON":       {`finishReason usageMetadata`, false},
		"no object":     {`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":null}`, false},
	} {
		if got := isLast(transport.Event{Data: []byte(c.data)}); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func FuzzEvent(f *testing.F) {
	f.Add(parts(`{"text":"x","thoughtSignature":"S"},{"functionCall":{"name":"tsh","args":{"a":1}}}`))
	f.Add(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":5}}]}}],"usageMetadata":{"promptTokenCount":1e400}}`)
	f.Add(`{"error":{"code":"x","details":[{"retryDelay":"-1s"}]}}`)
	f.Add(`{"candidates":[{"content":{"parts":[{"thought":true,"text":"x"},null]},"finishReason":"STOP"}],"usageMetadata":{}}`)
	f.Add("{\n\"promptFeedback\":{\"blockReason\":\"x\"}}")
	f.Fuzz(func(t *testing.T, data string) {
		s := &sinktest.Sink{}
		if err := s.Send(&modelwire.Start{Model: "p/m"}); err != nil {
			t.Fatal(err)
		}
		a := &answer{Answer: compose.New(s, toolnames.New(nil), 200), request: &modelwire.Generate{Model: "p/m"}, key: provider.NewSecret(key)}
		err := a.event(transport.Event{Data: []byte(data)})
		if err == nil {
			err = a.event(transport.Event{Data: []byte(ends("STOP"))})
		}
		if err == nil {
			err = a.finish()
		}
		isLast(transport.Event{Data: []byte(data)})
		var failure *modelwire.Failure
		if err != nil && !errors.As(err, &failure) {
			t.Fatal(err)
		}
		for _, f := range s.Frames {
			if f.Kind() == "message" && err != nil {
				t.Fatalf("a message and %v", err)
			}
		}
		if failure != nil {
			if _, err := modelwire.MarshalFrame(&modelwire.Error{Failure: *failure}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
