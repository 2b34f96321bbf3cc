package provider

import (
	"fmt"
	"net/http"

	"cortexfs.org/tests/internal/scripted"
)

// anthropicMessages is Anthropic's format.
var anthropicMessages = &dialect{
	format: "anthropic.messages",
	path:   "/v1/messages",
	key:    func(h http.Header) string { return h.Get("X-Api-Key") },
	said: func(text []string, calls []scripted.Call, reason string) []string {
		events := []string{event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":0,"output_tokens":1}}}`), event("ping", `{"type":"ping"}`)}
		index := 0
		block := func(start string, deltas ...string) {
			events = append(events, event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, start)))
			for _, d := range deltas {
				events = append(events, event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, d)))
			}
			events = append(events, event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index)))
			index++
		}
		if len(text) > 0 {
			block(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"signature_delta","signature":"Sig=="}`)
			var deltas []string
			for _, piece := range text {
				deltas = append(deltas, `{"type":"text_delta","text":`+quoted(piece)+`}`)
			}
			block(`{"type":"text","text":""}`, deltas...)
		}
		for _, c := range calls {
			half := len(c.Arguments) / 2
			for half > 0 && c.Arguments[half]&0xC0 == 0x80 {
				half--
			}
			block(fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":{}}`, quoted(c.ID), quoted(c.Name)),
				`{"type":"input_json_delta","partial_json":""}`, `{"type":"input_json_delta","partial_json":`+quoted(c.Arguments[:half])+`}`, `{"type":"input_json_delta","partial_json":`+quoted(c.Arguments[half:])+`}`)
		}
		switch {
		case reason != "":
		case len(calls) > 0:
			reason = "tool_use"
		default:
			reason = "end_turn"
		}
		return append(events, event("message_delta", `{"type":"message_delta","delta":{"stop_reason":`+quoted(reason)+`,"stop_sequence":null},"usage":{"output_tokens":5}}`), event("message_stop", `{"type":"message_stop"}`))
	},
	tail:  2,
	text:  event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}`),
	fails: event("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded `+key+`"}}`),
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
