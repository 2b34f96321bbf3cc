package cli

import (
	"context"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/models"
	ucli "github.com/urfave/cli/v2"
)

func modelCommands() *command {
	return &command{
		name: "model", short: "look at models, name them, and try them",
		sub: []*command{
			{
				name: "ls", short: "list the models of the tree",
				examples: []string{"ctx model ls", "ctx model ls --json | jq -r 'select(.limit!=null).model'"},
				run:      func(_ context.Context, from *caller.Caller, _ *input) error { return models.List(from) },
			},
			{
				name: "show", args: "MODEL", fixed: 1, short: "print what is known of a model, and who uses it",
				examples: []string{"ctx model show main", "ctx model show openai/gpt-5.1"},
				run: func(_ context.Context, from *caller.Caller, in *input) error {
					return models.Show(from, in.arg(0))
				},
			},
			modelRunCommand(),
			{
				name: "alias", args: "NAME [MODEL]", fixed: 1, most: 2, short: "make a name mean a model",
				long: "MODEL is PROVIDER/NAME. An alias may stand wherever a model is named, in the\n" +
					"control model of agents too: a change counts from their next run on. It is\n" +
					"refused if it would leave an agent with a window its model does not have. In a\n" +
					"tree of another user the alias is yours alone.",
				examples: []string{"ctx model alias main openai/gpt-5.1", "ctx model alias fast ollama/llama3.2", "ctx model alias --remove fast"},
				flags: []ucli.Flag{
					&ucli.BoolFlag{Name: "own", Usage: "for your own agents alone"},
					&ucli.BoolFlag{Name: "remove", Usage: "remove the alias"},
				},
				run: func(_ context.Context, from *caller.Caller, in *input) error {
					return models.Alias(from, in.arg(0), in.arg(1), models.AliasOptions{Own: in.Bool("own"), Remove: in.Bool("remove")})
				},
			},
		},
	}
}

func modelRunCommand() *command {
	return &command{
		name: "run", args: "MODEL [INPUT…|-]", fixed: 1, input: true, short: "ask a model once and print its answer",
		long: "No agent, no session, no tools. The words of INPUT are joined by one space;\n" +
			"\"-\", or no INPUT with standard input not a terminal, reads standard input. A\n" +
			"JSON object there is a request as the model socket takes it, and the answer is\n" +
			"printed as its frames. Ctrl+C cancels.",
		examples: []string{
			"ctx model run debug/echo hello",
			"git diff | ctx model run main -",
			`echo '{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}' | ctx model run main`,
		},
		flags: []ucli.Flag{rawFlag()},
		run: func(ctx context.Context, from *caller.Caller, in *input) error {
			return models.Run(ctx, from, in.arg(0), in.args[1:], in.Bool("raw"))
		},
	}
}
