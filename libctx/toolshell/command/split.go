package command

import (
	"strings"

	"cortexfs.org/libctx/errdefs"
)

// Line is one typed command.
type Line struct {
	Words      []string
	Background bool // it ended in a word &
	// Shell is its first word that is not quoted and would be no word in other
	// shells, such as | or >file; "" if there is none. It is among Words.
	Shell string
}

// Lines makes commands of a typed text, one for each row that is not empty: blanks
// and tabs divide words, single and double quotes keep what is between them, a
// backslash keeps the character behind it (between double quotes only a quote or
// another backslash), and joins two rows at the end of one. A word & that is not
// quoted and the last one of its row asks for the background. Nothing is expanded
// or executed: $, *, ;, | and the like are characters. A # where a word would
// begin starts a comment. A quote that is not closed is errdefs.Invalid; so is an
// & alone.
func Lines(text string) ([]Line, error) {
	l := lexer{}
	if err := l.read(text); err != nil {
		return nil, err
	}
	for _, line := range l.lines {
		if len(line.Words) == 0 {
			return nil, errdefs.New(errdefs.Invalid, "an & stands behind a command")
		}
	}
	return l.lines, nil
}

// Split makes the words of one command of a text, as Lines does, for who has no
// background: there & is a character like any other.
func Split(text string) ([]string, error) {
	l := lexer{}
	if err := l.read(text); err != nil {
		return nil, err
	}
	var words []string
	for _, line := range l.lines {
		words = append(words, line.Words...)
		if line.Background {
			words = append(words, "&")
		}
	}
	return words, nil
}

// Open reports whether a text goes on in the next row: a quote is not closed, or
// it ends in a backslash.
func Open(text string) bool {
	l := lexer{}
	_ = l.read(text)
	return l.quote != 0 || l.cut
}

type lexer struct {
	lines []Line
	words []string
	shell string // Line.Shell
	word  strings.Builder
	begun bool // a word has
	plain bool // and nothing of it is quoted
	amp   bool // the last word is a plain &
	quote byte // the quote it is in
	cut   bool // the text ends in a backslash
}

func (l *lexer) read(text string) error {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && l.quote != '\'':
			if i+1 == len(text) {
				l.cut = true
				return errdefs.New(errdefs.Invalid, "the line ends in a backslash")
			}
			next := text[i+1]
			if next == '\n' {
				i++
				continue
			}
			if l.quote == 0 || next == '"' || next == '\\' {
				i++
				c = next
			}
			l.add(c, false)
		case l.quote != 0 && c == l.quote:
			l.quote = 0
		case l.quote == 0 && (c == '\'' || c == '"'):
			l.quote, l.begun, l.plain = c, true, false
		case l.quote == 0 && (c == ' ' || c == '\t'):
			l.endWord()
		case l.quote == 0 && c == '\n':
			l.endLine()
		case l.quote == 0 && !l.begun && c == '#':
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				end = len(text) - i
			}
			i += end - 1
		default:
			l.add(c, l.quote == 0)
		}
	}
	if l.quote != 0 {
		return errdefs.New(errdefs.Invalid, "a %c is not closed", l.quote)
	}
	l.endLine()
	return nil
}

// add adds a character to the word.
func (l *lexer) add(c byte, plain bool) {
	l.word.WriteByte(c)
	l.plain = plain && (l.plain || !l.begun)
	l.begun = true
}

func (l *lexer) endWord() {
	if !l.begun {
		return
	}
	word := l.word.String()
	l.amp = l.plain && word == "&"
	if l.plain && l.shell == "" && len(l.words) > 0 && shell(word) {
		l.shell = word
	}
	l.words = append(l.words, word)
	l.word.Reset()
	l.begun, l.plain = false, false
}

// shell reports whether a word is an operator of other shells, or has one at the
// end where they divide commands, or in front as redirections have it.
func shell(word string) bool {
	switch word {
	case "|", "||", "&&", ";":
		return true
	}
	return strings.HasSuffix(word, ";") || strings.HasPrefix(strings.TrimLeft(word, "012&"), ">") || word == "<" || strings.HasPrefix(word, "<<")
}

func (l *lexer) endLine() {
	l.endWord()
	if len(l.words) == 0 {
		return
	}
	line := Line{Words: l.words, Background: l.amp, Shell: l.shell}
	if l.amp {
		line.Words = line.Words[:len(line.Words)-1]
	}
	l.lines = append(l.lines, line)
	l.words, l.amp, l.shell = nil, false, ""
}
