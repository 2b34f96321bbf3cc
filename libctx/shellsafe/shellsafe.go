// Package shellsafe says of a shell command whether it is known to only look at
// things: it is understood as a whole, every program in it is on a short list, and
// none of its arguments makes the program write, run another one, or do what is
// not foreseen. What is not understood is not known to be safe. It decides what a
// controlled agent may run without a question (docs/reference/admission.md), and
// contains nothing: that is the sandbox's part.
package shellsafe

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"mvdan.cc/sh/v3/syntax"
)

// maxDepth is how many shells may be called inside one another.
const maxDepth = 8

// Script reports whether the text of a shell script is known to be safe: commands
// of plain words, joined by && || ; and |, on one line of at most
// libctx.MaxSafeScript bytes. There is no redirection, expansion, pattern,
// substitution, subshell, assignment or background job in it. It means the same to
// bash and to every POSIX shell.
func Script(text string) bool { return script(text, 0) }

// Words reports whether a command of exactly these words, the program's name
// first, is known to be safe. Nothing is expanded in them.
func Words(words []string) bool { return known(words, 0) }

func script(text string, depth int) bool {
	if depth > maxDepth || len(text) > libctx.MaxSafeScript || !plain(text) {
		return false
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil || len(f.Last) > 0 {
		return false
	}
	return statements(f.Stmts, depth)
}

// plain reports whether the text is one line of visible text. A character that a
// terminal shows as something else is understood by nobody.
func plain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '\t' && r != ' ' && !unicode.IsGraphic(r) || r > unicode.MaxASCII && unicode.IsSpace(r)
	})
}

// statements: there is at least one, and all are safe.
func statements(list []*syntax.Stmt, depth int) bool {
	for _, s := range list {
		if !statement(s, depth) {
			return false
		}
	}
	return len(list) > 0
}

func statement(s *syntax.Stmt, depth int) bool {
	if len(s.Comments) > 0 || s.Negated || s.Background || s.Coprocess || s.Disown || len(s.Redirs) > 0 {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return call(c, depth)
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.AndStmt, syntax.OrStmt, syntax.Pipe:
			return statement(c.X, depth) && statement(c.Y, depth)
		}
	}
	return false
}

func call(c *syntax.CallExpr, depth int) bool {
	if len(c.Assigns) > 0 || len(c.Args) == 0 {
		return false
	}
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		var ok bool
		if words[i], ok = literal(w); !ok {
			return false
		}
	}
	return known(words, depth)
}

// special are the characters that can mean something in a word without quotes.
const special = "\\*?[]{}~!^=#%+@()<>$`\"'&|;"

// harmless are those of them that mean nothing where they stand in a word that
// has none of the others.
const harmless = "=^%+@#"

// literal is the word that a shell makes of w, if nothing in it can become
// anything else.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			rest := strings.Map(func(r rune) rune {
				if strings.ContainsRune(harmless, r) {
					return -1
				}
				return r
			}, p.Value)
			if strings.ContainsAny(rest, special) || i == 0 && strings.HasPrefix(p.Value, "=") {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", false
			}
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || strings.ContainsAny(lit.Value, "\\$`!") {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}
