package edit

import (
	"bytes"
	"fmt"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/tsh/internal/tool"
	"cortexfs.org/tsh/internal/tool/object"
	"github.com/aymanbagabas/go-udiff/lcs"
)

// change says that the lines [from, to) of the old text, counted from 0, became
// others.
type change struct {
	from, to int
	lines    [][]byte
}

const around = 3 // unchanged lines shown around a change

// maxCompared is the number of lines of each side that are compared with one
// another; of more it is only said that they were replaced.
const maxCompared = 20_000

// lines splits a text behind each LF.
func lines(text []byte) [][]byte {
	split := bytes.SplitAfter(text, lf)
	if n := len(split) - 1; len(split[n]) == 0 {
		split = split[:n]
	}
	return split
}

var lf = []byte("\n")

// changes compares two texts.
func changes(old, new [][]byte) []change {
	head := 0
	for head < len(old) && head < len(new) && bytes.Equal(old[head], new[head]) {
		head++
	}
	a, b := old[head:], new[head:]
	for len(a) > 0 && len(b) > 0 && bytes.Equal(a[len(a)-1], b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	switch {
	case len(a) == 0 && len(b) == 0:
		return nil
	case len(a) > maxCompared || len(b) > maxCompared:
		return []change{{head, head + len(a), b}}
	}
	var all []change
	for _, d := range lcs.DiffLines(texts(a), texts(b)) {
		all = append(all, change{head + d.Start, head + d.End, b[d.ReplStart:d.ReplEnd]})
	}
	return all
}

func texts(lines [][]byte) []string {
	s := make([]string, len(lines))
	for i, l := range lines {
		s[i] = string(l)
	}
	return s
}

// show writes what became of a file as a unified diff of at most libctx.MaxDiff
// bytes.
func show(out *tool.Output, p string, old []byte, all []change) {
	d := diff{old: lines(old)}
	name := object.Show(p)
	fmt.Fprintf(&d.text, "--- %s\n+++ %s\n", name, name)
	all = refine(d.old, all)
	shift := 0
	for len(all) > 0 && !d.full {
		n := 1
		for n < len(all) && all[n].from-all[n-1].to <= 2*around {
			n++
		}
		shift = d.hunk(all[:n], shift)
		all = all[n:]
	}
	out.WriteString(d.text.String())
	if d.full {
		out.Notef("the diff is cut after %d bytes", d.text.Len())
		out.Truncated()
	}
}

// refine leaves out of changes the lines that stay.
func refine(old [][]byte, all []change) []change {
	var fine []change
	for _, c := range all {
		for _, f := range changes(old[c.from:c.to], c.lines) {
			fine = append(fine, change{c.from + f.from, c.from + f.to, f.lines})
		}
	}
	return fine
}

type diff struct {
	old  [][]byte
	text strings.Builder
	full bool
}

// hunk writes changes that are close together. Before it the new text is shift
// lines longer than the old; it returns what that is behind it.
func (d *diff) hunk(all []change, shift int) int {
	begin := max(all[0].from-around, 0)
	end := min(all[len(all)-1].to+around, len(d.old))
	grown := 0
	for _, c := range all {
		grown += len(c.lines) - (c.to - c.from)
	}
	d.add(fmt.Sprintf("@@ -%s +%s @@\n", span(begin, end-begin), span(begin+shift, end-begin+grown)))
	at := begin
	for _, c := range all {
		d.put(' ', d.old[at:c.from])
		d.put('-', d.old[c.from:c.to])
		d.put('+', c.lines)
		at = c.to
	}
	d.put(' ', d.old[at:end])
	return shift + grown
}

// span is the lines of a side of a hunk, as unified diffs count them.
func span(begin, n int) string {
	if n > 0 {
		begin++
	}
	if n == 1 {
		return fmt.Sprint(begin)
	}
	return fmt.Sprintf("%d,%d", begin, n)
}

func (d *diff) put(mark byte, lines [][]byte) {
	for _, line := range lines {
		if d.full {
			return
		}
		text, ended := bytes.CutSuffix(line, lf)
		row := string(mark) + clip(string(text), libctx.MaxLineShown) + "\n"
		if !ended {
			row += "\\ No newline at end of file\n"
		}
		d.add(row)
	}
}

func (d *diff) add(row string) {
	if d.text.Len()+len(row) > libctx.MaxDiff {
		d.full = true
	}
	if !d.full {
		d.text.WriteString(row)
	}
}

// clip keeps the first max characters of a line.
func clip(line string, max int) string {
	if len(line) <= max {
		return line
	}
	n := 0
	for i := range line {
		if n++; n > max {
			return fmt.Sprintf("%s…[%d bytes more]", line[:i], len(line)-i)
		}
	}
	return line
}
