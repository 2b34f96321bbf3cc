// Ctxd serves agents over Unix sockets: see ctxd --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"cortexfs.org/ctxd/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := cli.Run(ctx, os.Args, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
