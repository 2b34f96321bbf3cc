package modelwire

import (
	"fmt"
	"slices"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/wire"
)

// The phases of a request, in the order in which it passes them.
const (
	PhasePreSend  = "pre_send" // nothing was sent to anybody
	PhaseConnect  = "connect"  // name, connection, TLS
	PhaseHeaders  = "headers"  // the request went out, or some of it
	PhaseBody     = "body"     // the answer's headers are in
	PhaseDecode   = "decode"   // the answer is not what its format says
	PhaseProvider = "provider" // the provider said so itself
)

// The classes of failures, by what can be done about them
// (docs/reference/model.md).
const (
	ClassContext     = "context_overflow"
	ClassRateLimit   = "rate_limit"
	ClassOverloaded  = "overloaded"
	ClassServer      = "server"
	ClassAuth        = "auth"
	ClassQuota       = "quota"
	ClassPolicy      = "policy"
	ClassInvalid     = "invalid"
	ClassInterrupted = "interrupted"
	ClassNetwork     = "network"
	ClassLimit       = "limit"
	ClassOther       = "other"
)

var (
	phases  = []string{PhasePreSend, PhaseConnect, PhaseHeaders, PhaseBody, PhaseDecode, PhaseProvider}
	classes = []string{
		ClassContext, ClassRateLimit, ClassOverloaded, ClassServer, ClassAuth, ClassQuota, ClassPolicy, ClassInvalid,
		ClassInterrupted, ClassNetwork, ClassLimit, ClassOther,
	}
)

// Failure says how a request failed. Clients act on all of it but Message, which
// is for people. It is an error whose kind (errdefs.KindOf) is Code.
type Failure struct {
	Code           errdefs.Kind `json:"code"`
	Phase          string       `json:"phase"`
	Status         int          `json:"status,omitzero"`          // of HTTP; 0 if there was none
	ProviderCode   string       `json:"provider_code,omitzero"`   // the provider's own word, inert
	Class          string       `json:"class"`                    // one of the classes above
	RetryAfterMS   int64        `json:"retry_after_ms,omitzero"`  // the provider asked for this wait
	GenerationSeen bool         `json:"generation_seen,omitzero"` // text, reasoning or a call came
	Accepted       bool         `json:"accepted,omitzero"`        // the provider may have begun: usage is not known
	Message        string       `json:"message"`                  // one inert line, no secrets
}

// Fail makes a failure with a text for people: one line, inert, bounded.
func Fail(code errdefs.Kind, phase, class, format string, args ...any) *Failure {
	f := &Failure{Code: code, Phase: phase, Class: class}
	f.Message = line(fmt.Sprintf(format, args...), libctx.MaxFailureText)
	return f
}

func (f *Failure) Error() string { return f.Message }

// Unwrap gives the failure its kind.
func (f *Failure) Unwrap() error { return &errdefs.Error{Kind: f.Code, Text: f.Message} }

// WithCode adds the provider's own word for the failure, made inert and bounded.
func (f *Failure) WithCode(word string) *Failure {
	f.ProviderCode = line(word, libctx.MaxProviderCode)
	return f
}

// WithRetryAfter adds the wait a provider asked for: a positive one, at most
// libctx.MaxRetryAfter; another one is none.
func (f *Failure) WithRetryAfter(d time.Duration) *Failure {
	f.RetryAfterMS = 0
	if d > 0 {
		d = min(d, libctx.MaxRetryAfter)
		f.RetryAfterMS = max(1, int64((d+time.Millisecond-1)/time.Millisecond))
	}
	return f
}

// line makes foreign text one inert line of at most max bytes.
func line(s string, max int) string {
	s, _ = clip(wire.Clean([]byte(s)), max)
	s, _ = clip(inert.Line(s), max)
	return s
}

// clip cuts a text after max bytes, characters whole.
func clip(s string, max int) (string, bool) {
	if len(s) <= max {
		return s, false
	}
	const more = "…"
	i := max - len(more)
	for i > 0 && s[i]&0xC0 == 0x80 {
		i--
	}
	return s[:i] + more, true
}

// check refuses what no failure can be.
func (f *Failure) check() error {
	switch {
	case f.Code == "":
		return missing("code")
	case !slices.Contains(phases, f.Phase):
		return errdefs.New(errdefs.Invalid, "unknown phase %.80q", f.Phase)
	case !slices.Contains(classes, f.Class):
		return errdefs.New(errdefs.Invalid, "unknown class %.80q", f.Class)
	case f.Status != 0 && (f.Status < 100 || f.Status > 999):
		return errdefs.New(errdefs.Invalid, "status %d is none of HTTP", f.Status)
	case f.RetryAfterMS < 0 || f.RetryAfterMS > libctx.MaxRetryAfter.Milliseconds():
		return errdefs.New(errdefs.Invalid, "a wait of %d ms is not from 0 to %d", f.RetryAfterMS, libctx.MaxRetryAfter.Milliseconds())
	case len(f.ProviderCode) > libctx.MaxProviderCode, len(f.Message) > libctx.MaxFailureText:
		return errdefs.New(errdefs.Invalid, "a failure's text is too long")
	}
	return nil
}
