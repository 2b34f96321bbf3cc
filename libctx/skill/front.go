package skill

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/wire"
)

// front is what is used of a front matter. Both are one line.
type front struct{ name, description string }

// parseFront reads the front matter at the begin of a SKILL.md: lines between
// "---" and "---", of which the top-level keys name and description count. This
// is the part of YAML that such files use, and no more: a value is plain,
// quoted, or a block ("|", ">"), and may go on in indented lines. Since both
// values become one line, all ways of folding mean the same. Other keys, what
// is below them, and comments are passed over. Unlike YAML a plain value may
// hold ": ".
func parseFront(text []byte) (front, error) {
	var f front
	lines := strings.Split(strings.TrimPrefix(wire.Clean(text), "\uFEFF"), "\n")
	if strings.TrimRight(lines[0], " \t\r") != "---" {
		return f, errors.New("does not begin with front matter")
	}
	end := 1
	for ; ; end++ {
		if end == len(lines) {
			return f, fmt.Errorf("its front matter does not end within %d bytes", libctx.MaxSkillFront)
		}
		lines[end] = strings.TrimRight(lines[end], " \t\r")
		if lines[end] == "---" || lines[end] == "..." {
			break
		}
	}
	lines = lines[1:end]
	seen := map[string]bool{}
	for i, line := range lines {
		key, rest, ok := strings.Cut(line, ":")
		if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
			continue
		}
		var to *string
		switch key = strings.TrimRight(key, " \t"); key {
		case "name":
			to = &f.name
		case "description":
			to = &f.description
		default:
			continue
		}
		if seen[key] {
			return front{}, fmt.Errorf("its front matter has %s twice", key)
		}
		seen[key] = true
		v, err := scalar(strings.TrimSpace(rest), indented(lines[i+1:]))
		if err != nil {
			return front{}, fmt.Errorf("its %s %w", key, err)
		}
		*to = oneLine(v)
	}
	return f, nil
}

// indented are the lines that belong to the key before them, without their
// indentation.
func indented(lines []string) []string {
	var own []string
	for _, l := range lines {
		if l != "" && l[0] != ' ' && l[0] != '\t' {
			break
		}
		own = append(own, strings.TrimSpace(l))
	}
	return own
}

// scalar is the text of a value, of which rest stands beside its key and more in
// the lines after it.
func scalar(rest string, more []string) (string, error) {
	if rest == "" {
		return plain("", more), nil
	}
	switch rest[0] {
	case '|', '>':
		if !blockHeader(rest[1:]) {
			return "", errors.New("begins like a block and is none")
		}
		return strings.Join(more, " "), nil
	case '\'':
		return single(strings.Join(append([]string{rest[1:]}, more...), " "))
	case '"':
		return double(fold(rest[1:], more))
	case '[', '{', '&', '*', '!', '%', '@', '`':
		return "", errors.New("is not a text")
	}
	return plain(rest, more), nil
}

// blockHeader reports whether s can follow the sign of a block: an indentation
// digit, a sign for the last line breaks, a comment.
func blockHeader(s string) bool {
	s, comment, found := strings.Cut(s, "#")
	if found && comment != "" && !strings.HasSuffix(s, " ") {
		return false
	}
	s = strings.TrimSpace(s)
	return len(s) <= 2 && strings.Trim(s, "+-123456789") == ""
}

// plain is an unquoted value; a comment ends each of its lines.
func plain(rest string, more []string) string {
	var parts []string
	for _, l := range append([]string{rest}, more...) {
		if strings.HasPrefix(l, "#") {
			l = ""
		}
		if i := strings.Index(l, " #"); i >= 0 {
			l = l[:i]
		}
		parts = append(parts, l)
	}
	return strings.Join(parts, " ")
}

// after refuses what follows a closing quote, unless it is a comment.
func after(s string) error {
	t := strings.TrimSpace(s)
	if t == "" || t[0] == '#' && s != t {
		return nil
	}
	return errors.New("goes on after its closing quote")
}

var errOpen = errors.New("has no closing quote")

// single is the text up to a closing single quote; two of them stand for one.
func single(s string) (string, error) {
	var b strings.Builder
	for {
		text, rest, ok := strings.Cut(s, "'")
		if !ok {
			return "", errOpen
		}
		b.WriteString(text)
		if !strings.HasPrefix(rest, "'") {
			return b.String(), after(rest)
		}
		b.WriteByte('\'')
		s = rest[1:]
	}
}

// fold joins the lines of a double-quoted value; a backslash at the end of a
// line joins without a space.
func fold(first string, more []string) string {
	var b strings.Builder
	b.WriteString(first)
	prev := first
	for _, l := range more {
		if slashes := len(prev) - len(strings.TrimRight(prev, `\`)); slashes%2 == 1 {
			b.WriteByte('\n') // with the backslash an escape that stands for nothing
		} else {
			b.WriteByte(' ')
		}
		b.WriteString(l)
		prev = l
	}
	return b.String()
}

// escapes of one letter. What would not show becomes a space.
var escapes = map[byte]string{
	'0': " ", 'a': " ", 'b': " ", 't': " ", '\t': " ", 'n': " ", 'v': " ", 'f': " ", 'r': " ", 'e': " ",
	' ': " ", '"': `"`, '/': "/", '\\': `\`, 'N': " ", '_': " ", 'L': " ", 'P': " ", '\n': "",
}

// double is the text up to a closing double quote.
func double(s string) (string, error) {
	var b strings.Builder
	for {
		i := strings.IndexAny(s, `"\`)
		if i < 0 || s[i] == '\\' && i+1 == len(s) {
			return "", errOpen
		}
		b.WriteString(s[:i])
		if s[i] == '"' {
			return b.String(), after(s[i+1:])
		}
		c := s[i+1]
		s = s[i+2:]
		digits, hex := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		text, known := escapes[c]
		switch {
		case known:
			b.WriteString(text)
		case hex && len(s) >= digits:
			r, err := strconv.ParseUint(s[:digits], 16, 32)
			if err != nil || r > utf8.MaxRune {
				return "", errors.New("has a bad escape")
			}
			b.WriteRune(rune(r)) // a lone surrogate becomes U+FFFD
			s = s[digits:]
		default:
			return "", errors.New("has a bad escape")
		}
	}
}
