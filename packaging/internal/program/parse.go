package program

import (
	"fmt"
	"regexp"
	"strings"
)

// sections are the heads of help, by what is below them.
var sections = map[string]string{
	"Commands": "commands", "COMMANDS:": "commands",
	"Flags": "flags", "OPTIONS:": "flags", "GLOBAL OPTIONS:": "flags",
	"Examples": "examples", "Examples:": "examples",
	"NAME:": "name", "USAGE:": "usage", "VERSION:": "version", "DESCRIPTION:": "long",
}

// footer is the last line of the help of ctx's commands.
const footer = "Flags of every command: ctx --help"

// parse reads the help of a command and the names of its commands.
func parse(words, text string) (*Command, []string, error) {
	c := &Command{Words: words}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	section := "usage"
	if _, headed := sections[lines[0]]; !headed {
		c.use(lines[0])
		lines, section = lines[1:], "short"
	}
	var names, long []string
	for _, line := range lines {
		trimmed := strings.TrimSpace(line)
		if next, ok := sections[trimmed]; ok {
			section = next
			continue
		}
		switch {
		case line == footer || section == "version":
		case section == "long":
			long = append(long, strings.TrimPrefix(strings.TrimPrefix(line, "  "), " "))
		case trimmed == "":
			if section == "short" && c.Short != "" {
				section = "long"
			}
		case section == "name":
			_, c.Short, _ = strings.Cut(trimmed, " - ")
		case section == "short":
			c.Short = strings.TrimSuffix(strings.ToLower(trimmed[:1])+trimmed[1:], ".")
		case section == "usage":
			c.use(trimmed)
		case section == "examples":
			c.Examples = append(c.Examples, trimmed)
		case section == "commands":
			name, _ := row(trimmed)
			names = append(names, name)
		case section == "flags":
			f, err := flag(trimmed)
			if err != nil {
				return nil, nil, err
			}
			c.Flags = append(c.Flags, f)
		default:
			return nil, nil, fmt.Errorf("%q is not understood", line)
		}
	}
	c.paragraphs(long)
	if c.Short == "" || len(c.Usage) == 0 {
		return nil, nil, fmt.Errorf("it says neither what it is for nor how it is used")
	}
	return c, names, nil
}

// use takes one form of usage. What flags there are is said elsewhere.
func (c *Command) use(line string) {
	rest := strings.TrimSpace(strings.TrimPrefix(line, c.Words))
	rest = strings.ReplaceAll(rest, "[command options]", "[FLAGS]")
	rest = strings.ReplaceAll(rest, "[global options] command [FLAGS]", "[FLAGS] COMMAND")
	c.Usage = append(c.Usage, rest)
}

// paragraphs takes the long text: paragraphs, and indented lines, which are
// examples.
func (c *Command) paragraphs(lines []string) {
	var now []string
	end := func() {
		if len(now) > 0 {
			c.Long = append(c.Long, strings.Join(now, " "))
		}
		now = nil
	}
	for _, line := range lines {
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "":
			end()
		case strings.HasPrefix(line, "  "):
			end()
			c.Examples = append(c.Examples, trimmed)
		default:
			now = append(now, trimmed)
		}
	}
	end()
}

// fallback is the default of a flag that is not set, which says nothing.
var fallback = regexp.MustCompile(` \(default: (false|0s|0)\)$`)

// flag reads a row such as "--help, -h  show help".
func flag(line string) (Flag, error) {
	name, text := row(line)
	var f Flag
	repeatable := false // which the parser of flags shows as "--mount M [ --mount M ]"
	for _, word := range strings.Split(name, ", ") {
		word, value, _ := strings.Cut(word, " ")
		if !strings.HasPrefix(word, "-") {
			return f, fmt.Errorf("%q is no flag", line)
		}
		f.Names = append(f.Names, word)
		if value, _, again := strings.Cut(value, " [ --"); value != "" {
			f.Value, repeatable = value, again
		}
	}
	f.Text = fallback.ReplaceAllString(text, "")
	if repeatable {
		f.Text += " (repeatable)"
	}
	if f.Text == "" {
		return f, fmt.Errorf("flag %s is not explained", f.Names[0])
	}
	return f, nil
}

// row divides a row of two columns.
func row(line string) (first, second string) {
	first, second, _ = strings.Cut(line, "  ")
	return first, strings.TrimSpace(second)
}
