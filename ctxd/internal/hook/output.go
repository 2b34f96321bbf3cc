package hook

import (
	"strings"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/wire"
)

// output holds what a hook prints, on both of its streams. Over max bytes it is an
// error, which ends the hook.
type output struct {
	max int
	mu  sync.Mutex
	b   []byte
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.b)+len(p) > o.max {
		return 0, errdefs.New(errdefs.TooBig, "it printed more than %d bytes", o.max)
	}
	o.b = append(o.b, p...)
	return len(p), nil
}

// said is what was printed, on one line and after a colon; "" if it was nothing.
func (o *output) said() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, _ := wire.Clip(wire.Clean(o.b), libctx.MaxHookReason)
	if text = line(text); text == "" {
		return ""
	}
	return ": " + text
}

// line makes a text one line that does nothing to a terminal.
func line(text string) string { return inert.Line(strings.TrimSpace(text)) }
