package command

import (
	"strings"

	"cortexfs.org/libctx/errdefs"
)

// Split makes words of a typed line: blanks and tabs divide, single and double
// quotes keep what is between them, a backslash keeps the character behind it
// (between double quotes only a quote or another backslash). Nothing is
// expanded or executed: $, *, ;, | and the like are characters. A # where a word
// would begin starts a comment. An unfinished quote is errdefs.Invalid.
func Split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	open, quote := false, byte(0) // a word has begun; the quote it is in
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && quote != '\'':
			if i+1 == len(line) {
				return nil, errdefs.New(errdefs.Invalid, "the line ends in a backslash")
			}
			if next := line[i+1]; quote == 0 || next == '"' || next == '\\' {
				i++
				c = next
			}
			word.WriteByte(c)
			open = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if open {
				words = append(words, word.String())
				word.Reset()
			}
			open = false
		case quote == 0 && !open && c == '#':
			return words, nil
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if quote != 0 {
		return nil, errdefs.New(errdefs.Invalid, "a %c is not closed", quote)
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}
