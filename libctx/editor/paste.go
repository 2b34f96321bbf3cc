package editor

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"cortexfs.org/libctx"
)

// What is longer stands in the line as a mark: the editor draws the whole line
// for every key, and has to fit on the screen.
const (
	maxShown      = 1 << 10 // bytes
	maxShownLines = 8
)

// clean makes a pasted text harmless: LF and TAB stay; other control characters,
// those that change direction, and bytes that are not UTF-8 become escapes.
func clean(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == utf8.RuneError && text[i] != "\uFFFD"[0]:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsControl(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0x2028, r == 0x2029:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// fold replaces a long text by a mark, for which expand brings it back. A text
// for which there is no room is left out.
func (e *Editor) fold(text string) string {
	lines := strings.Count(text, "\n") + 1
	if len(text) <= maxShown && lines <= maxShownLines {
		return text
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := 0
	for _, p := range e.pastes {
		kept += len(p)
	}
	if kept+len(text) > libctx.MaxPaste {
		return fmt.Sprintf("[%s: too much to keep]", size(len(text)))
	}
	e.pastes = append(e.pastes, text)
	return mark(len(e.pastes), text)
}

// mark stands for paste n.
func mark(n int, text string) string {
	return fmt.Sprintf("[paste %d: %s, %d lines]", n, size(len(text)), strings.Count(text, "\n")+1)
}

// size shows a number of bytes.
func size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// expand puts the pastes in the place of their marks.
func (e *Editor) expand(text string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.pastes) == 0 {
		return text
	}
	var pairs []string
	for i, p := range e.pastes {
		pairs = append(pairs, mark(i+1, p), p)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// forget drops the pastes of a line that is done with.
func (e *Editor) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pastes = nil
}
