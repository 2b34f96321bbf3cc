// Program ctx is what people type: it makes trees and agents, talks to agents
// through their sockets, and shows what is in their files.
package main

import (
	"context"
	"os"

	"cortexfs.org/ctx/internal/cli"
	"cortexfs.org/ctx/internal/config"
)

func main() {
	os.Exit(cli.Run(context.Background(), os.Args[1:], config.Load(), cli.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
	}))
}
