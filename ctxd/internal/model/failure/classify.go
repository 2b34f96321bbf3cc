package failure

import (
	"strconv"
	"strings"

	"cortexfs.org/libctx/modelwire"
)

// words are the code and type words of providers, in lower case with "_"
// between, and what they mean whatever the status is.
var words = map[string]string{
	"context_length_exceeded":              modelwire.ClassContext,
	"context_window_exceeded":              modelwire.ClassContext,
	"exceed_context_size_error":            modelwire.ClassContext,
	"request_too_large":                    modelwire.ClassContext,
	"rate_limit_exceeded":                  modelwire.ClassRateLimit,
	"rate_limit_error":                     modelwire.ClassRateLimit,
	"rate_limited":                         modelwire.ClassRateLimit,
	"too_many_requests":                    modelwire.ClassRateLimit,
	"resource_exhausted":                   modelwire.ClassRateLimit,
	"overloaded":                           modelwire.ClassOverloaded,
	"overloaded_error":                     modelwire.ClassOverloaded,
	"engine_overloaded":                    modelwire.ClassOverloaded,
	"server_is_overloaded":                 modelwire.ClassOverloaded,
	"slow_down":                            modelwire.ClassOverloaded,
	"unavailable":                          modelwire.ClassOverloaded,
	"service_unavailable":                  modelwire.ClassOverloaded,
	"temporarily_unavailable":              modelwire.ClassOverloaded,
	"server_error":                         modelwire.ClassServer,
	"internal":                             modelwire.ClassServer,
	"internal_error":                       modelwire.ClassServer,
	"internal_server_error":                modelwire.ClassServer,
	"invalid_api_key":                      modelwire.ClassAuth,
	"authentication_error":                 modelwire.ClassAuth,
	"unauthenticated":                      modelwire.ClassAuth,
	"unauthorized":                         modelwire.ClassAuth,
	"permission_error":                     modelwire.ClassAuth,
	"permission_denied":                    modelwire.ClassAuth,
	"account_deactivated":                  modelwire.ClassAuth,
	"insufficient_quota":                   modelwire.ClassQuota,
	"quota_exceeded":                       modelwire.ClassQuota,
	"billing_error":                        modelwire.ClassQuota,
	"billing_not_active":                   modelwire.ClassQuota,
	"billing_hard_limit_reached":           modelwire.ClassQuota,
	"insufficient_balance":                 modelwire.ClassQuota,
	"content_policy_violation":             modelwire.ClassPolicy,
	"content_filter":                       modelwire.ClassPolicy,
	"policy_violation":                     modelwire.ClassPolicy,
	"misalignment_policy_violation":        modelwire.ClassPolicy,
	"unsupported_country_region_territory": modelwire.ClassPolicy,
	"model_not_found":                      modelwire.ClassInvalid,
	"not_found_error":                      modelwire.ClassInvalid,
}

// overflow are the phrases by which providers without a word for it say that a
// prompt is too long.
var overflow = []string{
	"context window exceed", "exceeds the context window", "context_length_exceeded", "maximum context length",
	"exceeds the available context size", "prompt is too long", "input is too long", "too many tokens", "token limit", "request_too_large",
	"exceed context limit", "exceeds the maximum number of tokens",
}

// classify says what can be done about a failure: by the code word; then, unless
// the status names a cause of its own, by the phrases of a prompt that is too
// long; then by the status; last by the type word, which is often of a whole
// family of causes.
func classify(r Report, status int) string {
	if n, err := strconv.Atoi(r.Code); err == nil && n >= 400 && n <= 599 {
		status = n // a gateway that answers 200 first has it here
	}
	if class := words[spelled(r.Code)]; class != "" {
		return class
	}
	class := words[spelled(r.Type)]
	if (status < 400 || status == 400 || status == 413 || status == 422 || status >= 500) &&
		(class == "" || class == modelwire.ClassServer) && says(r.Message, overflow) {
		return modelwire.ClassContext
	}
	if class != "" {
		return class
	}
	switch {
	case status == 401, status == 403, status == 407:
		return modelwire.ClassAuth
	case status == 402:
		return modelwire.ClassQuota
	case status == 408:
		return modelwire.ClassInterrupted
	case status == 413:
		return modelwire.ClassLimit
	case status == 429:
		return modelwire.ClassRateLimit
	case status == 503, status == 529:
		return modelwire.ClassOverloaded
	case status >= 500:
		return modelwire.ClassServer
	case status >= 400, spelled(r.Type) == "invalid_request_error":
		return modelwire.ClassInvalid
	}
	return modelwire.ClassOther
}

// spelled is a word in the form of the table.
func spelled(word string) string {
	return strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(word))
}

func says(message string, phrases []string) bool {
	message = strings.ToLower(message)
	for _, p := range phrases {
		if strings.Contains(message, p) {
			return true
		}
	}
	return false
}
