package provider

import (
	"fmt"
	"net/http"

	"cortexfs.org/tests/internal/scripted"
)

// googleGenerate is Google's format.
var googleGenerate = &dialect{
	format: "google.generate",
	path:   "/v1beta/models/vendor/m:1:streamGenerateContent",
	key:    func(h http.Header) string { return h.Get("X-Goog-Api-Key") },
	said:   scripted.GoogleGenerate.Said,
	tail:   1,
	text:   scripted.GoogleEvent(`{"text":"x"}`, ""),
	fails:  scripted.Event("", `{"error":{"code":503,"message":"busy `+key+`","status":"UNAVAILABLE"}}`),
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
