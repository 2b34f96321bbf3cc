// Package cli is ctxd's command line: it turns flags into options, calls the
// daemon, and turns what it returns into a line and an exit code.
package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"cortexfs.org/ctxd/internal/daemon"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/urfave/cli/v2"
)

// Run runs ctxd with its arguments, the program's name first, and returns the
// exit code. The context ends with the first SIGTERM or SIGINT.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o daemon.Options
	status := 0
	app := &cli.App{
		Name:            "ctxd",
		Usage:           "serve agents over Unix sockets",
		Version:         libctx.Build(),
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		Description: "ctxd agent NAME serves one agent's socket. ctxd serve holds the sockets of all agents and\n" +
			"starts ctxd agent when somebody connects; ctx starts it by itself where nothing listens.\n" +
			"ctxd terminal AGENT is one terminal of an agent; ctx agent start has it started.",
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              usage,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "root", Usage: "the tree `DIR` (else CTX_ROOT, /ctx, the user's own)", Destination: &o.Root},
			&cli.StringFlag{Name: "log-level", Usage: "`LEVEL` of the log on stderr: debug, info, warn, error", Value: "info", Destination: &o.Level},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return errdefs.New(errdefs.Invalid, "unknown command %q", c.Args().First()).WithHint("ctxd --help lists the commands")
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			command("agent", "NAME", "serve one agent", "Takes a listening socket as descriptor 3 when LISTEN_FDS is set (systemd, ctxd serve),\n"+
				"else makes its own. Ends when idle only if somebody else keeps the socket, or with --idle.\n\n"+
				"   ctxd --root ~/tree agent coder", &o, 1,
				func(c *cli.Context) error { return daemon.Agent(c.Context, c.Args().First(), o) }),
			command("serve", "", "hold the sockets of all agents", "One for each tree; ends with SIGTERM. Says READY=1 to NOTIFY_SOCKET.\n\n"+
				"   ctxd serve &", &o, 0,
				func(c *cli.Context) error { return daemon.Serve(c.Context, o) }),
			command("admin", "", "change root's tree for its users", "Serves the admin socket of system mode, as root: whoever connects makes, changes and removes\n"+
				"agents of their own. Takes a listening socket as descriptor 3 when LISTEN_FDS is set, and then ends when idle.\n\n"+
				"   ctxd admin &", &o, 0,
				func(c *cli.Context) error { return daemon.Admin(c.Context, o) }),
			terminal(&o, &status),
		},
	}
	err := app.RunContext(ctx, append([]string{"ctxd"}, arrange(args[1:])...))
	if err == nil {
		return status
	}
	fmt.Fprintf(stderr, "ctxd: %v\n", err)
	if hint := errdefs.HintOf(err); hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", hint)
	}
	return errdefs.KindOf(err).Exit()
}

// command is one subcommand with exactly n arguments and its own flags about servers.
func command(name, args, short, long string, o *daemon.Options, n int, run func(*cli.Context) error) *cli.Command {
	return &cli.Command{
		Name: name, Usage: short, ArgsUsage: args, Description: long,
		OnUsageError:    usage,
		HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.DurationFlag{
				Name: "idle", Usage: "end an agent's server after `D` without connection and run; 0 is never (default: 1m with a passed socket, else never)",
			},
			&cli.DurationFlag{
				Name: "approval-timeout", Usage: "refuse a call when nobody answered after `D` whether it may run, at most and by default 5m",
			},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != n {
				return errdefs.New(errdefs.Invalid, "%s takes %d arguments, not %d", name, n, c.NArg()).
					WithHint("ctxd %s --help", name)
			}
			o.Idle = -1
			if c.IsSet("idle") {
				if o.Idle = c.Duration("idle"); o.Idle < 0 {
					return errdefs.New(errdefs.Invalid, "--idle %s is negative", o.Idle)
				}
			}
			o.Approval = libctx.ApprovalTimeout
			if c.IsSet("approval-timeout") {
				if o.Approval = c.Duration("approval-timeout"); o.Approval < time.Second || o.Approval > libctx.ApprovalTimeout {
					return errdefs.New(errdefs.Invalid, "--approval-timeout %s is not between 1s and %s", o.Approval, libctx.ApprovalTimeout)
				}
			}
			return run(c)
		},
	}
}

func usage(_ *cli.Context, err error, _ bool) error {
	return errdefs.New(errdefs.Invalid, "%w", err).WithHint("ctxd --help lists commands and flags")
}
