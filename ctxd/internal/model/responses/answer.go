package responses

import (
	"bytes"
	"strings"

	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/ctxd/internal/model/failure"
	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3/responses"
)

// answer collects the events of one answer.
type answer struct {
	*compose.Answer
	request *modelwire.Generate
	key     provider.Secret
	items   []*item
	parts   []*compose.Part // texts and calls, in the order of the message
	refusal bool            // a text is one
	end     string          // the canonical word for how the answer ended; "" until then
}

// event takes one event. What it says wrongly, or of a failure, is a
// *modelwire.Failure. Events of types that are not listed here say nothing that
// the items and the last event do not.
func (a *answer) event(ev transport.Event) error {
	data := jsontext.Value(bytes.TrimSpace(ev.Data))
	kind := kindOf(ev)
	switch {
	case kind == refused:
		return a.lost(data)
	case len(data) == 0:
		return nil
	case data.Kind() != '{' || !data.IsValid(jsontext.AllowDuplicateNames(true)):
		return wrong("an event of the answer is no event of a response")
	}
	switch kind {
	case completed, incomplete, failed:
		return a.last(kind, data)
	case "response.output_item.added":
		var e responses.ResponseOutputItemAddedEvent
		if e.UnmarshalJSON(data) != nil {
			return wrong("an item of the answer can not be read")
		}
		_, err := a.begin(e.OutputIndex, &e.Item)
		return err
	case "response.output_item.done":
		var e responses.ResponseOutputItemDoneEvent
		if e.UnmarshalJSON(data) != nil {
			return wrong("an item of the answer can not be read")
		}
		return a.done(e.OutputIndex, &e.Item)
	}
	return a.pieces(kind, data)
}

// pieces takes an event about a part of an item: a piece of it, or all of it.
func (a *answer) pieces(kind string, data jsontext.Value) error {
	var err error
	switch kind {
	case "response.output_text.delta":
		var e responses.ResponseTextDeltaEvent
		if err = e.UnmarshalJSON(data); err == nil {
			return a.piece(place{e.OutputIndex, e.ItemID, text, e.ContentIndex}, e.Delta)
		}
	case "response.output_text.done":
		var e responses.ResponseTextDoneEvent
		if err = e.UnmarshalJSON(data); err == nil {
			return a.whole(place{e.OutputIndex, e.ItemID, text, e.ContentIndex}, e.Text)
		}
	case "response.refusal.delta":
		var e responses.ResponseRefusalDeltaEvent
		if err = e.UnmarshalJSON(data); err == nil {
			return a.piece(place{e.OutputIndex, e.ItemID, refusal, e.ContentIndex}, e.Delta)
		}
	case "response.refusal.done":
		var e responses.ResponseRefusalDoneEvent
		if err = e.UnmarshalJSON(data); err == nil {
			return a.whole(place{e.OutputIndex, e.ItemID, refusal, e.ContentIndex}, e.Refusal)
		}
	case "response.reasoning_summary_text.delta":
		var e responses.ResponseReasoningSummaryTextDeltaEvent
		if err = e.UnmarshalJSON(data); err == nil {
			return a.piece(place{e.OutputIndex, e.ItemID, summary, e.SummaryIndex}, e.Delta)
		}
	case "response.reasoning_summary_text.done":
		var e responses.ResponseReasoningSummaryTextDoneEvent
		if err = e.UnmarshalJSON(data); err == nil {
			return a.whole(place{e.OutputIndex, e.ItemID, summary, e.SummaryIndex}, e.Text)
		}
	case "response.reasoning_text.delta":
		var e responses.ResponseReasoningTextDeltaEvent
		if err = e.UnmarshalJSON(data); err == nil {
			return a.piece(place{e.OutputIndex, e.ItemID, thought, e.ContentIndex}, e.Delta)
		}
	case "response.reasoning_text.done":
		var e responses.ResponseReasoningTextDoneEvent
		if err = e.UnmarshalJSON(data); err == nil {
			return a.whole(place{e.OutputIndex, e.ItemID, thought, e.ContentIndex}, e.Text)
		}
	case "response.function_call_arguments.delta":
		var e responses.ResponseFunctionCallArgumentsDeltaEvent
		if err = e.UnmarshalJSON(data); err == nil {
			return a.arguments(e.OutputIndex, e.ItemID, e.Delta, false)
		}
	case "response.function_call_arguments.done":
		var e responses.ResponseFunctionCallArgumentsDoneEvent
		if err = e.UnmarshalJSON(data); err == nil {
			return a.arguments(e.OutputIndex, e.ItemID, e.Arguments, true)
		}
	}
	if err != nil {
		return wrong("a piece of the answer can not be read")
	}
	return nil
}

// last takes the event that ends the answer.
func (a *answer) last(kind string, data jsontext.Value) error {
	var r responses.Response
	var err error
	switch kind {
	case completed:
		var e responses.ResponseCompletedEvent
		err = e.UnmarshalJSON(data)
		r = e.Response
	case incomplete:
		var e responses.ResponseIncompleteEvent
		err = e.UnmarshalJSON(data)
		r = e.Response
	case failed:
		var e responses.ResponseFailedEvent
		err = e.UnmarshalJSON(data)
		r = e.Response
	}
	if err != nil || !strings.HasPrefix(r.RawJSON(), "{") {
		return wrong("the last event of the answer has no response")
	}
	a.SetUsage(usageOf(r.Usage))
	// Some servers have one last event for every end; the status tells them apart.
	switch {
	case kind == failed, r.Status == responses.ResponseStatusFailed, r.Status == responses.ResponseStatusCancelled:
		return a.failed(&r)
	case kind == incomplete, r.Status == responses.ResponseStatusIncomplete:
		a.end = modelwire.StopLength
		if r.IncompleteDetails.Reason == "content_filter" {
			a.end = modelwire.StopFiltered
		}
	default:
		a.end = modelwire.StopEnd
	}
	if len(a.items) > 0 {
		return nil
	}
	// A server that streams nothing but the end.
	for i := range r.Output {
		if err := a.done(int64(i), &r.Output[i]); err != nil {
			return err
		}
	}
	return nil
}

// ended says what the end of the stream makes of the answer.
func (a *answer) ended(broken *transport.Error) error {
	if broken != nil {
		return a.Fail(failure.Broken(broken, a.key))
	}
	return a.finish()
}

// finish ends an answer whose last event has come.
func (a *answer) finish() error {
	for _, it := range a.items {
		if it.kind != itemCall {
			continue
		}
		if !it.all && a.end == modelwire.StopEnd {
			return a.Fail(wrong("a call of the answer has no end"))
		}
		if err := a.name(it); err != nil {
			return err
		}
	}
	stop := a.end
	switch {
	case stop != modelwire.StopEnd:
	case a.Calls() > 0:
		stop = modelwire.StopToolCalls
	case a.refusal:
		stop = modelwire.StopRefusal
	}
	return a.Finish(stop, compose.Pack(a.request, a.marks()))
}

func wrong(why string) *modelwire.Failure {
	return modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassInterrupted, "%s", why)
}
