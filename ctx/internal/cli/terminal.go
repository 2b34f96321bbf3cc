package cli

import (
	"context"
	"os"
	"os/signal"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/terminals"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/terminal"
	ucli "github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

func terminalCommands() *command {
	return &command{
		name: "terminal", short: "look at the terminals of agents, join them, keep what they showed",
		long: "A TERMINAL is named by its id, terminal-AGENT-SESSION, or as AGENT/SESSION, which\n" +
			"also works where two sessions have the same id.",
		sub: []*command{
			createCommand(), terminalListCommand(), terminalStatusCommand(), terminalWatchCommand(), terminalAttachCommand(), exportCommand(),
		},
	}
}

// startFlags are those of what starts a terminal.
func startFlags() []ucli.Flag {
	return []ucli.Flag{
		sessionFlag(),
		&ucli.StringFlag{Name: "workspace", Usage: "the directory `DIR` that is /workspace inside (else this one)"},
		&ucli.BoolFlag{Name: "ro", Usage: "it can not be written"},
		&ucli.StringSliceFlag{Name: "mount", Usage: "another directory inside, `SRC:DST:ro|rw` (repeatable)"},
		cwdFlag(),
		&ucli.StringFlag{Name: "supervisor", Value: "auto", Usage: "`WHO` keeps it: systemd, direct, or auto, which is systemd where it is there"},
		&ucli.BoolFlag{Name: "no-emit", Usage: "the agent's tool calls are not shown in it"},
		&ucli.BoolFlag{Name: "clipboard", Usage: "programs inside may set the clipboard of who looks"},
	}
}

func startTerminal(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
	return terminals.Start(ctx, from, a, terminals.StartOptions{
		Session: in.String("session"), Workspace: in.String("workspace"), ReadOnly: in.Bool("ro"), Mounts: in.StringSlice("mount"),
		Cwd: in.String("cwd"), Supervisor: in.String("supervisor"), NoEmit: in.Bool("no-emit"), Clipboard: in.Bool("clipboard"),
	})
}

func startCommand() *command {
	return &command{
		name: "start", args: "AGENT", fixed: 1, short: "start the terminal of a session",
		long: "A shell of the agent's tools in the agent's sandbox, which goes on when you leave.\n" +
			"This directory, or --workspace, is /workspace inside; its .git can not be written.\n" +
			"The session's tool calls are shown in it as they happen. Returns when the terminal\n" +
			"answers; a start that fails leaves nothing behind.",
		examples: []string{
			"ctx agent start coder",
			"ctx agent start --session review --workspace ~/src/app --ro reviewer",
			"ctx agent start --mount ~/data:/data:ro --supervisor direct coder",
		},
		flags: startFlags(),
		run:   onAgent(startTerminal),
	}
}

func createCommand() *command {
	return &command{
		name: "create", args: "AGENT", fixed: 1, input: true, short: "start the terminal of a session, as agent start does",
		long:     "A command of its own is reserved: what runs is the agent's shell.",
		examples: []string{"ctx terminal create coder", "ctx terminal create --cwd /workspace/docs coder"},
		flags:    startFlags(),
		run: onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			if len(in.args) > 1 {
				return errdefs.New(errdefs.Invalid, "a terminal with a command of its own is reserved, and not offered yet").
					WithHint("ctx terminal create %s starts the agent's shell", a)
			}
			return startTerminal(ctx, from, a, in)
		}),
	}
}

func terminalListCommand() *command {
	return &command{
		name: "list", short: "list the terminals of the tree, those that ended too",
		long:     "Whether one lives is asked of its supervisor. It starts nothing.",
		examples: []string{"ctx terminal list", "ctx terminal list --json | jq -r 'select(.state==\"running\").terminal'"},
		run:      func(ctx context.Context, from *caller.Caller, _ *input) error { return terminals.List(ctx, from) },
	}
}

// onTerminal is a command about one terminal, its first word.
func onTerminal(do func(context.Context, *caller.Caller, terminal.Place, *input) error) func(context.Context, *caller.Caller, *input) error {
	return func(ctx context.Context, from *caller.Caller, in *input) error {
		p, err := terminals.Named(from, in.arg(0))
		if err != nil {
			return err
		}
		return do(ctx, from, p, in)
	}
}

func terminalStatusCommand() *command {
	return &command{
		name: "status", args: "TERMINAL", fixed: 1, short: "print what a terminal is",
		examples: []string{"ctx terminal status terminal-coder-default", "ctx terminal status --json coder/review | jq .state"},
		run: onTerminal(func(ctx context.Context, from *caller.Caller, p terminal.Place, _ *input) error {
			return terminals.Status(ctx, from, p)
		}),
	}
}

func exportCommand() *command {
	return &command{
		name: "export", args: "TERMINAL", fixed: 1, short: "print what a terminal showed, as far as it is kept",
		long:     "Byte for byte into a file or a pipe. --cast writes an asciicast, which players\nknow. What is damaged is reported with its line.",
		examples: []string{"ctx terminal export terminal-coder-default > coder.out", "ctx terminal export --cast coder/review > review.cast"},
		flags:    []ucli.Flag{&ucli.BoolFlag{Name: "cast", Usage: "as an asciicast, with times and sizes"}},
		run: onTerminal(func(_ context.Context, from *caller.Caller, p terminal.Place, in *input) error {
			return terminals.Export(from, p, in.Bool("cast"))
		}),
	}
}

const (
	attachAbout = "Every key goes to the program but Ctrl+^, which begins a command: d leaves, a\n" +
		"second Ctrl+^ is sent, ? explains. --escape names another key. The terminal is as\n" +
		"large as the smallest that is attached. Exits with the program's exit code when it\n" +
		"ends, with 0 when you leave, and with 69 when the terminal is lost."
	watchAbout = "Nothing you type reaches it: q and Ctrl+C leave, as does Ctrl+^ d. Into a pipe go\n" +
		"the bytes it shows from now on."
)

func escapeFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "escape", Usage: "the `KEY` that begins commands: ^A, ctrl-], or none (else ^^)"}
}

func agentAttachCommand() *command {
	return &command{
		name: "attach", args: "AGENT", fixed: 1, short: "join the terminal of a session", long: attachAbout,
		examples: []string{"ctx agent attach coder", "ctx agent attach --session review --escape ^] reviewer"},
		flags:    []ucli.Flag{sessionFlag(), escapeFlag()},
		run:      ofAgent(terminals.Attach),
	}
}

func agentWatchCommand() *command {
	return &command{
		name: "watch", args: "AGENT", fixed: 1, short: "look at the terminal of a session", long: watchAbout,
		examples: []string{"ctx agent watch coder", "ctx agent watch coder | tee coder.out"},
		flags:    []ucli.Flag{sessionFlag(), escapeFlag()},
		run:      ofAgent(terminals.Watch),
	}
}

func terminalAttachCommand() *command {
	return &command{
		name: "attach", args: "TERMINAL", fixed: 1, short: "join a terminal", long: attachAbout,
		examples: []string{"ctx terminal attach terminal-coder-default", "ctx terminal attach coder/review"},
		flags:    []ucli.Flag{escapeFlag()},
		run:      shown(terminals.Attach),
	}
}

func terminalWatchCommand() *command {
	return &command{
		name: "watch", args: "TERMINAL", fixed: 1, short: "look at a terminal", long: watchAbout,
		examples: []string{"ctx terminal watch terminal-coder-default", "ctx terminal watch coder/review | head -c 1000"},
		flags:    []ucli.Flag{escapeFlag()},
		run:      shown(terminals.Watch),
	}
}

// show is attach or watch.
type show func(context.Context, *caller.Caller, terminal.Place, terminals.ShowOptions) error

func shown(do show) func(context.Context, *caller.Caller, *input) error {
	return onTerminal(func(ctx context.Context, from *caller.Caller, p terminal.Place, in *input) error {
		return do(ctx, from, p, showing(in))
	})
}

func ofAgent(do show) func(context.Context, *caller.Caller, *input) error {
	return onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
		p, err := terminals.Of(from, a, in.String("session"))
		if err != nil {
			return err
		}
		return do(ctx, from, p, showing(in))
	})
}

// showing is how a terminal is shown, as the command line has it.
func showing(in *input) terminals.ShowOptions {
	o := terminals.ShowOptions{Signals: terminalSignals}
	if in.IsSet("escape") {
		key := in.String("escape")
		o.Escape = &key
	}
	return o
}

// terminalSignals delivers what matters to who shows a terminal on another one, to
// the end of the program.
func terminalSignals() <-chan os.Signal {
	c := make(chan os.Signal, 16)
	for _, s := range []os.Signal{unix.SIGWINCH, unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGCONT} {
		if !signal.Ignored(s) { // by nohup, for example
			signal.Notify(c, s)
		}
	}
	return c
}
