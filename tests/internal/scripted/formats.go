package scripted

import "fmt"

// Format is a wire format in which a provider answers with events.
type Format struct {
	Name string // as provider files have it
	// Said is a whole answer: some text in pieces, calls, and the format's word for
	// why it ends ("" for the usual one). Each text is a whole event as it is
	// written, the last one that which ends the answer. It tells of 10 tokens of
	// input, 4 more from a cache, and 5 of output.
	Said func(text []string, calls []Call, reason string) []string
}

// Formats are all formats.
func Formats() []*Format {
	return []*Format{OpenAIChat, OpenAIResponses, AnthropicMessages, GoogleGenerate}
}

// Answer is a whole answer that ends as usual, each event in a piece of its own.
func (f *Format) Answer(text []string, calls ...Call) Answer {
	answers := []Answer{Head()}
	for _, e := range f.Said(text, calls, "") {
		answers = append(answers, Bytes(e))
	}
	return Seq(append(answers, End())...)
}

// Event is one event as it is written; kind may be "".
func Event(kind, data string) string {
	if kind == "" {
		return fmt.Sprintf("data: %s\n\n", data)
	}
	return fmt.Sprintf("event: %s\ndata: %s\n\n", kind, data)
}

// OpenAIChat is the format that most providers have.
var OpenAIChat = &Format{Name: "openai.chat", Said: chatSaid}

func chatSaid(text []string, calls []Call, reason string) []string {
	var events []string
	for _, piece := range text {
		events = append(events, Event("", Content(piece)))
	}
	for i, c := range calls {
		events = append(events, Event("", Tool(i, c.ID, c.Name, c.Arguments)))
	}
	switch {
	case reason != "":
	case len(calls) > 0:
		reason = "tool_calls"
	default:
		reason = "stop"
	}
	usage := `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":14,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens":5,"total_tokens":19}}`
	return append(events, Event("", Finish(reason)), Event("", usage), Event("", Done))
}
