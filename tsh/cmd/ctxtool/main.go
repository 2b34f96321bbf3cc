// Command ctxtool is the built-in tools of CortexFS in one program, the
// interpreter of their two-line files, and the first step inside every sandbox.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/tsh/internal/config"
	"cortexfs.org/tsh/internal/entry"
	"cortexfs.org/tsh/internal/multicall"
	"cortexfs.org/tsh/internal/toolfile"
	"golang.org/x/sys/unix"
)

func main() {
	// A command that a tool runs has the tool's uid: it must not reach the
	// tool's descriptors or memory, and with them the result it reports. What
	// executes another program is open again.
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if len(os.Args) > 1 && os.Args[1] == "entry" {
		os.Exit(entry.Main(os.Args[2:], builtin))
	}
	os.Exit(tool(os.Args[1:]))
}

// builtin does a payload that is a file of a built-in tool in this process: to
// execute it would start this program again, and nothing else.
func builtin(argv []string) func() int {
	if !toolfile.Own(argv[0], sandbox.InTools) {
		return nil
	}
	return func() int { return tool(argv) }
}

func tool(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return multicall.Main(ctx, args, config.ForTool(), multicall.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, InTerminal: isTerminal(0), OutTerminal: isTerminal(1),
	})
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}
