// Package failure turns what is known of a request that failed into a
// modelwire.Failure: the facts first (phase, status, the provider's own code
// word), a provider's sentence only where it gives no better sign that the
// prompt was too long. The table is in docs/reference/model-openai.md. It is
// the same for every wire format and does no I/O.
package failure

import (
	"fmt"
	"time"

	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
)

// Broken is the failure behind an error of the transport. The key is taken out
// of whatever the provider said.
func Broken(e *transport.Error, key provider.Secret) *modelwire.Failure {
	if e.Refused {
		return refused(e, key)
	}
	class := modelwire.ClassOther
	switch {
	case e.Kind == errdefs.TooBig:
		class = modelwire.ClassLimit
	case e.Kind == errdefs.Cancelled:
	case e.Phase == modelwire.PhasePreSend:
		class = modelwire.ClassInvalid
	case e.Phase == modelwire.PhaseConnect, e.Phase == modelwire.PhaseHeaders:
		class = modelwire.ClassNetwork
	case e.Phase == modelwire.PhaseBody, e.Phase == modelwire.PhaseDecode:
		class = modelwire.ClassInterrupted
	}
	kind := e.Kind
	if kind == errdefs.TooBig { // the answer is, which is the provider's doing
		kind = errdefs.Provider
	}
	return opened(modelwire.Fail(kind, e.Phase, class, "%s", Redact(e.Error(), key)), e.Status)
}

// refused is an answer that was no event stream.
func refused(e *transport.Error, key provider.Secret) *modelwire.Failure {
	report, message := told(e)
	class := classify(report, e.Status)
	f := modelwire.Fail(codeOf(class, report, e.Status), e.Phase, class, "%s", Redact(message, key))
	return opened(After(f.WithCode(Redact(report.word(), key)), retryAfter(e.Header, time.Now())), e.Status)
}

// After adds the wait a provider asks for, to the words for people too.
func After(f *modelwire.Failure, wait time.Duration) *modelwire.Failure {
	if f.WithRetryAfter(wait); f.RetryAfterMS == 0 {
		return f
	}
	words := fmt.Sprintf(" (retry in %d s)", (f.RetryAfterMS+999)/1000)
	if len(f.Message)+len(words) <= libctx.MaxFailureText {
		f.Message += words
	}
	return f
}

// Said is the failure that a provider reports in an answer that began well, with
// this status.
func Said(r Report, status int, key provider.Secret) *modelwire.Failure {
	class := classify(r, status)
	f := modelwire.Fail(codeOf(class, r, status), modelwire.PhaseProvider, class, "%s", Redact(r.Message, key))
	return opened(f.WithCode(Redact(r.word(), key)), status)
}

// opened adds the status, and what it says of the usage: a request that was
// answered, or lost behind a gateway, may have cost something.
func opened(f *modelwire.Failure, status int) *modelwire.Failure {
	f.Status = status
	f.Accepted = status >= 200 && status <= 299 || status >= 500 || status == 408
	return f
}

// codeOf is the kind a class of failures has.
func codeOf(class string, r Report, status int) errdefs.Kind {
	switch class {
	case modelwire.ClassContext:
		return errdefs.TooMuch
	case modelwire.ClassAuth:
		return errdefs.Denied
	case modelwire.ClassLimit:
		return errdefs.TooBig
	case modelwire.ClassInvalid:
		if status == 404 || r.word() == "model_not_found" {
			return errdefs.NotFound
		}
		return errdefs.Invalid
	}
	return errdefs.Provider
}
