package failure

import (
	"regexp"

	"cortexfs.org/ctxd/internal/model/hide"
	"cortexfs.org/libctx/provider"
)

// bearing are the ways credentials look in what servers send back: a header or
// its value, and words with the usual beginnings of keys.
var bearing = []*regexp.Regexp{
	regexp.MustCompile(`(?i)((?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token)\s+)?)[^\s"',;}]+`),
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=*-]{8,}`),
	regexp.MustCompile(`(?i)((?:api[-_]?key|access[-_]?token)["']?\s*[:=]\s*["']?)[^\s"',;}]+`),
	regexp.MustCompile(`()\b(?:sk|rk|pk|gsk|xai|key)[-_][-_A-Za-z0-9*.]{8,}`),
	regexp.MustCompile(`()\bAIza[-_A-Za-z0-9]{20,}`),
}

// Redact takes a key, and everything that looks like one, out of a text. It looks
// at the text once: never at what it put in.
func Redact(text string, key provider.Secret) string {
	spans := hide.New(key).Find(text)
	for _, r := range bearing {
		for _, at := range r.FindAllStringSubmatchIndex(text, -1) {
			spans = append(spans, hide.Span{From: at[3], To: at[1]}) // behind the group
		}
	}
	return hide.Replace(text, hide.Merge(spans))
}
