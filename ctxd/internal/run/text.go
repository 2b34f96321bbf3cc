package run

import (
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/wire"
)

// EmitText shows clients a provisional piece of text in frames that fit the
// wire. Kind is "delta" or "reasoning_delta".
func (r *Run) EmitText(kind, text string) {
	for text != "" {
		n := len(text)
		if n > libctx.MaxInlineText {
			for n = libctx.MaxInlineText; n > 0 && !utf8.RuneStart(text[n]); n-- {
			}
		}
		r.Emit(&wire.Delta{Head: wire.Head{Type: kind}, Text: text[:n]})
		text = text[n:]
	}
}
