package scripted

import (
	"fmt"
	"strings"
)

// GoogleGenerate is Google's format; a first call is signed.
var GoogleGenerate = &Format{Name: "google.generate", Said: googleSaid}

func googleSaid(text []string, calls []Call, reason string) []string {
	var events []string
	for _, piece := range text {
		events = append(events, GoogleEvent(`{"text":`+quote(piece)+`}`, ""))
	}
	var parts []string
	for i, c := range calls {
		signature := ""
		if i == 0 {
			signature = `,"thoughtSignature":"Sig-_=="`
		}
		parts = append(parts, fmt.Sprintf(`{"functionCall":{"id":%s,"name":%s,"args":%s}%s}`, quote(c.ID), quote(c.Name), c.Arguments, signature))
	}
	if len(parts) > 0 {
		events = append(events, GoogleEvent(strings.Join(parts, ","), ""))
	}
	if reason == "" {
		reason = "STOP"
	}
	return append(events, GoogleEvent(`{"text":""}`, reason))
}

// GoogleEvent is a response with these parts; a reason makes it the last one.
func GoogleEvent(parts, reason string) string {
	usage := `{"promptTokenCount":14,"totalTokenCount":14}`
	if reason != "" {
		reason = `,"finishReason":` + quote(reason)
		usage = `{"promptTokenCount":14,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":19}`
	}
	return Event("", `{"candidates":[{"content":{"parts":[`+parts+`],"role":"model"},"index":0`+reason+`}],"usageMetadata":`+usage+`,"modelVersion":"m","responseId":"r"}`)
}
