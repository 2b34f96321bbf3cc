package responses

import (
	"cortexfs.org/ctxd/internal/model/failure"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3/responses"
)

// classes are of the code words that only this format has.
var classes = map[string]string{
	"bio_policy":                     modelwire.ClassPolicy,
	"cyber_policy":                   modelwire.ClassPolicy,
	"image_content_policy_violation": modelwire.ClassPolicy,
	"data_residency_mismatch":        modelwire.ClassInvalid,
	"invalid_prompt":                 modelwire.ClassInvalid,
}

// lost is the failure of an event that says nothing else.
func (a *answer) lost(data jsontext.Value) error {
	r := failure.Parse(data)
	if r.Type == refused {
		r.Type = "" // the event's own
	}
	return a.report(r)
}

// failed is the failure that ends a response.
func (a *answer) failed(r *responses.Response) error {
	what := failure.Report{Message: "the provider gave the answer up"}
	if e := r.Error; e.Code != "" || e.Message != "" {
		what = failure.Report{Code: string(e.Code), Type: e.Type, Message: e.Message}
	}
	return a.report(what)
}

func (a *answer) report(r failure.Report) error {
	f := failure.Said(r, a.Status(), a.key)
	if class := classes[r.Code]; class != "" {
		if f.Class = class; class == modelwire.ClassInvalid {
			f.Code = errdefs.Invalid
		}
	}
	return f
}
