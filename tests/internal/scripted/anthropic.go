package scripted

import (
	"fmt"
)

// AnthropicMessages is Anthropic's format; a text comes behind thinking that is signed.
var AnthropicMessages = &Format{Name: "anthropic.messages", Said: anthropicSaid}

func anthropicSaid(text []string, calls []Call, reason string) []string {
	events := []string{Event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":0,"output_tokens":1}}}`), Event("ping", `{"type":"ping"}`)}
	index := 0
	block := func(start string, deltas ...string) {
		events = append(events, Event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, start)))
		for _, d := range deltas {
			events = append(events, Event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, d)))
		}
		events = append(events, Event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index)))
		index++
	}
	if len(text) > 0 {
		block(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"signature_delta","signature":"Sig=="}`)
		var deltas []string
		for _, piece := range text {
			deltas = append(deltas, `{"type":"text_delta","text":`+quote(piece)+`}`)
		}
		block(`{"type":"text","text":""}`, deltas...)
	}
	for _, c := range calls {
		half := len(c.Arguments) / 2
		for half > 0 && c.Arguments[half]&0xC0 == 0x80 {
			half--
		}
		block(fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":{}}`, quote(c.ID), quote(c.Name)),
			`{"type":"input_json_delta","partial_json":""}`, `{"type":"input_json_delta","partial_json":`+quote(c.Arguments[:half])+`}`, `{"type":"input_json_delta","partial_json":`+quote(c.Arguments[half:])+`}`)
	}
	switch {
	case reason != "":
	case len(calls) > 0:
		reason = "tool_use"
	default:
		reason = "end_turn"
	}
	return append(events, Event("message_delta", `{"type":"message_delta","delta":{"stop_reason":`+quote(reason)+`,"stop_sequence":null},"usage":{"output_tokens":5}}`), Event("message_stop", `{"type":"message_stop"}`))
}
