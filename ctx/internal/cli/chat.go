package cli

import (
	"context"
	"os"
	"os/signal"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/chat"
	"cortexfs.org/ctx/internal/runs"
	"cortexfs.org/libctx"
	ucli "github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

func chatCommand() *command {
	return &command{
		name: "chat", args: "AGENT", fixed: 1, short: "talk with an agent",
		long: "A message is sent with Enter; a line that ends in \\ goes on in the next one, and\n" +
			"several pasted lines are one message. While a run is active, Enter says what\n" +
			"comes after it and Alt+Enter says it at once; Ctrl+C cancels the run. In a chat\n" +
			"that does nothing Ctrl+C leaves, as does Ctrl+D. /help lists the commands.\n" +
			"From a pipe every line is a message, and only answers go to standard output.\n" +
			"--session makes that session the current one.",
		examples: []string{
			"ctx agent chat coder",
			"ctx agent chat --session review --workspace ~/src/app reviewer",
			"printf '%s\\n' 'read README.md' 'and now in one sentence' | ctx agent chat coder",
		},
		flags: []ucli.Flag{sessionFlag(), workspaceFlag()},
		run: onAgent(func(ctx context.Context, from *caller.Caller, a libctx.Agent, in *input) error {
			dir, err := runs.Directory(from, in.String("workspace"))
			if err != nil {
				return err
			}
			return chat.Run(ctx, from, a, chat.Options{Session: in.String("session"), Workspace: dir, Signals: endings})
		}),
	}
}

// endings delivers what asks a program to end, so that it can leave its terminal
// as it was. It is not given back: a signal that is on its way at that moment would
// end the program at once.
func endings() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGTERM, unix.SIGHUP)
	return c
}
