package provider

import (
	"net/http"
	"strings"

	"cortexfs.org/tests/internal/scripted"
)

// openaiResponses is OpenAI's newer format.
var openaiResponses = &dialect{
	format: "openai.responses",
	path:   "/responses",
	key: func(h http.Header) string {
		key, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
		return key
	},
	said:  scripted.OpenAIResponses.Said,
	tail:  1,
	text:  scripted.Event("response.output_text.delta", `{"type":"response.output_text.delta","item_id":"it_0","output_index":0,"content_index":0,"delta":"x"}`),
	fails: scripted.Event("error", `{"type":"error","code":"server_is_overloaded","message":"busy `+key+`","param":null}`),
	refused: func(_ int, word, sentence string) string {
		if word == "invalid_request_error" {
			return `{"error":{"message":` + quoted(sentence) + `,"type":"invalid_request_error","param":null,"code":null}}`
		}
		return `{"error":{"message":` + quoted(sentence) + `,"type":"invalid_request_error","param":null,"code":` + quoted(word) + `}}`
	},
	words: map[string]string{
		"auth": "invalid_api_key", "invalid": "invalid_request_error", "limit": "rate_limit_exceeded", "overloaded": "server_is_overloaded", "none": "model_not_found",
		"long": "Your input exceeds the context window of this model.",
	},
	reasons: map[string]string{
		"completed": "end", "max_output_tokens": "length", "content_filter": "filtered", "max_messages": "length", "bored": "length",
	},
	sent: []string{
		`{"include":["reasoning.encrypted_content"],"input":[{"content":"hello","role":"user"}],"instructions":"be good","max_output_tokens":77,"model":"vendor/m:1","store":false,"stream":true,"temperature":0,"tools":[{"name":"fs__read","parameters":{"type":"object"},"strict":false,"type":"function"},{"name":"tsh","parameters":{"type":"object"},"strict":false,"type":"function"}]}`,
		`{"include":["reasoning.encrypted_content"],"input":[{"content":"hello","role":"user"},{"encrypted_content":"Sig==","id":"it_0","summary":[],"type":"reasoning"},{"content":"I read.","role":"assistant"},{"arguments":"{\"n\":12345678901234567890,\"path\":\"a\"}","call_id":"call-2-1","name":"fs__read","type":"function_call"},{"call_id":"call-2-1","output":"content","type":"function_call_output"}],"instructions":"be good","max_output_tokens":77,"model":"vendor/m:1","store":false,"stream":true,"temperature":0,"tools":[{"name":"fs__read","parameters":{"type":"object"},"strict":false,"type":"function"},{"name":"tsh","parameters":{"type":"object"},"strict":false,"type":"function"}]}`,
	},
}
