package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cortexfs.org/packaging/internal/program"
)

func (b *Book) expand(what, of string) (string, error) {
	if what == "page" {
		text, err := os.ReadFile(filepath.Join(b.top, of))
		if err != nil {
			return "", err
		}
		_, rest, ok := strings.Cut(string(text), "\n")
		if !ok || !strings.HasPrefix(string(text), "# ") {
			return "", fmt.Errorf("%s has no title", of)
		}
		return preface(rest), nil
	}
	c := b.find(of)
	if c == nil {
		return "", fmt.Errorf("there is no command %q", of)
	}
	b.used[c] = true
	switch what {
	case "synopsis":
		return synopsis(c), nil
	case "long":
		return strings.Join(escaped(c.Long), "\n\n"), nil
	case "commands":
		var all []string
		for _, s := range c.Commands {
			b.used[s] = true
			if len(s.Commands) > 0 {
				all = append(all, group(s))
				continue
			}
			all = append(all, command(s))
		}
		return strings.Join(all, "\n"), nil
	case "flags":
		return flags(c.Flags), nil
	case "examples":
		return "```\n" + strings.Join(examples(c), "\n") + "\n```\n", nil
	}
	return "", fmt.Errorf("%s %s is not known", what, of)
}

func (b *Book) find(words string) *program.Command {
	for _, p := range b.programs {
		if c := p.Find(words); c != nil {
			return c
		}
	}
	return nil
}

// preface puts what stands before the first head of a page below one.
func preface(text string) string { return "## Description\n" + text }

func synopsis(c *program.Command) string {
	of := []*program.Command{c}
	if len(c.Usage) == 1 && strings.HasSuffix(c.Usage[0], "COMMAND") && strings.Contains(c.Words, " ") {
		of = c.Commands
	}
	var lines []string
	for _, c := range of {
		for _, usage := range c.Usage {
			lines = append(lines, called(c.Words, usage))
		}
	}
	return strings.Join(lines, "  \n") + "\n" // two blanks break a line
}

// called is a command line: words to type are strong, names of values are not.
func called(words, usage string) string {
	if usage == "" {
		return "**" + escape(words) + "**"
	}
	return "**" + escape(words) + "** " + escape(usage)
}

func command(c *program.Command) string {
	text := "### " + escape(strings.TrimSpace(c.Words+" "+c.Usage[0])) + "\n\n" + escape(sentence(c.Short)) + "\n\n"
	for _, p := range c.Long {
		text += escape(p) + "\n\n"
	}
	return text + flags(slices.DeleteFunc(slices.Clone(c.Flags), func(f program.Flag) bool { return f.Names[0] == "--help" }))
}

// group is a command whose commands have a page of their own.
func group(c *program.Command) string {
	page := strings.ReplaceAll(c.Words, " ", "-")
	return "### " + escape(c.Words+" COMMAND") + "\n\n" + escape(sentence(c.Short)) + " See **" + page + "**(1).\n\n"
}

func flags(all []program.Flag) string {
	var text strings.Builder
	for _, f := range all {
		var names []string
		for _, name := range f.Names {
			names = append(names, "**"+escape(name)+"**")
		}
		term := strings.Join(names, ", ")
		if f.Value != "" {
			term += " *" + escape(f.Value) + "*"
		}
		text.WriteString(term + "\n: " + escape(sentence(f.Text)) + "\n\n")
	}
	return text.String()
}

func examples(c *program.Command) []string {
	all := c.Examples
	for _, s := range c.Commands {
		all = append(all[:len(all):len(all)], examples(s)...)
	}
	return all
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "." }

func escaped(all []string) []string {
	var out []string
	for _, s := range all {
		out = append(out, escape(s))
	}
	return out
}

var escaper = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "#", `\#`, "|", `\|`, "~", `\~`, "&", `\&`,
)

// escape makes text plain in Markdown.
func escape(s string) string { return escaper.Replace(s) }
