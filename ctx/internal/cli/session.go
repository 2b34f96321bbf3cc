package cli

import (
	"context"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/sessions"
	"cortexfs.org/libctx"
	ucli "github.com/urfave/cli/v2"
)

func sessionsCommand() *command {
	return &command{
		name: "sessions", args: "AGENT", fixed: 1, paged: true, short: "list the sessions of an agent, newest first",
		long:     "What is not known of tokens and cost is called unknown; \"at least\" stands\nbefore a sum of which a part is not known.",
		examples: []string{"ctx agent sessions counter"},
		run: onAgent(func(_ context.Context, from *caller.Caller, a libctx.Agent, _ *input) error {
			return sessions.List(from, a)
		}),
	}
}

func historyCommand() *command {
	return &command{
		name: "history", args: "AGENT", fixed: 1, paged: true, short: "print the conversation of a session",
		long: "Reads the session's files; no process is started. Long results are cut, and\n" +
			"what a model thought is left out, unless flags say otherwise. Damage is reported\n" +
			"with its line, what follows it is still shown, and the command fails at the end.",
		examples: []string{"ctx agent history counter", "ctx agent history --reasoning --full coder", "ctx agent history --session review --raw counter | jq ."},
		flags: []ucli.Flag{
			sessionFlag(),
			&ucli.BoolFlag{Name: "reasoning", Usage: "what the model thought, too"},
			&ucli.BoolFlag{Name: "full", Usage: "results of tools whole"},
			&ucli.BoolFlag{Name: "raw", Usage: "the lines of the ledger"},
		},
		run: onAgent(func(_ context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			return sessions.History(from, a, sessions.HistoryOptions{
				Session: in.String("session"), Raw: in.Bool("raw"), Reasoning: in.Bool("reasoning"), Full: in.Bool("full"),
			})
		}),
	}
}

func outputCommand() *command {
	return &command{
		name: "output", args: "AGENT", fixed: 1, paged: true, short: "print the latest text an agent said",
		examples: []string{"ctx agent output counter", "ctx agent output --session review counter > review.txt"},
		flags:    []ucli.Flag{sessionFlag()},
		run: onAgent(func(_ context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			return sessions.Output(from, a, in.String("session"))
		}),
	}
}

func usageCommand() *command {
	return &command{
		name: "usage", args: "AGENT", fixed: 1, paged: true, short: "print what the runs of a session used, and what that cost",
		long: "One line a run, and one for the session. The four kinds of tokens are disjoint.\n" +
			"What is not known is called unknown; \"at least\" stands before a sum of which a\n" +
			"part is not known, as after a request that failed half way.",
		examples: []string{"ctx agent usage coder", "ctx agent usage --session review --json coder | jq 'select(.kind==\"session\")'"},
		flags:    []ucli.Flag{sessionFlag()},
		run: onAgent(func(_ context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			return sessions.PrintUsage(from, a, in.String("session"))
		}),
	}
}

func changesCommand() *command {
	return &command{
		name: "changes", args: "AGENT", fixed: 1, paged: true, short: "list what a session changed in the workspace",
		long: "Each path once, as the last run that changed it left it; first those that other\n" +
			"programs act on by themselves, and those that can be executed. What runs removed\n" +
			"is not listed. What may be missing is said on standard error.",
		examples: []string{"ctx agent changes coder", "ctx agent changes --session review --json coder | jq -r 'select(.executable).path'"},
		flags:    []ucli.Flag{sessionFlag()},
		run: onAgent(func(_ context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			return sessions.Changes(from, a, in.String("session"))
		}),
	}
}

func sessionFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "session", Usage: "the session `S` (else the current one, else default)"}
}
