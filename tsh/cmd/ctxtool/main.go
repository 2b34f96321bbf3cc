// Command ctxtool is the built-in tools of CortexFS in one program, the
// interpreter of their two-line files, and the first step inside every sandbox.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"cortexfs.org/tsh/internal/config"
	"cortexfs.org/tsh/internal/entry"
	"cortexfs.org/tsh/internal/multicall"
	"golang.org/x/sys/unix"
)

func main() {
	// A command that a tool runs has the tool's uid: it must not reach the
	// tool's descriptors or memory, and with them the result it reports. What
	// executes another program is open again.
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if len(os.Args) > 1 && os.Args[1] == "entry" {
		os.Exit(entry.Main(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(multicall.Main(ctx, os.Args[1:], config.ForTool(), multicall.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, InTerminal: isTerminal(0), OutTerminal: isTerminal(1),
	}))
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}
