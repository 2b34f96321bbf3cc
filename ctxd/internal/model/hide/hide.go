// Package hide takes a key out of what its provider sends: as it is, in base64
// at any place of other data, and with any of its characters escaped as in a URL
// or as in JSON. What a provider does to a key beyond that, it can hide from
// everybody. docs/reference/model.md says where this is done.
package hide

import (
	"encoding/base64"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/provider"
)

// Mask stands where a key was.
const Mask = "[redacted]"

// Filter knows the forms of one key. It may be used from any goroutine; nil
// knows none.
type Filter struct{ forms []string }

// New makes the filter of a key, nil of no key.
func New(key provider.Secret) *Filter {
	if key.Empty() {
		return nil
	}
	text := key.Reveal()
	f := &Filter{forms: []string{text}}
	if len(text) < libctx.MinKey {
		return f
	}
	for shift := range 3 {
		// The characters that the key's bits alone decide, after so many other bytes.
		first, last := (8*shift+5)/6, 8*(shift+len(text))/6
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			form := e.EncodeToString([]byte("\x00\x00"[:shift] + text))[first:last]
			if !slices.Contains(f.forms, form) {
				f.forms = append(f.forms, form)
			}
		}
	}
	return f
}

// Span is a piece of a text, from its first byte to that after its last.
type Span struct{ From, To int }

// Text is a text without the key. What it puts in is not looked at again.
func (f *Filter) Text(s string) string { return Replace(s, f.Find(s)) }

// Find is where the key stands in a text, in order and apart.
func (f *Filter) Find(s string) []Span {
	spans, _ := f.look(s)
	return spans
}

// Begun is what at the end of a text may be the beginning of the key.
func (f *Filter) Begun(s string) string {
	_, open := f.look(s)
	return s[open:]
}

// Texts is Text for texts that are read one after another. A key that begins in
// one and ends in another is taken out of both.
func (f *Filter) Texts(list []string) []string {
	spans := f.Find(strings.Join(list, ""))
	if len(spans) == 0 {
		return list
	}
	out := make([]string, len(list))
	begin := 0 // of this text
	for i, s := range list {
		var b strings.Builder
		at := 0
		for _, p := range spans {
			from, to := p.From-begin, p.To-begin
			if to <= at || from >= len(s) {
				continue
			}
			if from >= 0 { // not begun in an earlier one
				b.WriteString(s[at:from] + Mask)
			}
			at = min(to, len(s))
		}
		out[i] = b.String() + s[at:]
		begin += len(s)
	}
	return out
}

// Replace puts the mask in the place of spans that are in order and apart.
func Replace(s string, spans []Span) string {
	if len(spans) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, p := range spans {
		b.WriteString(s[at:p.From] + Mask)
		at = p.To
	}
	return b.String() + s[at:]
}

// Merge puts spans in order, and those that overlap together.
func Merge(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int { return a.From - b.From })
	out := spans[:0]
	for _, p := range spans {
		if n := len(out); n > 0 && p.From < out[n-1].To {
			out[n-1].To = max(out[n-1].To, p.To)
		} else {
			out = append(out, p)
		}
	}
	return out
}

// look finds the key in a text, and where at its end one may have begun.
func (f *Filter) look(s string) (spans []Span, open int) {
	if f == nil {
		return nil, len(s)
	}
	spans, open = f.plain(s)
	for mark, decode := range escapes {
		if strings.IndexByte(s, mark) < 0 {
			continue
		}
		more, begun := f.decoded(s, decode)
		spans, open = append(spans, more...), min(open, begun)
	}
	spans = Merge(spans)
	if n := len(spans); n > 0 {
		open = max(open, spans[n-1].To)
	}
	return spans, open
}

// plain looks at a text as it stands.
func (f *Filter) plain(s string) (spans []Span, open int) {
	open = len(s)
	for _, form := range f.forms {
		at := 0
		for {
			i := strings.Index(s[at:], form)
			if i < 0 {
				break
			}
			spans = append(spans, Span{at + i, at + i + len(form)})
			at += i + len(form)
		}
		for i := max(at, len(s)-len(form)+1); i < open; i++ {
			next := strings.IndexByte(s[i:], form[0])
			if next < 0 {
				break
			}
			if i += next; strings.HasPrefix(form, s[i:]) {
				open = min(open, i)
			}
		}
	}
	return spans, open
}

// decoded looks at what a text says to a reader that decodes escapes.
func (f *Filter) decoded(s string, decode decoder) (spans []Span, open int) {
	plain := make([]byte, 0, len(s))
	end := 0
	for end < len(s) {
		c, n := decode(s[end:])
		if n == 0 {
			break // the rest of it is to come
		}
		plain = append(plain, c)
		end += n
	}
	found, begun := f.plain(string(plain))
	found = Merge(found)
	// Both in order: one walk finds the places in the text.
	at, i := 0, 0
	place := func(to int) int {
		for ; i < to; i++ {
			_, n := decode(s[at:])
			at += n
		}
		return at
	}
	for _, p := range found {
		spans = append(spans, Span{place(p.From), place(p.To)})
	}
	if n := len(found); n > 0 {
		begun = max(begun, found[n-1].To)
	}
	return spans, place(begun)
}
