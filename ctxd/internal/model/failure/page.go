package failure

import (
	"bytes"
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// told is what a refusing answer says: the provider's report, and the words for
// people, which begin with the status and say what kind of answer it was, if that
// was not one.
func told(e *transport.Error) (r Report, message string) {
	kind, _, _ := mime.ParseMediaType(e.Header.Get("Content-Type"))
	coding := e.Header.Get("Content-Encoding")
	well := e.Status >= 200 && e.Status <= 299
	what := ""
	switch {
	case coding != "" && !strings.EqualFold(coding, "identity"):
		what = fmt.Sprintf("the answer is compressed (%.40s), which nobody asked for", coding)
	case isPage(kind, e.Body):
		// Of a web page its title: the rest is for browsers.
		what = "a web page came, not an answer" + titled(e.Body)
	case e.Status >= 300 && e.Status <= 399:
		what = "the provider redirects" + target(e.Header) + ", which is not followed"
	default:
		r = Parse(e.Body)
		if well {
			what = fmt.Sprintf("the answer is %.80s, not an event stream", cmp.Or(kind, "of no type"))
		}
		if well && jsontext.Value(e.Body).Kind() == '{' && r.Message == strings.TrimSpace(wire.Clean(e.Body)) {
			break // an answer, in another form than it was asked for
		}
		if r.Message != "" && what != "" {
			what += ": "
		}
		what += r.Message
	}
	status := fmt.Sprintf("HTTP %d", e.Status)
	if what != "" {
		return r, status + ": " + what
	}
	return r, strings.TrimSpace(status + " " + http.StatusText(e.Status))
}

func isPage(kind string, body []byte) bool {
	begin := bytes.ToLower(bytes.TrimSpace(body[:min(len(body), 256)]))
	return kind == "text/html" || bytes.HasPrefix(begin, []byte("<!doctype html")) || bytes.HasPrefix(begin, []byte("<html"))
}

func titled(body []byte) string {
	m := title.FindSubmatch(body)
	if m == nil {
		return ""
	}
	if text := strings.Join(strings.Fields(wire.Clean(m[1])), " "); text != "" {
		return ": " + text
	}
	return ""
}

var title = regexp.MustCompile(`(?is)<title[^>]{0,200}>([^<]{1,300})`)

// target is where an answer redirects to: the host alone, for the rest may hold
// what was sent.
func target(h http.Header) string {
	u, err := url.Parse(h.Get("Location"))
	if err != nil || u.Host == "" {
		return ""
	}
	return fmt.Sprintf(" to %.80s", wire.Clean([]byte(u.Host)))
}
