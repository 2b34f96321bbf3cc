package provider

import (
	"fmt"
	"net/http"
	"strings"

	"cortexfs.org/tests/internal/scripted"
)

// googleGenerate is Google's format.
var googleGenerate = &dialect{
	format: "google.generate",
	path:   "/v1beta/models/vendor/m:1:streamGenerateContent",
	key:    func(h http.Header) string { return h.Get("X-Goog-Api-Key") },
	said: func(text []string, calls []scripted.Call, reason string) []string {
		var events []string
		for _, piece := range text {
			events = append(events, googleEvent(`{"text":`+quoted(piece)+`}`, ""))
		}
		var parts []string
		for i, c := range calls {
			signature := ""
			if i == 0 {
				signature = `,"thoughtSignature":"Sig-_=="`
			}
			parts = append(parts, fmt.Sprintf(`{"functionCall":{"id":%s,"name":%s,"args":%s}%s}`, quoted(c.ID), quoted(c.Name), c.Arguments, signature))
		}
		if len(parts) > 0 {
			events = append(events, googleEvent(strings.Join(parts, ","), ""))
		}
		if reason == "" {
			reason = "STOP"
		}
		return append(events, googleEvent(`{"text":""}`, reason))
	},
	tail:  1,
	text:  googleEvent(`{"text":"x"}`, ""),
	fails: event("", `{"error":{"code":503,"message":"busy `+key+`","status":"UNAVAILABLE"}}`),
	refused: func(status int, word, sentence string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%s}}`, status, quoted(sentence), quoted(word))
	},
	words: map[string]string{
		"auth": "UNAUTHENTICATED", "invalid": "INVALID_ARGUMENT", "limit": "RESOURCE_EXHAUSTED", "overloaded": "UNAVAILABLE", "none": "NOT_FOUND",
		"long": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
	},
	reasons: map[string]string{
		"STOP": "end", "MAX_TOKENS": "length", "SAFETY": "filtered", "RECITATION": "filtered", "BLOCKLIST": "filtered", "PROHIBITED_CONTENT": "filtered",
		"SPII": "filtered", "IMAGE_SAFETY": "filtered", "MALFORMED_FUNCTION_CALL": "other", "UNEXPECTED_TOOL_CALL": "other", "LANGUAGE": "other", "OTHER": "other", "BORED": "other",
	},
	sent: []string{
		`{"contents":[{"parts":[{"text":"hello"}],"role":"user"}],"generationConfig":{"maxOutputTokens":77,"temperature":0},"systemInstruction":{"parts":[{"text":"be good"}],"role":"user"},"tools":[{"functionDeclarations":[{"name":"fs__read","parametersJsonSchema":{"type":"object"}},{"name":"tsh","parametersJsonSchema":{"type":"object"}}]}]}`,
		`{"contents":[{"parts":[{"text":"hello"}],"role":"user"},{"parts":[{"text":"I read."},{"functionCall":{"args":{"n":12345678901234567890,"path":"a"},"id":"call-2-1","name":"fs__read"},"thoughtSignature":"Sig-_=="}],"role":"model"},{"parts":[{"functionResponse":{"id":"call-2-1","name":"fs__read","response":{"output":"content"}}}],"role":"user"}],"generationConfig":{"maxOutputTokens":77,"temperature":0},"systemInstruction":{"parts":[{"text":"be good"}],"role":"user"},"tools":[{"functionDeclarations":[{"name":"fs__read","parametersJsonSchema":{"type":"object"}},{"name":"tsh","parametersJsonSchema":{"type":"object"}}]}]}`,
	},
}

// googleEvent is a response with these parts; a reason makes it the last one.
func googleEvent(parts, reason string) string {
	usage := `{"promptTokenCount":14,"totalTokenCount":14}`
	if reason != "" {
		reason = `,"finishReason":` + quoted(reason)
		usage = `{"promptTokenCount":14,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":19}`
	}
	return event("", `{"candidates":[{"content":{"parts":[`+parts+`],"role":"model"},"index":0`+reason+`}],"usageMetadata":`+usage+`,"modelVersion":"m","responseId":"r"}`)
}
