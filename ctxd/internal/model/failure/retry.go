package failure

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"cortexfs.org/libctx"
)

// retryAfter is the wait a provider asks for: the longer one of Retry-After-Ms
// and Retry-After, each a number or (the latter) a date. A wait over
// libctx.MaxRetryAfter is that; zero, a past date, a negative number and
// anything else is none. A date counts from the answer's own Date, so that no
// clock but the provider's matters.
func retryAfter(h http.Header, now time.Time) time.Duration {
	return max(number(h.Get("Retry-After-Ms"), time.Millisecond), number(h.Get("Retry-After"), time.Second), date(h, now))
}

// number reads digits with an optional fraction.
func number(s string, unit time.Duration) time.Duration {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789.") != "" {
		return 0
	}
	n, err := strconv.ParseFloat(s, 64)
	if n > float64(libctx.MaxRetryAfter/unit) {
		return libctx.MaxRetryAfter // also of digits without end
	}
	if err != nil {
		return 0
	}
	wait := time.Duration(n * float64(unit))
	if float64(wait) < n*float64(unit) {
		wait++ // never shorter than what was asked for
	}
	return wait
}

func date(h http.Header, now time.Time) time.Duration {
	at, err := http.ParseTime(h.Get("Retry-After"))
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return min(max(0, at.Sub(now)), libctx.MaxRetryAfter)
}
