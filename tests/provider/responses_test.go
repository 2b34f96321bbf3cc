package provider

import (
	"fmt"
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
	said: func(text []string, calls []scripted.Call, reason string) []string {
		var events []string
		say := func(kind, members string) {
			events = append(events, event(kind, fmt.Sprintf(`{"type":%s,"sequence_number":%d,%s}`, quoted(kind), len(events), members)))
		}
		var output []string
		item := func(begun, whole string, inner func(where string)) {
			index := len(output)
			say("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, index, begun))
			inner(fmt.Sprintf(`"output_index":%d,"item_id":"it_%d",`, index, index))
			say("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, index, whole))
			output = append(output, whole)
		}
		say("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"output":[],"usage":null}`)
		if len(text) > 0 {
			item(`{"id":"it_0","type":"reasoning","summary":[],"encrypted_content":"half"}`, `{"id":"it_0","type":"reasoning","summary":[],"encrypted_content":"Sig=="}`, func(string) {})
			all := strings.Join(text, "")
			item(`{"id":"it_1","type":"message","role":"assistant","status":"in_progress","content":[]}`,
				`{"id":"it_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":`+quoted(all)+`,"annotations":[]}]}`,
				func(where string) {
					say("response.content_part.added", where+`"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`)
					for _, piece := range text {
						say("response.output_text.delta", where+`"content_index":0,"delta":`+quoted(piece))
					}
					say("response.output_text.done", where+`"content_index":0,"text":`+quoted(all))
				})
		}
		for _, c := range calls {
			half := len(c.Arguments) / 2
			for half > 0 && c.Arguments[half]&0xC0 == 0x80 {
				half--
			}
			call := func(arguments, status string) string {
				return fmt.Sprintf(`{"id":"it_%d","type":"function_call","call_id":%s,"name":%s,"arguments":%s,"status":%q}`, len(output), quoted(c.ID), quoted(c.Name), quoted(arguments), status)
			}
			item(call("", "in_progress"), call(c.Arguments, "completed"), func(where string) {
				say("response.function_call_arguments.delta", where+`"delta":`+quoted(c.Arguments[:half]))
				say("response.function_call_arguments.delta", where+`"delta":`+quoted(c.Arguments[half:]))
				say("response.function_call_arguments.done", where+`"arguments":`+quoted(c.Arguments))
			})
		}
		kind, status, details := "response.completed", "completed", "null"
		if reason != "" && reason != "completed" {
			kind, status, details = "response.incomplete", "incomplete", `{"reason":`+quoted(reason)+`}`
		}
		say(kind, fmt.Sprintf(`"response":{"id":"resp_1","object":"response","status":%q,"error":null,"incomplete_details":%s,"output":[%s],"usage":{"input_tokens":14,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":19}}`,
			status, details, strings.Join(output, ",")))
		return events
	},
	tail:  1,
	text:  event("response.output_text.delta", `{"type":"response.output_text.delta","item_id":"it_0","output_index":0,"content_index":0,"delta":"x"}`),
	fails: event("error", `{"type":"error","code":"server_is_overloaded","message":"busy `+key+`","param":null}`),
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
