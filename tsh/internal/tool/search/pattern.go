package search

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cortexfs.org/libctx/errdefs"
)

// matcher finds matching lines. It is safe for several goroutines.
type matcher struct {
	// needles are texts of which every matching line holds one, nil if there are
	// none that are known. Looking for them is much cheaper than the expression.
	needles [][]byte
	fold    bool           // needles are in lower case and stand for both cases
	re      *regexp.Regexp // nil: the one needle is the pattern
	cr      bool           // the CR of CRLF belongs to the line, because the pattern names it
}

// maxNeedles is the number of texts that are looked for beside one another.
const maxNeedles = 8

// maxLine is the number of bytes of a line that an expression is tried on.
const maxLine = 64 << 10

// compile makes the matcher of a pattern. Expressions are of RE2 syntax and see
// one line at a time, without its ending: ^ and $, \A and \z are its ends. The
// ending is LF or CRLF, or, for a pattern in which a CR is named, LF alone.
func compile(pattern string, literal, fold bool) (*matcher, error) {
	if strings.ContainsRune(pattern, '\n') {
		return nil, errdefs.New(errdefs.Invalid, "arguments: pattern holds a line feed, and lines are searched one by one")
	}
	if literal && !fold {
		return &matcher{needles: [][]byte{[]byte(pattern)}}, nil
	}
	if literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	flags := syntax.Perl
	if fold {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(pattern, flags)
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "arguments: pattern: %w", err).
			WithHint("mode literal takes the pattern as plain text")
	}
	if !oneLine(tree) {
		return nil, errdefs.New(errdefs.Invalid, "arguments: pattern matches a line feed, and lines are searched one by one")
	}
	re, err := regexp.Compile(tree.String())
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "arguments: pattern: %w", err)
	}
	m := &matcher{re: re, cr: namesCR(pattern)}
	for _, n := range needles(tree.Simplify()) {
		m.fold = m.fold || n.fold
		m.needles = append(m.needles, []byte(n.text))
	}
	if m.fold {
		for i := range m.needles {
			m.needles[i] = lower(nil, m.needles[i])
		}
	}
	return m, nil
}

// oneLine changes an expression so that it matches within a line only; false if
// it asks for a line feed.
func oneLine(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return !slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		var rest []rune
		for i := 0; i < len(re.Rune); i += 2 {
			lo, hi := re.Rune[i], re.Rune[i+1]
			if lo <= '\n' && '\n' <= hi {
				if lo < '\n' {
					rest = append(rest, lo, '\n'-1)
				}
				lo = '\n' + 1
			}
			if lo <= hi {
				rest = append(rest, lo, hi)
			}
		}
		if len(rest) == 0 && len(re.Rune) > 0 {
			return false
		}
		re.Rune = rest
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		re.Op = syntax.OpEndLine
	}
	for _, sub := range re.Sub {
		if !oneLine(sub) {
			return false
		}
	}
	return true
}

// namesCR reports whether an expression has a carriage return in it, as \r or as
// it is.
func namesCR(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\r':
			return true
		case pattern[i] == '\\' && i+1 < len(pattern):
			if i++; pattern[i] == 'r' {
				return true
			}
		}
	}
	return false
}

// endings makes a text, in place, the one that the matcher is to see: with LF
// alone behind every line, unless CR is part of what is looked for. Lines keep
// their numbers, and no result shows their endings.
func (m *matcher) endings(text []byte) []byte {
	if m.re == nil || m.cr {
		return text // a text without CR is found beside one too
	}
	to := bytes.Index(text, crlf)
	if to < 0 {
		return text
	}
	for from := to; ; {
		from++ // over the CR
		n := bytes.Index(text[from:], crlf)
		if n < 0 {
			return text[:to+copy(text[to:], text[from:])]
		}
		to += copy(text[to:], text[from:from+n])
		from += n
	}
}

var crlf = []byte("\r\n")

// needle is a text that a match holds.
type needle struct {
	text string
	fold bool // in one case or the other
}

// needles are texts of which every match holds one, nil if none are known.
func needles(re *syntax.Regexp) []needle {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return []needle{{string(re.Rune), false}}
		}
		if text := foldable(re.Rune); text != "" {
			return []needle{{text, true}}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needles(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needles(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []needle
		for _, sub := range re.Sub {
			n := needles(sub)
			if a, b := shortest(n), shortest(best); a > b || a == b && len(n) < len(best) {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all []needle
		for _, sub := range re.Sub {
			n := needles(sub)
			if n == nil || len(all)+len(n) > maxNeedles {
				return nil
			}
			all = append(all, n...)
		}
		return all
	}
	return nil
}

func shortest(all []needle) int {
	n := 0
	for i, needle := range all {
		if i == 0 || len(needle.text) < n {
			n = len(needle.text)
		}
	}
	return n
}

// foldable is the longest part of a text whose letters have no other case
// outside of ASCII (k and s do), so that lower tells all their cases.
func foldable(runes []rune) string {
	best, run := "", ""
	for _, r := range runes {
		if r < utf8.RuneSelf && !strings.ContainsRune("kKsS", r) && unicode.SimpleFold(r) < utf8.RuneSelf {
			run += string(r)
		} else {
			run = ""
		}
		if len(run) > len(best) {
			best = run
		}
	}
	return best
}

// lower appends text with its ASCII letters in lower case.
func lower(to, text []byte) []byte {
	begin := len(to)
	to = append(to, text...)
	for i, c := range to[begin:] {
		if 'A' <= c && c <= 'Z' {
			to[begin+i] = c + 'a' - 'A'
		}
	}
	return to
}

// cursor goes through one text from match to match. Low is the text in lower
// case if the matcher folds, else the text.
type cursor struct {
	*matcher
	text, low []byte
	next      []int // per needle: where it is next, -1 not known, len(text) nowhere
	long      bool  // a line was longer than an expression is tried on
}

// find is the first matching line that begins at or after from, which is the
// begin of a line: its begin and end without LF, and where in the text the match
// begins. False if there is none before stop says so or the text ends.
func (c *cursor) find(from int, stop func() bool) (begin, end, at int, ok bool) {
	for from < len(c.text) && !stop() {
		if c.needles == nil {
			begin, end = from, c.piece(from)
		} else {
			hit := c.nearest(from)
			if hit == len(c.text) {
				return 0, 0, 0, false
			}
			begin, end = bytes.LastIndexByte(c.text[from:hit], '\n')+1+from, c.lineEnd(hit)
			if c.re == nil {
				return begin, end, hit, true
			}
		}
		c.long = c.long || end-begin > maxLine
		if loc := c.re.FindIndex(c.text[begin:min(end, begin+maxLine)]); loc != nil {
			at = begin + loc[0]
			return bytes.LastIndexByte(c.text[begin:at], '\n') + 1 + begin, c.lineEnd(at), at, true
		}
		from = end + 1
	}
	return 0, 0, 0, false
}

// lineEnd is where the line of at ends, without its LF.
func (c *cursor) lineEnd(at int) int {
	if n := bytes.IndexByte(c.text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(c.text)
}

// piece is the end of several lines from there on that an expression is tried on
// at once: not more than it is quick with.
func (c *cursor) piece(from int) int {
	const quick = 4 << 10
	limit := min(from+quick, len(c.text))
	if n := bytes.LastIndexByte(c.text[from:limit], '\n'); n >= 0 {
		return from + n
	}
	return c.lineEnd(limit)
}

// nearest is where the first of the needles is, from there on, len(text) if none
// is.
func (c *cursor) nearest(from int) int {
	if c.next == nil {
		c.next = make([]int, len(c.needles))
		for i := range c.next {
			c.next[i] = -1
		}
	}
	first := len(c.text)
	for i, n := range c.needles {
		if c.next[i] < from {
			c.next[i] = len(c.text)
			if at := bytes.Index(c.low[from:], n); at >= 0 {
				c.next[i] = from + at
			}
		}
		first = min(first, c.next[i])
	}
	return first
}
