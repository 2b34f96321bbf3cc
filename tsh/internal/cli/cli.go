// Package cli is the command line of tsh, the tool shell: builtins that find
// and explain tools, and tools by name. It finds tools on CTX_PATH only; a word
// that is neither builtin nor tool is never looked for anywhere else.
package cli

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/tsh/internal/config"
)

// Run is the program: args are the words behind its name, the result is its
// exit code.
func Run(args []string, conf config.Shell, out, errs io.Writer) int {
	sh := &shell{conf: conf, out: out}
	err := sh.app(errs).Run(append([]string{"tsh"}, arrange(args)...))
	if err == nil {
		return 0
	}
	fmt.Fprintf(errs, "tsh: %s\n", inert.Text(err.Error()))
	if hint := errdefs.HintOf(err); hint != "" {
		fmt.Fprintf(errs, "hint: %s\n", inert.Text(hint))
	}
	return errdefs.KindOf(err).Exit()
}

// shell is one invocation.
type shell struct {
	conf   config.Shell
	layout paths.Layout
	out    io.Writer
}

func (sh *shell) app(errs io.Writer) *cli.App {
	cli.VersionPrinter = func(*cli.Context) { fmt.Fprintln(sh.out, "tsh", libctx.Build()) }
	wrong := func(_ *cli.Context, err error, _ bool) error { return errdefs.New(errdefs.Invalid, "%w", err) }
	command := func(name, args, usage string, do func(*cli.Context) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{
			Name: name, ArgsUsage: args, Usage: usage, Flags: flags, Action: do, OnUsageError: wrong, HideHelpCommand: true,
		}
	}
	return &cli.App{
		Name:            "tsh",
		Usage:           "find, explain and run tools",
		UsageText:       "tsh [--root DIR] BUILTIN | TOOL [WORDS…]",
		Version:         libctx.Version,
		Writer:          sh.out,
		ErrWriter:       errs,
		HideHelpCommand: true,
		ExitErrHandler:  func(*cli.Context, error) {},
		OnUsageError:    wrong,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "root", Aliases: []string{"r"}, Usage: "the tree, instead of CTX_ROOT"},
			&cli.BoolFlag{Name: "list", Usage: "the same as tools"},
			cli.HelpFlag, // not added by itself beside a builtin called help
		},
		Before: sh.open,
		Action: sh.tool,
		Commands: []*cli.Command{
			command("which", "NAME…", "print the files that tools are", sh.which),
			command("type", "NAME…", "say what a name means", sh.typeOf),
			command("command", "-v NAME…", "print what would be run", sh.command, &cli.BoolFlag{Name: "v"}),
			command("tools", "[GROUP]", "list tools and groups of tools", sh.tools,
				&cli.BoolFlag{Name: "l", Usage: "every tool with file and description"},
				&cli.BoolFlag{Name: "json", Usage: "one object a line"}),
			command("help", "[TOOL]", "explain the shell or a tool", sh.help),
		},
	}
}

// builtins are the names of the commands above.
var builtins = map[string]bool{"which": true, "type": true, "command": true, "tools": true, "help": true}

// open finds the tree.
func (sh *shell) open(c *cli.Context) error {
	env := sh.conf.Paths
	env.Flag = c.String("root")
	layout, err := paths.Find(env)
	sh.layout = layout
	return err
}

// tool is what a word that is no builtin means. Running a tool needs an agent's
// identity, and admission by the agent's host.
func (sh *shell) tool(c *cli.Context) error {
	switch {
	case c.Bool("list"):
		return sh.tools(c)
	case c.NArg() == 0:
		return errdefs.New(errdefs.Unsupported, "the interactive shell is not offered yet").WithHint("tsh --help lists the builtins")
	}
	name := c.Args().First()
	if _, err := sh.find(name); err != nil {
		return err
	}
	if sh.conf.Agent == "" {
		return errdefs.New(errdefs.Unavailable, "%s: tools run with the identity of an agent, and there is none here", name).
			WithHint("ctx agent tsh AGENT -- %s …", name)
	}
	return errdefs.New(errdefs.Unavailable, "%s: calls go through the agent's host, not through this shell", name).
		WithHint("ctx agent tsh %s -- %s …", sh.conf.Agent, name)
}
