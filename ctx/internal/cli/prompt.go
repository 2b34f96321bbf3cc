package cli

import (
	"context"

	"cortexfs.org/ctx/internal/agents"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	ucli "github.com/urfave/cli/v2"
)

func promptCommand() *command {
	return &command{
		name: "prompt", args: "AGENT", fixed: 1, short: "print the system message that a model agent sends",
		long: "Made from the agent's files and from the rules and skills around the workspace,\n" +
			"as a run would make it now; no process is started. Where only a run knows what\n" +
			"to say, a sentence in parentheses stands. With --session the tools that are\n" +
			"loaded in that session are shown.",
		examples: []string{"ctx agent prompt coder", "ctx agent prompt --workspace ~/src/app --cwd /workspace/docs coder"},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "session", Usage: "show the loaded tools of session `S`"},
			workspaceFlag(), cwdFlag(),
		},
		run: onAgent(func(_ context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			return agents.Prompt(from, a, agents.PromptOptions{
				Session: in.String("session"), Workspace: in.String("workspace"), Cwd: in.String("cwd"),
			})
		}),
	}
}
