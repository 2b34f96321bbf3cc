package cli

import (
	"context"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	ucli "github.com/urfave/cli/v2"
)

// command is one row of the command table, with its help. A command has either
// sub-commands or run.
type command struct {
	name     string
	args     string // as help shows them
	short    string // one line
	long     string // what there is to know, lines at most 78 columns
	examples []string

	fixed int  // words it must have; with input, those before the input
	most  int  // words it may have; fixed if less
	input bool // what follows the fixed words is input, verbatim
	paged bool // what it prints may be longer than a screen

	flags []ucli.Flag
	sub   []*command
	run   func(ctx context.Context, from *caller.Caller, in *input) error
}

// input is what a command was given, flags by name and words by place.
type input struct {
	*ucli.Context
	args []string
}

// arg is the n-th word, "" if there is none.
func (in *input) arg(n int) string {
	if n < len(in.args) {
		return in.args[n]
	}
	return ""
}

// agent is the first word as an agent name.
func (in *input) agent() (libctx.Agent, error) { return libctx.ParseAgent(in.arg(0)) }

func (c *command) find(name string) *command {
	for _, s := range c.sub {
		if s.name == name {
			return s
		}
	}
	return nil
}

// check tests the number of words.
func (c *command) check(args []string, words string) error {
	switch {
	case len(args) < c.fixed:
		return errdefs.New(errdefs.Invalid, "something is missing: %s %s", words, c.args).WithHint("%s --help", words)
	case !c.input && len(args) > max(c.fixed, c.most):
		return errdefs.New(errdefs.Invalid, "too many words: %q", args[max(c.fixed, c.most)]).WithHint("%s --help", words)
	}
	return nil
}

// help is the help text of the command that path ends in.
func help(path []*command) string {
	var words []string
	for _, c := range path {
		words = append(words, c.name)
	}
	c, name := path[len(path)-1], strings.Join(words, " ")
	var b strings.Builder
	usage := name
	if len(c.flags) > 0 || len(path) == 1 {
		usage += " [FLAGS]"
	}
	if len(c.sub) > 0 {
		usage += " COMMAND"
	}
	if c.args != "" {
		usage += " " + c.args
	}
	b.WriteString(usage + "\n\n  " + strings.ToUpper(c.short[:1]) + c.short[1:] + ".\n")
	if c.long != "" {
		b.WriteString("\n  " + strings.ReplaceAll(c.long, "\n", "\n  ") + "\n")
	}
	if len(c.sub) > 0 {
		b.WriteString("\nCommands\n" + indent(commandRows(c)))
	}
	if len(c.flags) > 0 {
		b.WriteString("\nFlags\n" + indent(flagRows(c.flags)))
	}
	if len(c.examples) > 0 {
		b.WriteString("\nExamples\n  " + strings.Join(c.examples, "\n  ") + "\n")
	}
	if len(path) > 1 {
		b.WriteString("\nFlags of every command: ctx --help\n")
	}
	return b.String()
}

func commandRows(c *command) [][]string {
	var rows [][]string
	for _, s := range c.sub {
		rows = append(rows, []string{s.name, s.short})
	}
	return rows
}

func flagRows(flags []ucli.Flag) [][]string {
	var rows [][]string
	for _, f := range flags {
		doc, ok := f.(ucli.DocGenerationFlag)
		if !ok {
			continue
		}
		// A word in back quotes in the usage text is the name of the value.
		usage, value := doc.GetUsage(), ""
		if _, rest, quoted := strings.Cut(usage, "`"); quoted {
			value, _, _ = strings.Cut(rest, "`")
			usage = strings.ReplaceAll(usage, "`", "")
		}
		flag := "--" + f.Names()[0]
		if doc.TakesValue() {
			flag += " " + value
		}
		rows = append(rows, []string{flag, usage})
	}
	return rows
}

func indent(rows [][]string) string {
	text := strings.TrimSuffix(render.Table(nil, rows, true, nil), "\n")
	return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n"
}
