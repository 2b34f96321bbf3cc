// Command ctxterm gives a program a terminal of its own.
package main

import (
	"os"

	"cortexfs.org/ctxterm/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args, cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}))
}
