// Package markdown shows what a model wrote, which is Markdown more often than
// not, on a terminal. It is pure. Whatever the text is, the result is inert but
// for this package's own styles, and without colour it has no escape at all. A
// line break stays a line break (docs/reference/chat.md).
package markdown

import (
	"strings"

	"cortexfs.org/libctx/inert"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

const (
	maxParsed = 256 << 10 // bytes; a longer text is shown as it is
	maxNested = 32        // blocks in blocks that are indented
	maxWidth  = 100       // columns of running text
	minWidth  = 16
)

var parser = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()

// Render lays a text out for a terminal of that many columns. The result ends in
// a LF unless it is empty.
func Render(source string, columns int, color bool) string {
	source = strings.Trim(inert.Text(source), "\n")
	if source == "" {
		return ""
	}
	if len(source) > maxParsed || nested(source) {
		return source + "\n"
	}
	p := page{source: []byte(source), columns: columns, color: color}
	p.blocks(parser.Parse(text.NewReader(p.source)), "", "", 0)
	return p.out.String()
}

// nested reports whether a line opens more blocks in one another than anybody
// means to: the time to parse those grows with the square.
func nested(source string) bool {
	for line := range strings.Lines(source) {
		if len(line)-len(strings.TrimLeft(line, "> \t-*+0123456789.)[")) > 8*maxNested {
			return true
		}
	}
	return false
}

// page is a text that is being laid out.
type page struct {
	source  []byte
	columns int
	color   bool
	out     strings.Builder
	spaced  bool // an empty line is due before the next block
}

// blocks lays out what is in a block. The first line has one indentation, the
// others another.
func (p *page) blocks(parent ast.Node, first, rest string, depth int) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		p.block(n, first, rest, depth)
		first = rest
	}
}

func (p *page) block(n ast.Node, first, rest string, depth int) {
	if depth > maxNested {
		first, rest = "", ""
	}
	switch n := n.(type) {
	case *ast.List:
		p.list(n, first, rest, depth)
		return
	case *ast.Blockquote:
		p.space(rest)
		p.blocks(n, first+"│ ", rest+"│ ", depth+1)
		p.spaced = true
		return
	}
	p.space(rest)
	switch n := n.(type) {
	case *ast.Heading:
		before := runs{}
		if !p.color {
			before = runs{{text: strings.Repeat("#", n.Level) + " "}}
		}
		p.flow(append(before, p.inline(n, bold)...), first, rest)
	case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
		p.verbatim(n, first, rest)
	case *ast.ThematicBreak:
		p.line(first + strings.Repeat("─", max(1, min(p.width(first), 40))))
	case *east.Table:
		p.table(n, first, rest)
	case *ast.TextBlock:
		p.flow(p.inline(n, 0), first, rest)
		p.spaced = false
		return
	default:
		p.flow(p.inline(n, 0), first, rest)
	}
	p.spaced = true
}

// space puts the empty line that is due.
func (p *page) space(indent string) {
	if p.spaced {
		p.line(strings.TrimRight(indent, " "))
	}
	p.spaced = false
}

func (p *page) line(s string) {
	p.out.WriteString(strings.TrimRight(s, " "))
	p.out.WriteByte('\n')
}

// width is what an indentation leaves for running text.
func (p *page) width(indent string) int {
	return max(minWidth, min(p.columns-1, maxWidth)-columnsOf(indent))
}

func (p *page) list(n *ast.List, first, rest string, depth int) {
	p.space(rest)
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = ordinal(number)
			number++
		}
		p.blocks(item, first+mark, rest+strings.Repeat(" ", columnsOf(mark)), depth+1)
		if item.FirstChild() == nil {
			p.line(first + mark)
		}
		p.spaced = p.spaced && !n.IsTight
		first = rest
	}
	p.spaced = true
}

// verbatim is code and what else stands as it was written. It is not wrapped, so
// that it can be copied.
func (p *page) verbatim(n ast.Node, first, rest string) {
	lines := n.Lines()
	begin, end := p.styles(code)
	if n.Kind() == ast.KindHTMLBlock {
		begin, end = "", ""
	} else {
		first, rest = first+"  ", rest+"  "
	}
	put := func(segment text.Segment) {
		p.line(first + begin + strings.TrimRight(inert.Text(string(segment.Value(p.source))), "\n") + end)
		first = rest
	}
	for i := range lines.Len() {
		put(lines.At(i))
	}
	if html, ok := n.(*ast.HTMLBlock); ok && html.HasClosure() {
		put(html.ClosureLine)
	}
}
