// Package cli is the command line of tsh, the tool shell outside of an agent's
// host: one command, or an interactive loop. What the builtins do is package
// toolshell. Tools are found on CTX_PATH only and are never started from here; a
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
	"cortexfs.org/tsh/internal/config"
)

// Streams are the standard streams of the program.
type Streams struct {
	In         io.Reader
	Out, Err   io.Writer
	InTerminal bool // standard input is a terminal: a prompt is shown
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
	layout, err := paths.Find(env)
	sh.layout = layout
	return err
}

func (sh *shell) main(c *cli.Context) error {
	sh.loaded = sh.kept()
	words := c.Args().Slice()
	switch {
	case c.Bool("list"):
		words = append([]string{"tools"}, words...)
	case len(words) == 0:
		return sh.interact()
	}
	sh.run(words)
	return nil
}

// complain prints an error as every program of the suite does.
func (sh *shell) complain(errs ...error) {
	fmt.Fprint(sh.std.Err, inert.Text(toolshell.Complaint(errs)))
}
