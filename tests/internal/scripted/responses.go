package scripted

import (
	"fmt"
	"strings"
)

// OpenAIResponses is OpenAI's newer format; a text comes behind encrypted reasoning.
var OpenAIResponses = &Format{Name: "openai.responses", Said: responsesSaid}

func responsesSaid(text []string, calls []Call, reason string) []string {
	var events []string
	say := func(kind, members string) {
		events = append(events, Event(kind, fmt.Sprintf(`{"type":%s,"sequence_number":%d,%s}`, quote(kind), len(events), members)))
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
			`{"id":"it_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":`+quote(all)+`,"annotations":[]}]}`,
			func(where string) {
				say("response.content_part.added", where+`"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`)
				for _, piece := range text {
					say("response.output_text.delta", where+`"content_index":0,"delta":`+quote(piece))
				}
				say("response.output_text.done", where+`"content_index":0,"text":`+quote(all))
			})
	}
	for _, c := range calls {
		half := len(c.Arguments) / 2
		for half > 0 && c.Arguments[half]&0xC0 == 0x80 {
			half--
		}
		call := func(arguments, status string) string {
			return fmt.Sprintf(`{"id":"it_%d","type":"function_call","call_id":%s,"name":%s,"arguments":%s,"status":%q}`, len(output), quote(c.ID), quote(c.Name), quote(arguments), status)
		}
		item(call("", "in_progress"), call(c.Arguments, "completed"), func(where string) {
			say("response.function_call_arguments.delta", where+`"delta":`+quote(c.Arguments[:half]))
			say("response.function_call_arguments.delta", where+`"delta":`+quote(c.Arguments[half:]))
			say("response.function_call_arguments.done", where+`"arguments":`+quote(c.Arguments))
		})
	}
	kind, status, details := "response.completed", "completed", "null"
	if reason != "" && reason != "completed" {
		kind, status, details = "response.incomplete", "incomplete", `{"reason":`+quote(reason)+`}`
	}
	say(kind, fmt.Sprintf(`"response":{"id":"resp_1","object":"response","status":%q,"error":null,"incomplete_details":%s,"output":[%s],"usage":{"input_tokens":14,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":19}}`,
		status, details, strings.Join(output, ",")))
	return events
}
