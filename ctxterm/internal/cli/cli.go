// Package cli is the command line of ctxterm.
package cli

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"cortexfs.org/ctxterm/internal/hostterm"
	"cortexfs.org/ctxterm/internal/ptyproc"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
	"github.com/urfave/cli/v2"
)

// Streams are what the process was started with.
type Streams struct {
	In, Out, Err *os.File
	Env          []string
}

const description = `With --listen, ctxterm is a terminal that clients come to and leave. PROGRAM
(without one, /ctx/bin/tsh) runs on a pseudo-terminal of its own, with or without
anybody who looks. Clients connect to a Unix socket and watch, attach, or show
text between the program's output; see ctx agent watch and ctx agent attach. A
client that comes late gets the whole picture at once, and one that reads slowly
holds nobody up. The terminal is as large as the smallest attached client. With
--dir, what happens is recorded there. SIGTERM, SIGHUP and SIGINT hang the program
up. When it has ended, everything it printed goes to the clients and the record
before ctxterm ends.

Without --listen, ctxterm types its own standard input on a private
pseudo-terminal and copies what the program shows to its standard output.

Either way it exits with the status of PROGRAM: its exit code, or 128 plus the
number of the signal that ended it; 127 if it was not found, 126 if it could not
be executed.

Examples:

   ctxterm --listen /tmp/work.sock -- bash
   ctxterm --size 100x30 -- ls --color`

// Main runs one command line and returns the exit code.
func Main(args []string, std Streams) int {
	status := 0
	app := &cli.App{
		Name: "ctxterm", Usage: "give a program a terminal of its own",
		UsageText: "ctxterm --listen SOCKET|fd:N [--size COLSxROWS] [--dir DIR|fd:N] [--clipboard] -- [PROGRAM ARGS…]\n" +
			"ctxterm [--size COLSxROWS] -- PROGRAM ARGS…",
		Description: description,
		Version:     libctx.Build(), HideHelpCommand: true,
		Writer: std.Out, ErrWriter: std.Err,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "size", Usage: "first size in characters, `COLSxROWS`; else, without --listen, that of the terminal ctxterm runs on; else 80x24"},
			&cli.StringFlag{Name: "listen", Usage: "serve clients on `SOCKET`, a path, or fd:N, a listening socket that was passed; to that one only processes outside of the pid namespace may connect"},
			&cli.StringFlag{Name: "dir", Usage: "record what happens in `DIR`, a path, or fd:N, a directory that was passed; only with --listen"},
			&cli.BoolFlag{Name: "clipboard", Usage: "let the program set the clipboards of clients; only with --listen"},
		},
		OnUsageError:   func(_ *cli.Context, err error, _ bool) error { return misused(err) },
		ExitErrHandler: func(*cli.Context, error) {},
		Action: func(c *cli.Context) error {
			var err error
			if c.IsSet("listen") {
				status, err = serve(c, std)
				return err
			}
			status, err = run(c, std)
			return err
		},
	}
	if err := app.Run(args); err != nil {
		fmt.Fprintf(std.Err, "ctxterm: %v\n", err)
		if hint := errdefs.HintOf(err); hint != "" {
			fmt.Fprintf(std.Err, "hint: %s\n", hint)
		}
		var start *startError
		if errors.As(err, &start) {
			return start.status
		}
		return errdefs.KindOf(err).Exit()
	}
	return status
}

// startError carries the exit code that env(1) has for the same failure.
type startError struct {
	error
	status int
}

func (e *startError) Unwrap() error { return e.error }

// start starts the program.
func start(c ptyproc.Config) (*ptyproc.Proc, error) {
	p, err := ptyproc.Start(c)
	switch errdefs.KindOf(err) {
	case errdefs.NotFound:
		err = &startError{err, 127}
	case errdefs.Denied:
		err = &startError{err, 126}
	}
	return p, err
}

func run(c *cli.Context, std Streams) (int, error) {
	if c.IsSet("dir") || c.IsSet("clipboard") {
		return 0, errdefs.New(errdefs.Invalid, "--dir and --clipboard need --listen")
	}
	if !c.Args().Present() {
		return 0, errdefs.New(errdefs.Invalid, "no PROGRAM").WithHint("ctxterm -- PROGRAM ARGS…")
	}
	size, follow, err := chooseSize(c.String("size"), std)
	if err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)

	defer hostterm.Raw(std.In)()
	p, err := start(ptyproc.Config{Argv: c.Args().Slice(), Env: withTerm(std.Env), Size: size})
	if err != nil {
		return 0, err
	}
	defer p.Close()

	done := make(chan struct{})
	defer close(done)
	go relay(p, signals, follow, done)
	go p.Feed(std.In) // ends with its input, or with the process
	return p.Run(std.Out)
}

// relay passes signals on to the program until done; a change of the size of
// the terminal we run on is a resize if follow says which.
func relay(p *ptyproc.Proc, signals <-chan os.Signal, follow *os.File, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case s := <-signals:
			if s != syscall.SIGWINCH {
				p.Signal(s.(syscall.Signal))
				continue
			}
			if follow != nil {
				if size, ok := hostterm.SizeOf(follow); ok {
					p.Resize(size)
				}
			}
		}
	}
}

// chooseSize is the size asked for, else that of a terminal among the standard
// streams, which is then followed.
func chooseSize(flag string, std Streams) (size termwire.Size, follow *os.File, err error) {
	if flag != "" {
		size, err = termwire.ParseSize(flag)
		return size, nil, err
	}
	for _, f := range []*os.File{std.Out, std.In, std.Err} {
		if size, ok := hostterm.SizeOf(f); ok {
			return size, f, nil
		}
	}
	return termwire.DefaultSize, nil, nil
}

// withTerm makes sure that a program on a terminal has a TERM.
func withTerm(env []string) []string {
	for _, kv := range env {
		if strings.HasPrefix(kv, "TERM=") && kv != "TERM=" {
			return env
		}
	}
	return append(env[:len(env):len(env)], "TERM=xterm-256color")
}
