// Ctxmodel talks to model providers: see ctxmodel --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"cortexfs.org/ctxd/internal/model/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := cli.Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
