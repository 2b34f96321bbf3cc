package failure

import (
	"bytes"
	"mime"
	"regexp"
	"strings"

	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx/wire"
)

// told is what a refusing answer says. Of a web page that is its title: the rest
// is for browsers.
func told(e *transport.Error) Report {
	kind, _, _ := mime.ParseMediaType(e.Header.Get("Content-Type"))
	begin := bytes.ToLower(bytes.TrimSpace(e.Body[:min(len(e.Body), 256)]))
	if kind != "text/html" && !bytes.HasPrefix(begin, []byte("<!doctype html")) && !bytes.HasPrefix(begin, []byte("<html")) {
		return Parse(e.Body)
	}
	message := "a web page came, not an answer"
	if e.Status < 200 || e.Status > 299 {
		message = e.Error() + ", with a web page"
	}
	if m := title.FindSubmatch(e.Body); m != nil {
		if text := strings.Join(strings.Fields(wire.Clean(m[1])), " "); text != "" {
			message += ": " + text
		}
	}
	return Report{Message: message}
}

var title = regexp.MustCompile(`(?is)<title[^>]{0,200}>([^<]{1,300})`)
