package cli

import (
	"context"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/providers"
	"cortexfs.org/libctx/provider"
	ucli "github.com/urfave/cli/v2"
)

func providerCommands() *command {
	return &command{
		name: "provider", short: "say where models come from",
		sub: []*command{
			{
				name: "ls", short: "list the providers",
				examples: []string{"ctx provider ls"},
				run:      func(_ context.Context, from *caller.Caller, _ *input) error { return providers.List(from) },
			},
			providerAddCommand(),
			{
				name: "remove", args: "NAME", fixed: 1, short: "remove a provider, its models and its keys",
				long:     "Refused while the window of an agent is a number that rests on one of the models.",
				examples: []string{"ctx provider remove openai"},
				run: func(_ context.Context, from *caller.Caller, in *input) error {
					return providers.Remove(from, in.arg(0))
				},
			},
			{
				name: "key", args: "NAME", fixed: 1, input: true, short: "keep the key of a provider",
				long: "Reads one line from standard input; a terminal does not show it. Only ctxmodel\n" +
					"ever reads the key.",
				examples: []string{"ctx provider key openai", "pass show openai | ctx provider key openai"},
				flags:    []ucli.Flag{&ucli.StringFlag{Name: "slot", Usage: "the `SLOT` it is kept in (else the one the provider uses)"}},
				run: func(_ context.Context, from *caller.Caller, in *input) error {
					return providers.SetKey(from, in.arg(0), in.String("slot"), in.args[1:])
				},
			},
			{
				name: "test", args: "NAME", fixed: 1, short: "try a provider with one tiny request",
				examples: []string{"ctx provider test openai", "ctx provider test openai --model gpt-5.1"},
				flags:    []ucli.Flag{&ucli.StringFlag{Name: "model", Usage: "the `MODEL` that is asked (else its first)"}},
				run: func(ctx context.Context, from *caller.Caller, in *input) error {
					return providers.Test(ctx, from, in.arg(0), in.String("model"))
				},
			},
			{
				name: "detect", short: "look for servers of models on this machine",
				examples: []string{"ctx provider detect"},
				run:      func(ctx context.Context, from *caller.Caller, _ *input) error { return providers.Detect(ctx, from) },
			},
		},
	}
}

func providerAddCommand() *command {
	return &command{
		name: "add", args: "NAME", fixed: 1, short: "say where a provider is and which models it has",
		long: "Each model becomes NAME/MODEL in the tree; characters that names can not have\n" +
			"become dashes. A context limit is known if --limit says it, or for well-known\n" +
			"models of a preset; a number in an agent's window needs one. For a provider that\n" +
			"is there, --model alone adds models, or changes their limits, and --slot alone\n" +
			"makes it use another key.\n" +
			"Formats: " + strings.Join(provider.Formats, ", ") + ".",
		examples: []string{
			"ctx provider add openai --preset openai --model gpt-5.1",
			"ctx provider add local --base-url http://127.0.0.1:8080/v1 --model qwen3 --no-key",
			"ctx provider add openai --model gpt-5-mini",
			"ctx provider add openai --slot work",
		},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "preset", Usage: "a well-known `PRESET`: openai, anthropic, google, ollama, …"},
			&ucli.StringFlag{Name: "base-url", Usage: "the `URL` that the format's paths are added to"},
			&ucli.StringFlag{Name: "format", Usage: "the `FORMAT` it speaks, if not that of the preset"},
			&ucli.StringSliceFlag{Name: "model", Usage: "a `MODEL`, by the provider's own name (repeatable)"},
			&ucli.StringSliceFlag{Name: "limit", Usage: "tokens of context, `[MODEL=]N` (repeatable)"},
			&ucli.StringSliceFlag{Name: "max-output", Usage: "tokens of one answer, `[MODEL=]N` (repeatable)"},
			&ucli.StringFlag{Name: "proxy", Usage: "the `URL` of a proxy"},
			&ucli.BoolFlag{Name: "insecure", Usage: "plain http to another machine is meant"},
			&ucli.BoolFlag{Name: "no-key", Usage: "it needs no key"},
			&ucli.StringFlag{Name: "slot", Usage: "the `SLOT` of the key it uses (else default)"},
		},
		run: func(_ context.Context, from *caller.Caller, in *input) error {
			return providers.Add(from, in.arg(0), providers.AddOptions{
				Preset: in.String("preset"), BaseURL: in.String("base-url"), Format: in.String("format"), Slot: in.String("slot"),
				Models: in.StringSlice("model"), Limits: in.StringSlice("limit"), MaxOutputs: in.StringSlice("max-output"),
				Proxy: in.String("proxy"), Insecure: in.Bool("insecure"), NoKey: in.Bool("no-key"),
			})
		},
	}
}
