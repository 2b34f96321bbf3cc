package cli

import (
	"context"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/runs"
	"cortexfs.org/libctx"
	ucli "github.com/urfave/cli/v2"
)

func steerCommand() *command {
	return &command{
		name: "steer", args: "AGENT [INPUT…|-]", fixed: 1, input: true, short: "say something into the run of a model agent",
		long: "The model is told before it is asked the next time. The input is as for send.\n" +
			"When the command returns, the words are kept; that they were accepted is said\n" +
			"on standard error. Whoever follows the run sees when the model gets them.",
		examples: []string{"ctx agent steer coder leave the tests alone", "ctx agent steer --session review reviewer - < notes.txt"},
		flags:    []ucli.Flag{sessionFlag(), idFlag()},
		run:      speak(runs.Steer),
	}
}

func followUpCommand() *command {
	return &command{
		name: "follow-up", args: "AGENT [INPUT…|-]", fixed: 1, input: true, short: "say what comes next, when the run would end",
		long:     "The model is told where the run would end, and the run goes on. The input is as\nfor send.",
		examples: []string{"ctx agent follow-up coder and then run the tests"},
		flags:    []ucli.Flag{sessionFlag(), idFlag()},
		run:      speak(runs.FollowUp),
	}
}

func finishCommand() *command {
	return &command{
		name: "finish", args: "AGENT [INPUT…|-]", fixed: 1, input: true, short: "let the run come to an end without more tools",
		long: "As steer, and from then on the run may call no tool. Without INPUT the model is\n" +
			"asked to answer with what it has; \"-\" reads standard input.",
		examples: []string{"ctx agent finish coder", "ctx agent finish coder that is enough, sum it up"},
		flags:    []ucli.Flag{sessionFlag(), idFlag()},
		run:      speak(runs.Finish),
	}
}

// speak is a command that says something into a run.
func speak(how runs.Word) func(context.Context, *caller.Caller, *input) error {
	return onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
		return runs.Speak(ctx, from, a, how, in.args[1:], in.String("session"), in.String("id"))
	})
}
