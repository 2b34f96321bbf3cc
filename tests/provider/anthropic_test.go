package provider

import (
	"net/http"

	"cortexfs.org/tests/internal/scripted"
)

// anthropicMessages is Anthropic's format.
var anthropicMessages = &dialect{
	format: "anthropic.messages",
	path:   "/v1/messages",
	key:    func(h http.Header) string { return h.Get("X-Api-Key") },
	said:   scripted.AnthropicMessages.Said,
	tail:   2,
	text:   scripted.Event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}`),
	fails:  scripted.Event("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded `+key+`"}}`),
	refused: func(_ int, word, sentence string) string {
		return `{"type":"error","error":{"type":` + quoted(word) + `,"message":` + quoted(sentence) + `},"request_id":"req_1"}`
	},
	words: map[string]string{
		"auth": "authentication_error", "invalid": "invalid_request_error", "limit": "rate_limit_error", "overloaded": "overloaded_error", "none": "not_found_error",
		"long": "prompt is too long: 210000 tokens > 200000 maximum",
	},
	reasons: map[string]string{
		"end_turn": "end", "stop_sequence": "end", "max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal",
		"pause_turn": "other", "tool_use": "other", "bored": "other",
	},
	sent: []string{
		`{"max_tokens":77,"messages":[{"content":[{"cache_control":{"type":"ephemeral"},"text":"hello","type":"text"}],"role":"user"}],"model":"vendor/m:1","stream":true,"system":[{"cache_control":{"type":"ephemeral"},"text":"be good","type":"text"}],"temperature":0,"tools":[{"input_schema":{"type":"object"},"name":"fs__read"},{"input_schema":{"type":"object"},"name":"tsh"}]}`,
		`{"max_tokens":77,"messages":[{"content":[{"cache_control":{"type":"ephemeral"},"text":"hello","type":"text"}],"role":"user"},{"content":[{"signature":"Sig==","thinking":"","type":"thinking"},{"text":"I read.","type":"text"},{"id":"call-2-1","input":{"n":12345678901234567890,"path":"a"},"name":"fs__read","type":"tool_use"}],"role":"assistant"},{"content":[{"cache_control":{"type":"ephemeral"},"content":[{"text":"content","type":"text"}],"tool_use_id":"call-2-1","type":"tool_result"}],"role":"user"}],"model":"vendor/m:1","stream":true,"system":[{"cache_control":{"type":"ephemeral"},"text":"be good","type":"text"}],"temperature":0,"tools":[{"input_schema":{"type":"object"},"name":"fs__read"},{"input_schema":{"type":"object"},"name":"tsh"}]}`,
	},
}
