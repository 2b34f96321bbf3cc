package cli

import (
	"context"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/runs"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	ucli "github.com/urfave/cli/v2"
)

func sendCommand() *command {
	return &command{
		name: "send", args: "AGENT [INPUT…|-]", fixed: 1, input: true, short: "send input to an agent and print its answer",
		long: "The words of INPUT are joined by one space; \"-\", or no INPUT with standard\n" +
			"input not a terminal, reads standard input; \"-\" behind other words sends it\n" +
			"below them. From the first word of INPUT on, nothing is a flag. The agent\n" +
			"works in --workspace, else in this directory. Ctrl+C cancels the run, a second\n" +
			"one leaves at once. The same --id again prints the same answer and runs\n" +
			"nothing. A call that a person has to allow is denied at once, unless --approve\n" +
			"names its tool, which is the one inside for calls through tsh.",
		examples: []string{
			"ctx agent send counter how long is README.md?",
			"git diff | ctx agent send reviewer 'Review this.' -",
			"ctx agent send --approve shell.exec builder make the tests pass",
			"ctx agent send --session review --timeout 2m reviewer -- --help is documented where?",
			"ctx agent send --raw counter hello | jq -r 'select(.type==\"message\").content[].text'",
		},
		flags: []ucli.Flag{
			sessionFlag(),
			&ucli.StringFlag{Name: "scope", Usage: "`SCOPE` of the session: private, or temp for one that is not kept"},
			workspaceFlag(),
			cwdFlag(),
			idFlag(),
			&ucli.DurationFlag{Name: "timeout", Usage: "cancel the run after `D`, for example 90s"},
			approveFlag(),
			rawFlag(),
		},
		run: onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			if in.IsSet("timeout") && in.Duration("timeout") <= 0 {
				return errdefs.New(errdefs.Invalid, "flag --timeout: is not a positive duration")
			}
			return runs.Send(ctx, from, a, in.args[1:], runs.SendOptions{
				Session: in.String("session"), Scope: in.String("scope"), Workspace: in.String("workspace"),
				Cwd: in.String("cwd"), ID: in.String("id"), Timeout: in.Duration("timeout"), Raw: in.Bool("raw"),
				Approve: in.StringSlice("approve"),
			})
		}),
	}
}

func tshCommand() *command {
	return &command{
		name: "tsh", args: "AGENT -- TOOL [WORDS…]", fixed: 1, input: true, short: "run one tool with an agent's rights",
		long: "No model and no agent program takes part; admission and the sandbox do. Prints\n" +
			"the tool's result and exits with its exit code. A built-in tool takes, in place\n" +
			"of its words, one that is its JSON arguments (ctx tool help TOOL).",
		examples: []string{
			"ctx agent tsh counter -- fs.read README.md",
			"ctx agent tsh builder -- shell.exec 'make test'",
			`ctx agent tsh builder -- shell.exec '{"cmd":"make test","timeout_ms":60000}'`,
		},
		flags: []ucli.Flag{sessionFlag(), workspaceFlag(), cwdFlag(), idFlag(), approveFlag(), rawFlag()},
		run: onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			if len(in.args) == 1 {
				return errdefs.New(errdefs.Invalid, "no tool is named").WithHint("ctx agent tools %s lists them", a)
			}
			return runs.Tsh(ctx, from, a, in.args[1:], runs.TshOptions{
				Session: in.String("session"), Workspace: in.String("workspace"), Cwd: in.String("cwd"),
				ID: in.String("id"), Raw: in.Bool("raw"), Approve: in.StringSlice("approve"),
			})
		}),
	}
}

func resumeCommand() *command {
	return &command{
		name: "resume", args: "AGENT", fixed: 1, short: "show what a session did, and follow what it does",
		long:     "Shows everything after an event (all of it without --after), then what an\nactive run does until it is over. Ctrl+C leaves; it cancels nothing.",
		examples: []string{"ctx agent resume counter", "ctx agent resume --after 01JDX8Z0000000000000000000.4 --raw counter"},
		flags:    []ucli.Flag{sessionFlag(), &ucli.StringFlag{Name: "after", Usage: "only what came after `EVENT`"}, rawFlag()},
		run: onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			return runs.Resume(ctx, from, a, in.String("session"), in.String("after"), in.Bool("raw"))
		}),
	}
}

func cancelCommand() *command {
	return &command{
		name: "cancel", args: "AGENT [RUN]", fixed: 1, most: 2, short: "cancel a run",
		long:     "RUN is a run id or the --id of a send; without it the session's active run.",
		examples: []string{"ctx agent cancel counter", "ctx agent cancel --session review reviewer"},
		flags:    []ucli.Flag{sessionFlag()},
		run: onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			return runs.Cancel(ctx, from, a, in.String("session"), in.arg(1))
		}),
	}
}

func stopCommand() *command {
	return &command{
		name: "stop", args: "AGENT", fixed: 1, short: "stop an agent: its runs, its terminals, its process",
		long: "Its sessions stay; the next send starts the process again. With --session only\n" +
			"this session's runs and terminal are stopped. A terminal is stopped by its receipt:\n" +
			"what runs in its place and is not what was started is left alone, and said.",
		examples: []string{"ctx agent stop counter", "ctx agent stop --session review coder"},
		flags:    []ucli.Flag{&ucli.StringFlag{Name: "session", Usage: "only the session `S`"}},
		run: onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			return runs.Stop(ctx, from, a, in.String("session"))
		}),
	}
}

func agentStatusCommand() *command {
	return &command{
		name: "status", args: "AGENT", fixed: 1, short: "print the state of a session",
		long:     "Asks the agent's process if there is one, else the session's files. It starts\nnothing.",
		examples: []string{"ctx agent status counter", "ctx agent status --session review --json reviewer"},
		flags:    []ucli.Flag{sessionFlag()},
		run: onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			return runs.Status(ctx, from, a, in.String("session"))
		}),
	}
}

func psCommand() *command {
	return &command{
		name: "ps", short: "list the agents and what of them is alive",
		long: "active: a run is under way; idle: a process waits; listening: the next send\n" +
			"starts one; stopped: nothing listens. TERMINALS are the sessions with a living\n" +
			"terminal. The kernel and the supervisors are asked, not files. It wakes no agent.",
		examples: []string{"ctx agent ps", "ctx agent ps --tree"},
		flags:    []ucli.Flag{&ucli.BoolFlag{Name: "tree", Usage: "children below their parents"}},
		run: func(ctx context.Context, from *caller.Caller, in *input) error {
			return runs.PS(ctx, from, in.Bool("tree"))
		},
	}
}

func workspaceFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "workspace", Usage: "the directory `DIR` it works in (else this one)"}
}

func cwdFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "cwd", Usage: "where it starts, a `PATH` as seen inside (else /workspace)"}
}

func idFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "id", Usage: "the `ID` of this request; the same one again runs nothing twice"}
}

func approveFlag() ucli.Flag {
	return &ucli.StringSliceFlag{Name: "approve", Usage: "allow calls of `TOOL` when the agent has to ask; all others are denied (repeatable)"}
}

func rawFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "raw", Usage: "print the frames, one a line, and nothing else"}
}
