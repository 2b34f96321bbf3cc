package google

import (
	"time"

	"cortexfs.org/ctxd/internal/model/failure"
	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// refusal is the failure behind an error of the transport.
func refusal(e *transport.Error, key provider.Secret) *modelwire.Failure {
	return refined(failure.Broken(e, key), e.Body, key)
}

// reported is the failure that an event of an answer reports.
func reported(raw []byte, status int, key provider.Secret) *modelwire.Failure {
	return refined(failure.Said(failure.Parse(raw), status, key), raw, key)
}

// refined adds what Google says in places of its own: its word beside the
// number, how long to wait, and that a wrong request is one with a wrong key.
func refined(f *modelwire.Failure, body []byte, key provider.Secret) *modelwire.Failure {
	var said struct {
		Error struct {
			Status  string `json:"status"`
			Details []struct {
				Type   string `json:"@type"`
				Reason string `json:"reason"`
				Delay  string `json:"retryDelay"`
			} `json:"details"`
		} `json:"error"`
	}
	if jsontext.Value(body).Kind() != '{' || json.Unmarshal(body, &said, jsontext.AllowDuplicateNames(true)) != nil {
		return f
	}
	if said.Error.Status != "" {
		f = f.WithCode(failure.Redact(said.Error.Status, key))
	}
	for _, d := range said.Error.Details {
		if d.Reason == "API_KEY_INVALID" {
			f.Class, f.Code = modelwire.ClassAuth, errdefs.Denied
		}
		if wait, err := time.ParseDuration(d.Delay); err == nil && f.RetryAfterMS == 0 {
			f = failure.After(f, wait)
		}
	}
	return f
}
