package cli

import (
	"context"

	"cortexfs.org/ctx/internal/agents"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	ucli "github.com/urfave/cli/v2"
)

// act is a command about one agent, its first word.
type act func(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error

func onAgent(do act) func(context.Context, *caller.Caller, *input) error {
	return func(ctx context.Context, from *caller.Caller, in *input) error {
		a, err := in.agent()
		if err != nil {
			return err
		}
		return do(ctx, from, a, in)
	}
}

func agentCommands() *command {
	return &command{
		name: "agent", short: "make agents, talk to them, look at them",
		sub: []*command{
			newCommand(), lsCommand(), psCommand(), showCommand(), getCommand(), setCommand(), rmCommand(), enableCommand(),
			chatCommand(), sendCommand(), tshCommand(), resumeCommand(), cancelCommand(), startCommand(), stopCommand(), agentStatusCommand(), agentWatchCommand(), agentAttachCommand(),
			steerCommand(), followUpCommand(), finishCommand(),
			historyCommand(), outputCommand(), sessionsCommand(), usageCommand(),
			changesCommand(), promptCommand(), agentEnvCommand(), agentToolsCommand(), inspectCommand(),
		},
	}
}

func newCommand() *command {
	return &command{
		name: "new", args: "NAME", fixed: 1, short: "make an agent that works",
		long: "Writes the agent's control files: it may use tsh, the tools named here, and\n" +
			"nothing else. --exec copies a program that speaks sdk-envelope-v1; --model\n" +
			"lets a model drive the agent. Without --perm the agent gets the least bits its\n" +
			"tools need.",
		examples: []string{
			"ctx agent new counter --exec ./counter --tool fs.list --tool fs.read",
			"ctx agent new builder --exec ./builder --tool shell.exec --perm r-x",
			"ctx agent new fetcher --exec ./fetcher --allow 'network:default connect'",
			"ctx agent new helper --model debug/echo --native fs.read",
		},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "exec", Usage: "the program `FILE` that is the agent; it is copied"},
			&ucli.StringFlag{Name: "model", Usage: "the `MODEL` that drives the agent"},
			&ucli.StringFlag{Name: "perm", Usage: "the ceiling `rwx`, for example r-x"},
			&ucli.StringSliceFlag{Name: "tool", Usage: "a `TOOL` it may use (repeatable)"},
			&ucli.StringSliceFlag{Name: "native", Usage: "a `TOOL` it may use and call directly (repeatable)"},
			&ucli.StringSliceFlag{Name: "mount", Usage: "a directory it sees, `SRC:DST:ro|rw` (repeatable)"},
			&ucli.StringSliceFlag{Name: "allow", Usage: "more policy, `'CLASS:NAME PERM'` (repeatable)"},
			&ucli.StringFlag{Name: "system-prompt", Usage: "its system.md from `FILE`"},
			&ucli.StringFlag{Name: "owner", Usage: "whose it is, a `USER` or uid, in a tree of root's; for root alone"},
		},
		run: func(ctx context.Context, from *caller.Caller, in *input) error {
			return agents.New(ctx, from, in.arg(0), agents.NewOptions{
				Exec: in.String("exec"), Model: in.String("model"), Perm: in.String("perm"),
				Tools: in.StringSlice("tool"), Native: in.StringSlice("native"),
				Mounts: in.StringSlice("mount"), Allow: in.StringSlice("allow"),
				SystemPrompt: in.String("system-prompt"), Owner: in.String("owner"),
			})
		},
	}
}

func lsCommand() *command {
	return &command{
		name: "ls", short: "list the agents of the tree",
		examples: []string{"ctx agent ls", "ctx agent ls --json | jq -r .agent"},
		run:      func(ctx context.Context, from *caller.Caller, _ *input) error { return agents.List(ctx, from) },
	}
}

func showCommand() *command {
	return &command{
		name: "show", args: "AGENT", fixed: 1, short: "print every control of an agent",
		examples: []string{"ctx agent show counter"},
		run: onAgent(func(_ context.Context, from *caller.Caller, a libctx.Agent, _ *input) error {
			return agents.Show(from, a)
		}),
	}
}

func getCommand() *command {
	return &command{
		name: "get", args: "AGENT CONTROL", fixed: 2, short: "print one control of an agent",
		examples: []string{"ctx agent get counter policy", "ctx agent get counter perm"},
		run: onAgent(func(_ context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			return agents.Get(from, a, in.arg(1))
		}),
	}
}

func setCommand() *command {
	return &command{
		name: "set", args: "AGENT CONTROL VALUE|-", fixed: 2, input: true, short: "change one control of an agent",
		long: "The value is checked, and replaces the old one at once or not at all. \"-\"\n" +
			"reads standard input. A change takes effect with the next run or call.",
		examples: []string{
			"ctx agent set counter perm r-x",
			"ctx agent set counter timeout 5m",
			"ctx agent get counter policy | sed /shell/d | ctx agent set counter policy -",
			"ctx agent set counter perm -- -w-",
		},
		run: onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			return agents.Set(ctx, from, a, in.arg(1), in.args[2:])
		}),
	}
}

func rmCommand() *command {
	return &command{
		name: "rm", args: "AGENT", fixed: 1, short: "stop an agent and remove it",
		long:     "Its sessions and data stay unless --purge is given.",
		examples: []string{"ctx agent rm counter", "ctx agent rm counter --purge"},
		flags:    []ucli.Flag{&ucli.BoolFlag{Name: "purge", Usage: "its sessions and data too"}},
		run: onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			return agents.Remove(ctx, from, a, in.Bool("purge"))
		}),
	}
}

func enableCommand() *command {
	return &command{
		name: "enable", args: "AGENT", fixed: 1, short: "let an agent's socket listen, in the machine's tree",
		long: "Makes the agent's systemd units what its files ask for. agent new does it by\n" +
			"itself; this is for agents that came into the tree in another way.",
		examples: []string{"ctx agent enable counter"},
		run: onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, _ *input) error {
			return agents.Enable(ctx, from, a)
		}),
	}
}

func agentEnvCommand() *command {
	return &command{
		name: "env", args: "AGENT", fixed: 1, short: "print the environment of an agent's processes",
		examples: []string{"ctx agent env counter"},
		run: onAgent(func(_ context.Context, from *caller.Caller, a libctx.Agent, _ *input) error {
			return agents.Env(from, a)
		}),
	}
}

func agentToolsCommand() *command {
	return &command{
		name: "tools", args: "AGENT", fixed: 1, short: "list the tools on an agent's path and what admission says",
		examples: []string{"ctx agent tools counter", "ctx agent tools counter --json | jq -r 'select(.allowed).tool'"},
		run: onAgent(func(_ context.Context, from *caller.Caller, a libctx.Agent, _ *input) error {
			return agents.Tools(from, a)
		}),
	}
}

func inspectCommand() *command {
	return &command{
		name: "inspect", args: "AGENT", fixed: 1, short: "print what an agent is, may do, and does",
		examples: []string{"ctx agent inspect counter"},
		run: onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, _ *input) error {
			return agents.Inspect(ctx, from, a)
		}),
	}
}
