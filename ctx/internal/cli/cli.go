// Package cli is ctx's command line: the table of commands with their flags and
// help, the one function that puts arguments in order, and how the outcome of a
// command becomes a line and an exit code. What commands do is elsewhere.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/config"
	"cortexfs.org/ctx/internal/doctor"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/ctx/internal/runs"
	"cortexfs.org/ctx/internal/system"
	"cortexfs.org/ctx/internal/tools"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	ucli "github.com/urfave/cli/v2"
)

// exitClosed is the exit code when the reader of the output went away: what a
// shell shows for a program that died of SIGPIPE.
const exitClosed = 141

// Streams are the three of a program.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Run runs ctx with its arguments, without the program's name, and returns the
// exit code: 0 ok, 1 failed, 2 usage or bad input, 13 permission denied, 69
// unavailable, 70 internal, 130 cancelled; what a tool returned for agent tsh;
// 141 when nobody reads the output any more.
func Run(ctx context.Context, args []string, c config.Config, s Streams) int {
	out := &output.Printer{Out: s.Out, Err: s.Err, OutTTY: c.Stdout, ErrTTY: c.Stderr, Color: c.Color}
	from := &caller.Caller{Printer: out, In: s.In, Config: c, Interrupts: interrupts}
	what, err := run(ctx, args, from)
	return exit(out, what, err)
}

// interrupts delivers Ctrl+C. Two are kept: the second must not be lost while
// the first is acted on.
func interrupts() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 2)
	if !signal.Ignored(os.Interrupt) { // as a shell does for what it runs in the background
		signal.Notify(c, os.Interrupt)
	}
	return c, func() { signal.Stop(c) }
}

// exit reports an error and chooses the exit code.
func exit(out *output.Printer, what string, err error) int {
	if failed := out.Failed(); failed != nil {
		if output.Closed(failed) {
			if out.Paged() {
				return 0
			}
			return exitClosed
		}
		err = failed
	}
	var tool runs.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &tool):
		return int(tool)
	case errors.Is(err, doctor.ErrBroken), errors.Is(err, tools.ErrRefused):
		return 1 // the table has said everything
	}
	out.Error(what, err)
	return errdefs.KindOf(err).Exit()
}

// run finds the command and runs it; what names it for messages.
func run(ctx context.Context, args []string, from *caller.Caller) (what string, err error) {
	program := table()
	l, err := reorder(program, args)
	if err != nil {
		return "", err
	}
	last := l.path[len(l.path)-1]
	switch {
	case l.help:
		_, err := io.WriteString(from, help(l.path))
		return "", err
	case l.version:
		return "version", system.Version(from)
	case len(last.sub) > 0:
		return l.what(), errdefs.New(errdefs.Invalid, "no command").WithHint("%s --help lists the commands", l.words())
	}
	if err := last.check(l.args, l.words()); err != nil {
		return l.what(), err
	}
	app := &ucli.App{
		Name: program.name, Flags: program.flags, Commands: commands(program, from),
		Writer: from.Out, ErrWriter: from.Err,
		HideHelp: true, HideVersion: true, DisableSliceFlagSeparator: true,
		ExitErrHandler: func(*ucli.Context, error) {},
		OnUsageError:   usage,
	}
	return l.what(), app.RunContext(ctx, l.argv())
}

// usage is what the flag parser has against a value.
func usage(_ *ucli.Context, err error, _ bool) error {
	return errdefs.New(errdefs.Invalid, "%w", err)
}

// commands turns the table into what the flag parser runs.
func commands(parent *command, from *caller.Caller) []*ucli.Command {
	var list []*ucli.Command
	for _, c := range parent.sub {
		list = append(list, &ucli.Command{
			Name: c.name, Flags: c.flags, Subcommands: commands(c, from),
			HideHelp: true, OnUsageError: usage,
			Action: func(in *ucli.Context) error {
				if err := prepare(from, in); err != nil {
					return err
				}
				if c.paged {
					defer from.Page(output.Pager(from.Config.Pager))()
				}
				return c.run(in.Context, from, &input{Context: in, args: in.Args().Slice()})
			},
		})
	}
	return list
}

// prepare applies the flags of the program.
func prepare(from *caller.Caller, in *ucli.Context) error {
	from.JSON, from.Quiet, from.Verbose = in.Bool("json"), in.Bool("quiet"), in.Bool("verbose")
	from.Color = from.Color && !in.Bool("no-color")
	env := from.Config.Paths
	env.Flag = in.String("root")
	if env.Flag == "" && env.CTXRoot == "" && in.Bool("system") {
		env.Flag = paths.SystemRoot
	}
	var err error
	from.Layout, err = paths.Find(env)
	return err
}
