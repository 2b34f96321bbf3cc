// Package render turns data into text for people: tables, sizes, durations and
// the arguments of calls. It is pure: nothing here reads or writes anything.
package render

import (
	"strings"
	"unicode"

	"cortexfs.org/libctx/inert"
)

// Table lays rows out as text, one line each. Cells are made inert here. With
// aligned the columns line up and the head line is shown; without, cells are
// separated by one TAB and the head line is left out, for other programs.
func Table(head []string, rows [][]string, aligned bool, bold func(string) string) string {
	var b strings.Builder
	clean := make([][]string, 0, len(rows)+1)
	if aligned && len(head) > 0 {
		clean = append(clean, head)
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = inert.Line(cell)
			if aligned && cells[i] == "" {
				cells[i] = "-"
			}
		}
		clean = append(clean, cells)
	}
	if !aligned {
		for _, row := range clean {
			b.WriteString(strings.Join(row, "\t"))
			b.WriteByte('\n')
		}
		return b.String()
	}
	var widths []int
	for _, row := range clean {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	for n, row := range clean {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-Width(cell)+2))
			}
		}
		text := strings.TrimRight(line.String(), " ")
		if n == 0 && len(head) > 0 && bold != nil {
			text = bold(text)
		}
		b.WriteString(text)
		b.WriteByte('\n')
	}
	return b.String()
}

// Width is the number of terminal columns an inert text takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me), r == 0xFE0E, r == 0xFE0F:
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide reports whether a character takes two columns.
func wide(r rune) bool {
	if r < 0x1100 {
		return false
	}
	return unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Yi) ||
		r >= 0x3000 && r <= 0x303E || r >= 0xFF01 && r <= 0xFF60 || r >= 0xFFE0 && r <= 0xFFE6 ||
		r >= 0x1F300 && r <= 0x1FAFF
}

// Clip shortens an inert one-line text to at most columns columns, with … where
// something is missing.
func Clip(s string, columns int) string {
	if Width(s) <= columns {
		return s
	}
	n := 0
	for i, r := range s {
		w := Width(string(r))
		if n+w > columns-1 {
			return s[:i] + "…"
		}
		n += w
	}
	return s
}
