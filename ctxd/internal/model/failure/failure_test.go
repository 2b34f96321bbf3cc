package failure

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"github.com/google/go-cmp/cmp"
)

func TestRefused(t *testing.T) {
	for what, c := range map[string]struct {
		status int
		body   string
		want   string // code phase class provider_code accepted message
	}{
		"a key":              {401, `{"error":{"message":"Incorrect API key provided: sk-abcd****wxyz","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, "EACCES provider auth invalid_api_key false HTTP 401: Incorrect API key provided: [redacted]"},
		"no key, no words":   {401, ``, "EACCES provider auth  false HTTP 401 Unauthorized"},
		"forbidden":          {403, `{"error":{"message":"no","type":"permission_error"}}`, "EACCES provider auth permission_error false HTTP 403: no"},
		"a country":          {403, `{"error":{"message":"no","type":"request_forbidden","code":"unsupported_country_region_territory"}}`, "EREMOTEIO provider policy unsupported_country_region_territory false HTTP 403: no"},
		"payment":            {402, `{"error":{"message":"credits","code":402}}`, "EREMOTEIO provider quota 402 false HTTP 402: credits"},
		"quota":              {429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, "EREMOTEIO provider quota insufficient_quota false HTTP 429: You exceeded your current quota"},
		"rate":               {429, `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`, "EREMOTEIO provider rate_limit rate_limit_exceeded false HTTP 429: Rate limit reached"},
		"rate, a phrase":     {429, `{"error":{"message":"too many tokens per minute","type":"tokens","code":null}}`, "EREMOTEIO provider rate_limit tokens false HTTP 429: too many tokens per minute"},
		"rate, no JSON":      {429, "Too Many Requests\r\n", "EREMOTEIO provider rate_limit  false HTTP 429: Too Many Requests"},
		"Google":             {429, `{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}`, "EREMOTEIO provider rate_limit 429 false HTTP 429: x"},
		"context":            {400, `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, "E2BIG provider context_overflow context_length_exceeded false HTTP 400: This model's maximum context length is 128000 tokens."},
		"context, phrase":    {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","code":400}`, "E2BIG provider context_overflow 400 false HTTP 400: This model's maximum context length is 4096 tokens"},
		"context, llama":     {400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, "E2BIG provider context_overflow 400 false HTTP 400: the request exceeds the available context size"},
		"context, 500":       {500, `{"error":"prompt is too long: 9 > 8"}`, "E2BIG provider context_overflow  true HTTP 500: prompt is too long: 9 > 8"},
		"context, in auth":   {400, `{"error":{"message":"prompt is too long","type":"authentication_error"}}`, "EACCES provider auth authentication_error false HTTP 400: prompt is too long"},
		"context, in 401":    {401, `{"error":{"message":"token limit"}}`, "EACCES provider auth  false HTTP 401: token limit"},
		"too large":          {413, `<html>`, "EMSGSIZE provider limit  false HTTP 413: a web page came, not an answer"},
		"no model":           {404, `{"error":{"message":"no such model","code":"model_not_found"}}`, "ENOENT provider invalid model_not_found false HTTP 404: no such model"},
		"not found":          {404, `404 page not found`, "ENOENT provider invalid  false HTTP 404: 404 page not found"},
		"invalid":            {400, `{"error":{"message":"Unknown parameter: 'x'","type":"invalid_request_error","code":"unknown_parameter"}}`, "EINVAL provider invalid unknown_parameter false HTTP 400: Unknown parameter: 'x'"},
		"detail":             {422, `{"detail":[{"loc":["body"],"msg":"extra"}]}`, `EINVAL provider invalid  false HTTP 422: {"detail":[{"loc":["body"],"msg":"extra"}]}`},
		"detail, a text":     {422, `{"detail":"extra"}`, `EINVAL provider invalid  false HTTP 422: extra`},
		"timeout":            {408, ``, "EREMOTEIO provider interrupted  true HTTP 408 Request Timeout"},
		"broken":             {500, `{"error":{"message":"sorry","type":"server_error"}}`, "EREMOTEIO provider server server_error true HTTP 500: sorry"},
		"gateway":            {502, `<html>bad gateway</html>`, "EREMOTEIO provider server  true HTTP 502: a web page came, not an answer"},
		"overloaded":         {503, `{"error":{"message":"busy"}}`, "EREMOTEIO provider overloaded  true HTTP 503: busy"},
		"overloaded, 529":    {529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "EREMOTEIO provider overloaded overloaded_error true HTTP 529: Overloaded"},
		"slow down":          {503, `{"error":{"message":"x","code":"slow_down"}}`, "EREMOTEIO provider overloaded slow_down true HTTP 503: x"},
		"policy":             {400, `{"error":{"message":"x","code":"content_policy_violation"}}`, "EREMOTEIO provider policy content_policy_violation false HTTP 400: x"},
		"moved":              {302, ``, "EREMOTEIO provider other  false HTTP 302: the provider redirects, which is not followed"},
		"odd status":         {700, `{"error":7}`, "EREMOTEIO provider server  true HTTP 700: 7"},
		"JSON with 200":      {200, `{"id":"x","choices":[]}`, `EREMOTEIO headers other  true HTTP 200: the answer is of no type, not an event stream`},
		"error with 200":     {200, `{"error":{"message":"slow","code":429}}`, "EREMOTEIO headers rate_limit 429 true HTTP 200: the answer is of no type, not an event stream: slow"},
		"terminal codes":     {500, "\x1b[31mred\x07\u202e\x00\xff", `EREMOTEIO provider server  true HTTP 500: \x1b[31mred\x07\u202e␀�`},
		"an odd code":        {400, `{"error":{"code":{"x":1},"type":["y"],"message":"z"}}`, "EINVAL provider invalid  false HTTP 400: z"},
		"names twice":        {401, `{"error":{"code":"invalid_api_key","message":"a"},"error":{"code":"invalid_api_key","message":"b"}}`, "EACCES provider auth invalid_api_key false HTTP 401: b"},
		"a code in capitals": {429, `{"error":{"code":"Rate-Limit-Exceeded","message":"x"}}`, "EREMOTEIO provider rate_limit Rate-Limit-Exceeded false HTTP 429: x"},
	} {
		phase := "provider"
		if c.status == 200 {
			phase = "headers"
		}
		e := &transport.Error{
			Phase: phase, Kind: errdefs.Provider, Status: c.status, Refused: true, Header: http.Header{}, Body: []byte(c.body),
			Err: fmt.Errorf("status %d", c.status),
		}
		f := Broken(e, provider.NewSecret("hush-hush-key"))
		got := strings.Join([]string{string(f.Code), f.Phase, f.Class, f.ProviderCode, strconv.FormatBool(f.Accepted), f.Message}, " ")
		if got != c.want {
			t.Errorf("%s:\n%s, not\n%s", what, got, c.want)
		}
		if f.Status != c.status {
			t.Errorf("%s: status %d", what, f.Status)
		}
		if _, err := modelwire.MarshalFrame(&modelwire.Error{Failure: *f}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestCauses: what kind of answer came is said, not what nobody can read of it.
func TestCauses(t *testing.T) {
	for _, c := range []struct {
		status     int
		head, body string // head: lines of NAME: VALUE
		want       string
	}{
		{307, "Location: https://other.example/v1/hush-hush-key?x=1", "moved", "HTTP 307: the provider redirects to other.example, which is not followed"},
		{308, "Location: //\x1b[2Jx/", "", "HTTP 308: the provider redirects, which is not followed"},
		{301, "Location: /elsewhere", "x", "HTTP 301: the provider redirects, which is not followed"},
		{200, "Content-Type: text/event-stream\nContent-Encoding: gzip", "\x1f\x8b\x08\x00", "HTTP 200: the answer is compressed (gzip), which nobody asked for"},
		{500, "Content-Encoding: br", "\x0b\x02", "HTTP 500: the answer is compressed (br), which nobody asked for"},
		{200, "Content-Type: application/json; charset=utf-8", `{"choices":[{"message":"hello"}]}`, "HTTP 200: the answer is application/json, not an event stream"},
		{200, "Content-Type: application/json", `{"error":{"message":"slow"}}`, "HTTP 200: the answer is application/json, not an event stream: slow"},
		{200, "Content-Type: text/plain", "no credit", "HTTP 200: the answer is text/plain, not an event stream: no credit"},
		{429, "Retry-After: 20", `{"error":{"message":"slow"}}`, "HTTP 429: slow (retry in 20 s)"},
		{429, "Retry-After-Ms: 1200", ``, "HTTP 429 Too Many Requests (retry in 2 s)"},
		{529, "", ``, "HTTP 529"},
	} {
		h := http.Header{}
		for line := range strings.Lines(c.head) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			h.Set(name, value)
		}
		e := &transport.Error{Phase: "provider", Kind: errdefs.Provider, Status: c.status, Refused: true, Header: h, Body: []byte(c.body), Err: errors.New("x")}
		if f := Broken(e, provider.NewSecret("hush-hush-key")); f.Message != c.want {
			t.Errorf("%d %s:\n%s, not\n%s", c.status, c.head, f.Message, c.want)
		}
	}
	f := modelwire.Fail(errdefs.Provider, "provider", "other", "%s", strings.Repeat("x", 9000))
	if _, err := modelwire.MarshalFrame(&modelwire.Error{Failure: *After(f, time.Hour)}); err != nil || f.RetryAfterMS == 0 {
		t.Errorf("long: %v", err)
	}
}

// TestTinyKey: what is put in for one is not looked at again.
func TestTinyKey(t *testing.T) {
	if got := Redact("Incorrect key: sk-0123456789", provider.NewSecret("e")); got != "Incorr[redacted]ct k[redacted]y: [redacted]" {
		t.Error(got)
	}
}

func TestBroken(t *testing.T) {
	for what, c := range map[string]struct {
		e    transport.Error
		want modelwire.Failure
	}{
		"connect": {
			transport.Error{Phase: "connect", Kind: errdefs.Provider, Err: errors.New("refused")},
			modelwire.Failure{Code: errdefs.Provider, Phase: "connect", Class: "network", Message: "refused"},
		},
		"no answer": {
			transport.Error{Phase: "headers", Kind: errdefs.Timeout, Err: errors.New("late")},
			modelwire.Failure{Code: errdefs.Timeout, Phase: "headers", Class: "network", Message: "late"},
		},
		"half an answer": {
			transport.Error{Phase: "body", Kind: errdefs.Provider, Status: 200, Err: errors.New("reset")},
			modelwire.Failure{Code: errdefs.Provider, Phase: "body", Status: 200, Class: "interrupted", Accepted: true, Message: "reset"},
		},
		"no text": {
			transport.Error{Phase: "decode", Kind: errdefs.Provider, Status: 200, Err: errors.New("no UTF-8")},
			modelwire.Failure{Code: errdefs.Provider, Phase: "decode", Status: 200, Class: "interrupted", Accepted: true, Message: "no UTF-8"},
		},
		"too much": {
			transport.Error{Phase: "body", Kind: errdefs.TooBig, Status: 200, Err: errors.New("long")},
			modelwire.Failure{Code: errdefs.Provider, Phase: "body", Status: 200, Class: "limit", Accepted: true, Message: "long"},
		},
		"cancelled": {
			transport.Error{Phase: "headers", Kind: errdefs.Cancelled, Err: errors.New("cancelled")},
			modelwire.Failure{Code: errdefs.Cancelled, Phase: "headers", Class: "other", Message: "cancelled"},
		},
		"not sent": {
			transport.Error{Phase: "pre_send", Kind: errdefs.Invalid, Err: errors.New("Authorization: Bearer abc.def")},
			modelwire.Failure{Code: errdefs.Invalid, Phase: "pre_send", Class: "invalid", Message: "Authorization: Bearer [redacted]"},
		},
	} {
		if diff := cmp.Diff(c.want, *Broken(&c.e, provider.Secret{})); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		seconds, millis, date string
		want                  time.Duration
	}{
		{"", "", "", 0},
		{"5", "", "", 5 * time.Second},
		{" 5 ", "", "", 5 * time.Second},
		{"0", "", "", 0},
		{"1.5", "", "", 1500 * time.Millisecond},
		{"0.0004", "", "", 400 * time.Microsecond},
		{"-5", "", "", 0},
		{"+5", "", "", 0},
		{"5s", "", "", 0},
		{"0x10", "", "", 0},
		{"1e3", "", "", 0},
		{"NaN", "", "", 0},
		{"Inf", "", "", 0},
		{"1.2.3", "", "", 0},
		{".", "", "", 0},
		{"soon", "", "", 0},
		{"86400", "", "", 24 * time.Hour},
		{"86401", "", "", 24 * time.Hour},
		{"999999999999999999999999999", "", "", 24 * time.Hour},
		{strings.Repeat("9", 5000), "", "", 24 * time.Hour},
		{"", "250", "", 250 * time.Millisecond},
		{"1", "1200", "", 1200 * time.Millisecond},
		{"2", "1200", "", 2 * time.Second},
		{"2", "-1", "", 2 * time.Second},
		{"Sun, 01 Mar 2026 12:00:07 GMT", "", "", 7 * time.Second},
		{"Sun, 01 Mar 2026 11:59:00 GMT", "", "", 0},
		{"Sun, 01 Mar 2030 12:00:07 GMT", "", "", 24 * time.Hour},
		{"Sun, 01 Mar 2026 12:00:07 GMT", "", "Sun, 01 Mar 2026 12:00:04 GMT", 3 * time.Second},
		{"Sun, 01 Mar 2026 12:00:07 GMT", "", "never", 7 * time.Second},
		{"Sunday, 01-Mar-26 12:00:07 GMT", "", "", 7 * time.Second},
		{"Sun, 31 Feb 2026 12:00:07 GMT", "", "", 0},
	} {
		h := http.Header{}
		for name, v := range map[string]string{"Retry-After": c.seconds, "Retry-After-Ms": c.millis, "Date": c.date} {
			if v != "" {
				h.Set(name, v)
			}
		}
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("%.40q %q %q: %v, not %v", c.seconds, c.millis, c.date, got, c.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"5", "1.5", "-1", "Sun, 01 Mar 2026 12:00:07 GMT", "99999999999999", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d := retryAfter(http.Header{"Retry-After": {s}, "Retry-After-Ms": {s}}, time.Unix(1772366400, 0))
		if d < 0 || d > libctx.MaxRetryAfter {
			t.Fatalf("%q: %v", s, d)
		}
	})
}

func TestRedact(t *testing.T) {
	key := provider.NewSecret("hush-hush-key")
	for in, want := range map[string]string{
		"the key hush-hush-key is wrong":                      "the key [redacted] is wrong",
		`{"headers":{"Authorization":"Bearer abcdef"}}`:       `{"headers":{"Authorization":"Bearer [redacted]"}}`,
		"authorization: Basic dXNlcjpwYXNz; x":                "authorization: Basic [redacted]; x",
		"Proxy-Authorization=abc":                             "Proxy-Authorization=[redacted]",
		"bearer eyJhbGciOiJIUzI1NiJ9.e30.abc was refused":     "bearer [redacted] was refused",
		"a bearer token is needed":                            "a bearer token is needed",
		"key sk-proj-abc_def-1234567890 given":                "key [redacted] given",
		"api_key=abc123, x":                                   "api_key=[redacted], x",
		`"apiKey": "abc123"`:                                  `"apiKey": "[redacted]"`,
		"AIzaSyA1234567890abcdefghijklmnopqrstu is not valid": "[redacted] is not valid",
		"nothing here":                                        "nothing here",
	} {
		if got := Redact(in, key); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
}

// The page lists every word, and no other.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/model-openai.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^   \\| `([a-z_]+)` \\| (.*) \\|$").FindAllStringSubmatch(string(page), -1) {
		for _, w := range strings.Fields(row[2]) {
			documented[strings.Trim(w, "`")] = row[1]
		}
	}
	if diff := cmp.Diff(words, documented); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"x","type":"y","code":5,"status":"Z"}}`), 429)
	f.Add([]byte(`{"error":"x"}`), 500)
	f.Add([]byte(`{"detail":[1]}`), 422)
	f.Add([]byte("\xff\x00<html>"), 200)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		if status < 100 || status > 999 {
			return
		}
		e := &transport.Error{Phase: "provider", Kind: errdefs.Provider, Status: status, Refused: true, Body: body, Err: errors.New("x")}
		if _, err := modelwire.MarshalFrame(&modelwire.Error{Failure: *Broken(e, provider.NewSecret("k"))}); err != nil {
			t.Fatal(err)
		}
	})
}
