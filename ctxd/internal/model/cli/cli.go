// Package cli is ctxmodel's command line: it makes the process one that nobody
// else can look into, forgets the environment, and serves the model socket or
// does one request.
package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/urfave/cli/v2"
)

// options are the flags of both commands.
type options struct {
	root, config, secrets string
	level                 string
	idle                  time.Duration // negative: the default
	fd                    int           // of a connection; negative: none
	raw                   bool
}

// Run runs ctxmodel with its arguments, the program's name first, and returns
// the exit code. The context ends with the first SIGTERM or SIGINT.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var o options
	app := &cli.App{
		Name:            "ctxmodel",
		Usage:           "talk to model providers",
		Version:         libctx.Build(),
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		Description: "ctxmodel is the one program of the suite that reads keys and uses the network. ctxd serve starts it when\n" +
			"somebody connects to the model socket. It takes nothing from its environment but where the tree is.",
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              usage,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return errdefs.New(errdefs.Invalid, "unknown command %q", c.Args().First()).WithHint("ctxmodel --help lists the commands")
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			command("serve", "", "serve the model socket", "Takes a listening socket as descriptor 3 when LISTEN_FDS is set (systemd, ctxd serve),\n"+
				"else makes its own. With --fd it answers the one request of a connection and ends.\n\n"+
				"   ctxmodel serve &", &o,
				func(c *cli.Context) error {
					if c.NArg() != 0 {
						return errdefs.New(errdefs.Invalid, "serve takes no arguments, not %d", c.NArg()).WithHint("ctxmodel serve --help")
					}
					if c.IsSet("idle") && o.idle < 0 {
						return errdefs.New(errdefs.Invalid, "--idle %s is negative", o.idle)
					}
					return serve(c.Context, o, stderr)
				},
				&cli.DurationFlag{
					Name: "idle", Usage: "end after `D` without a connection; 0 is never", Value: -1, Destination: &o.idle,
					DefaultText: "1m with a passed socket, else never",
				},
				&cli.IntFlag{Name: "fd", Usage: "answer the connection that is descriptor `N`", Destination: &o.fd, Value: -1, DefaultText: "none"}),
			command("run", "MODEL [INPUT...|-]", "do one request", "Without INPUT, or with -, it is read from standard input; a JSON object there is a request\n"+
				"(docs/reference/model.md), and the answer is its frames.\n\n"+
				"   ctxmodel run debug/echo hello", &o,
				func(c *cli.Context) error {
					if c.NArg() == 0 {
						return errdefs.New(errdefs.Invalid, "run takes a model").WithHint("ctxmodel run --help")
					}
					return run(c.Context, o, c.Args().Slice(), stdin, stdout, stderr)
				},
				&cli.BoolFlag{Name: "raw", Usage: "print the frames of the answer, one a line", Destination: &o.raw}),
		},
	}
	err := app.RunContext(ctx, append([]string{"ctxmodel"}, arrange(args[1:])...))
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "ctxmodel: %v\n", err)
	if hint := errdefs.HintOf(err); hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", hint)
	}
	return errdefs.KindOf(err).Exit()
}

func command(name, args, short, long string, o *options, run cli.ActionFunc, flags ...cli.Flag) *cli.Command {
	return &cli.Command{
		Name: name, Usage: short, ArgsUsage: args, Description: long,
		OnUsageError:    usage,
		HideHelpCommand: true,
		Action:          run,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "root", Usage: "the tree `DIR` (else CTX_ROOT, /ctx, the user's own)", Destination: &o.root},
			&cli.StringFlag{Name: "config", Usage: "`DIR` of providers.d (else the tree's)", Destination: &o.config},
			&cli.StringFlag{Name: "secrets", Usage: "`DIR` of the keys (else the tree's)", Destination: &o.secrets},
			&cli.StringFlag{Name: "log-level", Usage: "`LEVEL` of the log on stderr: debug, info, warn, error", Destination: &o.level, DefaultText: "info; warn of run"},
		}, flags...),
	}
}

func usage(_ *cli.Context, err error, _ bool) error {
	return errdefs.New(errdefs.Invalid, "%w", err).WithHint("ctxmodel --help lists commands and flags")
}

// valued are the flags that take a value.
var valued = []string{"root", "config", "secrets", "log-level", "idle", "fd"}

// arrange moves flags to where the flag parser looks for them, behind the
// command, so that they may stand anywhere. Words behind "--" are arguments
// whatever they look like, and so is "-".
func arrange(args []string) []string {
	var flags, words []string
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "--" {
			words = append(words, args[i+1:]...)
			break
		}
		if word == "-" || !strings.HasPrefix(word, "-") {
			words = append(words, word)
			continue
		}
		name, _, given := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !given && slices.Contains(valued, name) && i+1 < len(args) {
			i++
			word += "=" + args[i]
		}
		flags = append(flags, word)
	}
	if len(words) == 0 {
		return append(flags, "--")
	}
	return append(append(append([]string{words[0]}, flags...), "--"), words[1:]...)
}
