// Package cli is the command line of tsh, the tool shell outside of an agent's
// host: one command, lines from standard input, or a person at a terminal. What the
// builtins do is package toolshell. Tools are found on CTX_PATH only; they are
// started in the terminal of an agent, once they are admitted, and nowhere else. A
// word that is neither builtin nor tool is never looked for anywhere else.
package cli

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/view"
	"cortexfs.org/tsh/internal/config"
	"cortexfs.org/tsh/internal/inside"
	"cortexfs.org/tsh/internal/job"
)

// Streams are the standard streams of the program.
type Streams struct {
	In                                   io.Reader
	Out, Err                             io.Writer
	InTerminal, OutTerminal, ErrTerminal bool // which of them are terminals
	Told                                 inside.Terminal
}

// Run is the program: args are the words behind its name, the result is its
// exit code.
func Run(args []string, conf config.Shell, std Streams) int {
	sh := &shell{conf: conf, std: std}
	if err := sh.app().Run(append([]string{"tsh"}, arrange(args)...)); err != nil {
		sh.complain(err)
		return errdefs.KindOf(err).Exit()
	}
	return sh.exit
}

// shell is one invocation.
type shell struct {
	conf   config.Shell
	layout paths.Layout
	std    Streams
	agent  *inside.Agent // nil: not in the terminal of one
	loaded toolshell.Store
	exit   int
}

func (sh *shell) app() *cli.App {
	cli.VersionPrinter = func(*cli.Context) { fmt.Fprintln(sh.std.Out, "tsh", libctx.Build()) }
	return &cli.App{
		Name:            "tsh",
		Version:         libctx.Version,
		Writer:          sh.std.Out,
		ErrWriter:       sh.std.Err,
		HideHelpCommand: true,
		// Text, not a template: there is nothing to fill in.
		CustomAppHelpTemplate: flagsHelp + (&toolshell.Shell{Topics: toolshell.Topics()}).Run([]string{"help"}).Text,
		ExitErrHandler:        func(*cli.Context, error) {},
		OnUsageError:          func(_ *cli.Context, err error, _ bool) error { return errdefs.New(errdefs.Invalid, "%w", err) },
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "root", Aliases: []string{"r"}},
			&cli.BoolFlag{Name: "list"},
		},
		Before: sh.open,
		Action: sh.main,
	}
}

const flagsHelp = `tsh [--root DIR] BUILTIN | TOOL [WORD…]     one command; without one, a line each from standard input

  --root DIR, -r DIR  the tree, instead of CTX_ROOT
  --list              the same as tools
  --version, --help

`

// open finds the tree.
func (sh *shell) open(c *cli.Context) error {
	env := sh.conf.Paths
	env.Flag = c.String("root")
	var err error
	if sh.layout, err = paths.Find(env); err != nil {
		return err
	}
	// Within a run calls go through the agent's host, and who only says that there
	// is an agent has none.
	if sh.conf.Agent == "" || sh.conf.Run != "" || !view.IsInside(sh.layout.Root) {
		return nil
	}
	name, err := libctx.ParseAgent(sh.conf.Agent)
	if err != nil {
		return errdefs.New(errdefs.Invalid, "CTX_AGENT: %w", err)
	}
	sh.agent = &inside.Agent{Root: sh.layout.Root, Name: name, Search: sh.search, Told: sh.std.Told}
	return nil
}

func (sh *shell) main(c *cli.Context) error {
	sh.loaded = sh.kept()
	words := c.Args().Slice()
	switch {
	case c.Bool("list"):
		words = append([]string{"tools"}, words...)
	case len(words) == 0 && sh.std.InTerminal && sh.std.OutTerminal && !sh.conf.Dumb:
		return sh.terminal()
	case len(words) == 0:
		return sh.interact()
	}
	sh.run(words, job.Become)
	return nil
}

// complain prints an error as every program of the suite does.
func (sh *shell) complain(errs ...error) {
	fmt.Fprint(sh.std.Err, inert.Text(toolshell.Complaint(errs)))
}
