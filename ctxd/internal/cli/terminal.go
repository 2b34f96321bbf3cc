package cli

import (
	"cortexfs.org/ctxd/internal/daemon"
	"cortexfs.org/libctx/errdefs"
	"github.com/urfave/cli/v2"
)

// terminal is the command of a terminal's launcher, whose exit code is that of
// the terminal's program.
func terminal(o *daemon.Options, status *int) *cli.Command {
	var t daemon.TerminalOptions
	return &cli.Command{
		Name: "terminal", Usage: "launch the terminal of a session and stay with it", ArgsUsage: "AGENT",
		Description: "Runs ctxterm in the agent's sandbox until its program ends, and ends as that does.\n" +
			"ctx agent start calls it through a supervisor; by hand it stays in the foreground.\n\n" +
			"   ctxd terminal --session default --workspace ~/src coder",
		OnUsageError:    usage,
		HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "session", Usage: "of `SESSION`", Value: "default", Destination: &t.Session},
			&cli.StringFlag{Name: "workspace", Usage: "show `DIR` at /workspace (default: the current directory)", Destination: &t.Workspace},
			&cli.BoolFlag{Name: "ro", Usage: "show it read-only", Destination: &t.ReadOnly},
			&cli.StringSliceFlag{Name: "mount", Usage: "show another directory: `SRC:DST:ro|rw`"},
			&cli.StringFlag{Name: "cwd", Usage: "start at `PATH`, as seen inside (default: the agent's cwd control)", Destination: &t.Cwd},
			&cli.StringFlag{Name: "size", Usage: "of the terminal until somebody attaches: `COLSxROWS`", Destination: &t.Size},
			&cli.BoolFlag{Name: "clipboard", Usage: "let programs set the clipboard of whoever is attached", Destination: &t.Clipboard},
			&cli.BoolFlag{Name: "no-emit", Usage: "do not show the agent's tool calls in it", Destination: &t.NoEmit},
			&cli.StringFlag{Name: "supervisor", Usage: "`NAME` of who started this, for the record", Destination: &t.Supervisor},
			&cli.StringFlag{Name: "report", Usage: "tell the datagram socket at `PATH` how the start went", Destination: &t.Report},
		},
		Action: func(c *cli.Context) (err error) {
			if c.NArg() != 1 {
				return errdefs.New(errdefs.Invalid, "terminal takes 1 argument, not %d", c.NArg()).WithHint("ctxd terminal --help")
			}
			t.Agent, t.Mounts = c.Args().First(), c.StringSlice("mount")
			*status, err = daemon.Terminal(c.Context, *o, t)
			return err
		},
	}
}
