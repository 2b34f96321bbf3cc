package markdown

import (
	"strconv"
	"strings"

	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/libctx/inert"
	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// style is how a piece of text looks.
type style uint8

const (
	bold style = 1 << iota
	italic
	struck
	code
)

// run is a piece of text with one style; "\n" ends a line.
type run struct {
	text  string
	style style
}

type runs []run

// styles are the escapes around a piece.
func (p *page) styles(s style) (begin, end string) {
	if !p.color || s == 0 {
		return "", ""
	}
	for _, one := range []struct {
		style style
		code  string
	}{{bold, "\x1b[1m"}, {italic, "\x1b[3m"}, {struck, "\x1b[9m"}, {code, "\x1b[36m"}} {
		if s&one.style != 0 {
			begin += one.code
		}
	}
	return begin, "\x1b[0m"
}

// inline is what a block says. Without colour, what marks a style stays as it
// was written.
func (p *page) inline(parent ast.Node, s style) runs {
	var out runs
	marked := func(n ast.Node, mark string, with style) {
		if p.color {
			out = append(out, p.inline(n, s|with)...)
			return
		}
		out = append(append(append(out, run{mark, s}), p.inline(n, s)...), run{mark, s})
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			out = append(out, run{p.plain(n.Segment.Value(p.source), n.IsRaw()), s})
			if n.SoftLineBreak() || n.HardLineBreak() {
				out = append(out, run{"\n", 0})
			}
		case *ast.String:
			out = append(out, run{p.plain(n.Value, n.IsRaw() || n.IsCode()), s})
		case *ast.CodeSpan:
			marked(n, "`", code)
		case *ast.Emphasis:
			if n.Level == 2 {
				marked(n, "**", bold)
			} else {
				marked(n, "*", italic)
			}
		case *east.Strikethrough:
			marked(n, "~~", struck)
		case *ast.Link:
			out = append(out, p.inline(n, s)...)
			out = append(out, p.target(n.Destination, p.inline(n, 0), s)...)
		case *ast.Image:
			out = append(out, p.inline(n, s)...)
			out = append(out, p.target(n.Destination, nil, s)...)
		case *ast.AutoLink:
			out = append(out, run{p.plain(n.Label(p.source), true), s})
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				segment := n.Segments.At(i)
				out = append(out, run{p.plain(segment.Value(p.source), true), s})
			}
		case *east.TaskCheckBox:
			if n.IsChecked {
				out = append(out, run{"[x] ", s})
			} else {
				out = append(out, run{"[ ] ", s})
			}
		default:
			out = append(out, p.inline(n, s)...)
		}
	}
	return out
}

// target is where a link goes, unless its text says so.
func (p *page) target(to []byte, said runs, s style) runs {
	var b strings.Builder
	for _, r := range said {
		b.WriteString(r.text)
	}
	address := p.plain(to, false)
	if address == "" || address == b.String() {
		return nil
	}
	return runs{{" (" + address + ")", s}}
}

// plain is a piece of text as it is meant: with what was escaped, and inert
// again, because an escape can mean any character.
func (p *page) plain(b []byte, raw bool) string {
	if !raw {
		b = util.UnescapePunctuations(util.ResolveNumericReferences(util.ResolveEntityNames(b)))
	}
	return inert.Text(string(b))
}

// flow wraps running text at words. A word that is longer than the line stands
// alone, and the terminal breaks it.
func (p *page) flow(all runs, first, rest string) {
	var line strings.Builder
	used, indent := 0, first
	flush := func() {
		p.line(indent + line.String())
		line.Reset()
		used, indent = 0, rest
	}
	var word runs // pieces without a blank between them
	wide := 0
	blank := false // before the word
	put := func() {
		if len(word) == 0 {
			return
		}
		if used > 0 && used+1+wide > p.width(indent) {
			flush()
		} else if used > 0 && blank {
			line.WriteByte(' ')
			used++
		}
		for _, r := range word {
			begin, end := p.styles(r.style)
			line.WriteString(begin + r.text + end)
		}
		used += wide
		word, wide, blank = nil, 0, false
	}
	for _, r := range all {
		text := r.text
		for text != "" {
			switch c := text[0]; c {
			case ' ', '\t':
				put()
				blank = true
				text = text[1:]
			case '\n':
				put()
				flush()
				blank = false
				text = text[1:]
			default:
				end := strings.IndexAny(text, " \t\n")
				if end < 0 {
					end = len(text)
				}
				word = append(word, run{text[:end], r.style})
				wide += columnsOf(text[:end])
				text = text[end:]
			}
		}
	}
	put()
	if used > 0 {
		flush()
	}
}

func columnsOf(s string) int { return render.Width(s) }

func ordinal(n int) string { return strconv.Itoa(n) + ". " }

// table lines the columns up. One that is too wide is broken by the terminal.
func (p *page) table(n *east.Table, first, rest string) {
	var rows [][]string
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		var cells []string
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			var b strings.Builder
			for _, piece := range p.inline(c, 0) {
				b.WriteString(piece.text)
			}
			cells = append(cells, b.String())
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 {
		return
	}
	begin, end := p.styles(bold)
	laid := render.Table(rows[0], rows[1:], true, func(s string) string { return begin + s + end })
	for line := range strings.Lines(laid) {
		p.line(first + strings.TrimRight(line, "\n"))
		first = rest
	}
}
