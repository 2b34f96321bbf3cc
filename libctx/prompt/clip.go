package prompt

import (
	"slices"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// sizeOf is the number of bytes of v as JSON, as a request carries it.
func sizeOf(v any) (int64, error) {
	var c counter
	if err := json.MarshalWrite(&c, v, json.Deterministic(true)); err != nil {
		return 0, errdefs.New(errdefs.Internal, "prompt: encode a message: %w", err)
	}
	return int64(c), nil
}

// clip bounds a message to about limit bytes of JSON: the longest parts keep
// head and tail. Opaque data and reasoning belong to the message as it was and
// are left out.
func clip(m modelwire.Message, limit int64) modelwire.Message {
	m.Opaque = nil
	m.Content = withoutReasoning(m.Content)
	most := level(m.Content, int(limit))
	for i := range m.Content {
		clipPart(&m.Content[i], most)
	}
	return m
}

// partFrame is about what the names and short members of a part take.
const partFrame = 96

// level is the number of bytes to which the longest parts must be shortened so
// that all of them together take no more than limit.
func level(parts []wire.Part, limit int) int {
	var sizes []int
	for _, p := range parts {
		sizes = append(sizes, len(p.Text)+len(p.Arguments)+len(p.Invalid))
	}
	slices.Sort(sizes)
	left := limit - len(parts)*partFrame
	for i, n := range sizes {
		share := left / (len(sizes) - i)
		if n > share {
			return share
		}
		left -= n
	}
	return limit // escapes alone make them longer
}

func clipPart(p *wire.Part, most int) {
	if p.Invalid != "" { // its arguments are {}
		p.Invalid = clipText(p.Invalid, most)
		return
	}
	if p.Type != callPart {
		p.Text = clipText(p.Text, most)
		return
	}
	const open, end = `{"clipped":`, `}`
	if len(p.Arguments) <= max(most, len(open+`""`+end)) {
		return
	}
	text := clipText(string(p.Arguments), most-len(open+end))
	if quoted, err := jsontext.AppendQuote(nil, text); err == nil {
		p.Arguments = jsontext.Value(open + string(quoted) + end)
	}
}

// clipText bounds a text so that its JSON string takes at most most bytes, but
// shows a few characters in any case.
func clipText(s string, most int) string {
	const least = 16
	most -= len(`""`)
	n := max(most, least)
	for {
		t, _ := wire.Clip(s, n)
		quoted, err := jsontext.AppendQuote(nil, t)
		got := len(quoted) - len(`""`)
		if err != nil || got <= most || n <= least {
			return t
		}
		n = max(int(int64(min(n, len(s)))*int64(most)/int64(got)), least)
	}
}
