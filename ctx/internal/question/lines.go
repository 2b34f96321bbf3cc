// Package question asks a person at a terminal whether one call may run, as
// `ctx agent chat` does (docs/reference/approval.md). All of what would run is to be
// seen, and nothing in it can look like something else.
package question

import (
	"fmt"
	"strings"
	"unicode"

	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/libctx/inert"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Lines shows arguments, all of them: a member begins with its name, a text stands
// behind a bar in as many lines as it has, everything else is JSON behind an equals
// sign. A line that is wider than columns goes on in the next one, behind a dotted
// bar. Names and bars are what no text can imitate, since each of its lines stands
// behind one.
func Lines(raw jsontext.Value, columns int) []string {
	var lines []string
	for _, m := range members(raw) {
		var words []string
		if m.value.Kind() == '[' && json.Unmarshal(m.value, &words) == nil {
			for i, w := range words {
				lines = append(lines, text(fmt.Sprintf("%s %d", m.name, i+1), w, columns)...)
			}
			if len(words) > 0 {
				continue
			}
		}
		var one string
		if m.value.Kind() == '"' && json.Unmarshal(m.value, &one) == nil {
			lines = append(lines, text(m.name, one, columns)...)
			continue
		}
		lines = append(lines, fold(m.name+" = ", "  ┆ ", plain(string(m.value)), columns)...)
	}
	return lines
}

// member is a member of the arguments. A name that is no word is quoted.
type member struct {
	name  string
	value jsontext.Value
}

// members are those of an object, in their order; what is none is one without a
// name.
func members(raw jsontext.Value) (all []member) {
	dec := jsontext.NewDecoder(strings.NewReader(string(raw)))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return []member{{"arguments", raw}}
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			break
		}
		n := name.String()
		if n == "" || strings.Trim(n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" {
			n = plain(fmt.Sprintf("%q", n))
		}
		value, err := dec.ReadValue()
		if err != nil {
			break
		}
		all = append(all, member{n, value.Clone()})
	}
	return all
}

// text is a text behind its name.
func text(name, s string, columns int) (lines []string) {
	for i, line := range strings.Split(s, "\n") {
		head := "  │ "
		if i == 0 {
			head = name + " │ "
		}
		lines = append(lines, fold(head, "  ┆ ", plain(line), columns)...)
	}
	return lines
}

// fold breaks a line that is too wide.
func fold(head, again, s string, columns int) (lines []string) {
	b, width := strings.Builder{}, 0
	start := func(with string) {
		b.Reset()
		b.WriteString(with)
		width = render.Width(with)
	}
	start(head)
	fresh := true
	for _, r := range s {
		w := render.Width(string(r))
		if width+w > max(columns, 8) && !fresh {
			lines = append(lines, b.String())
			start(again)
		}
		b.WriteRune(r)
		width, fresh = width+w, false
	}
	return append(lines, b.String())
}

// maxMarks is how many marks over one character are shown as such.
const maxMarks = 2

// plain is a text of one line in which everything is to be seen: what inert escapes,
// and blanks that are no space, blanks at the end, heaps of marks, and selectors of a
// presentation, which most characters have none of.
func plain(s string) string {
	var b strings.Builder
	marks := 0
	end := len(strings.TrimRight(s, " "))
	for i, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
			marks++
		default:
			marks = 0
		}
		switch {
		case r == ' ' && i >= end:
			b.WriteString("·")
		case r != ' ' && unicode.Is(unicode.Zs, r), r == 0x2800, r == 0xFE0E, r == 0xFE0F, marks > maxMarks, marks > 0 && b.Len() == 0:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return inert.Line(b.String())
}
