package cli

import (
	"context"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/doctor"
	"cortexfs.org/ctx/internal/system"
	ucli "github.com/urfave/cli/v2"
)

// table is every command of ctx. It is made anew for every run, because the
// flag parser keeps values in it.
func table() *command {
	return &command{
		name:  "ctx",
		short: "run agents whose agents, tools and sessions are files",
		long: "An agent is a program or a model with a name, a home, and files that say what\n" +
			"it may do. Make a tree, make an agent, send it something:",
		examples: []string{
			"ctx init",
			"ctx agent new counter --exec ./counter --tool fs.list --tool fs.read",
			"ctx agent send counter 'how long are these files?'",
			"ctx doctor",
		},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "root", Usage: "the tree `DIR` (else CTX_ROOT, /ctx, your own)"},
			&ucli.BoolFlag{Name: "json", Usage: "one JSON object a line instead of tables"},
			&ucli.BoolFlag{Name: "quiet", Usage: "no notes, only results and errors"},
			&ucli.BoolFlag{Name: "verbose", Usage: "more notes"},
			&ucli.BoolFlag{Name: "no-color", Usage: "no colour, as with NO_COLOR"},
			&ucli.BoolFlag{Name: "version", Usage: "which ctx this is"},
			&ucli.BoolFlag{Name: "help", Usage: "what a command does (also -h)"},
		},
		sub: []*command{
			initCommand(), statusCommand(), agentCommands(), terminalCommands(), modelCommands(), providerCommands(), toolCommands(), policyCommands(), fileCommands(),
			doctorCommand(), envCommand(), abiCommand(), completeCommand(), versionCommand(),
		},
	}
}

func initCommand() *command {
	return &command{
		name: "init", short: "make a tree, or repair the one that is there",
		long: "Makes the directories, the built-in tools, and links to the programs of the\n" +
			"suite. Agents, sessions and your own tools are never touched. Prints what it\n" +
			"made. With --system and the units of the suite the tree is mounted at /ctx, and\n" +
			"the sockets by which users reach it listen.",
		examples: []string{"ctx init", "ctx init --root ~/trees/work", "sudo ctx init --system"},
		flags:    []ucli.Flag{&ucli.BoolFlag{Name: "system", Usage: "a tree of root for all users, at /ctx unless --root says otherwise"}},
		run: func(ctx context.Context, from *caller.Caller, in *input) error {
			return system.Init(ctx, from, in.Bool("system"))
		},
	}
}

func statusCommand() *command {
	return &command{
		name: "status", short: "say which tree is meant and what runs for it",
		examples: []string{"ctx status", "ctx status --json | jq -r .root"},
		run:      func(_ context.Context, from *caller.Caller, _ *input) error { return system.Status(from) },
	}
}

func envCommand() *command {
	return &command{
		name: "env", short: "print the variables that lead programs to this tree",
		examples: []string{`eval "export $(ctx env | grep CTX_ROOT)"`, "ctx env --json"},
		run:      func(_ context.Context, from *caller.Caller, _ *input) error { return system.Env(from) },
	}
}

func abiCommand() *command {
	return &command{
		name: "abi", short: "print the versions of the interfaces others build on",
		examples: []string{"ctx abi"},
		run:      func(_ context.Context, from *caller.Caller, _ *input) error { return system.ABI(from) },
	}
}

func versionCommand() *command {
	return &command{
		name: "version", short: "print which ctx this is",
		examples: []string{"ctx version"},
		run:      func(_ context.Context, from *caller.Caller, _ *input) error { return system.Version(from) },
	}
}

func doctorCommand() *command {
	return &command{
		name: "doctor", short: "check everything agents need, and name the remedies",
		long: "Looks at the tree, its owners and modes, the agents' files, the runtime\n" +
			"directory, the programs, the disk, and tries whether a sandbox can start. In\n" +
			"the machine's tree it also looks at the mount, the units and the keys.\n" +
			"Exits with 1 if something is broken.",
		examples: []string{"ctx doctor", `ctx doctor --json | jq 'select(.state!="ok")'`},
		run:      func(ctx context.Context, from *caller.Caller, _ *input) error { return doctor.Run(ctx, from) },
	}
}
