// Command tsh is the tool shell: it finds tools on CTX_PATH and explains them.
package main

import (
	"os"

	"cortexfs.org/tsh/internal/cli"
	"cortexfs.org/tsh/internal/config"
	"cortexfs.org/tsh/internal/toolfile"
)

func main() {
	args := os.Args[1:]
	// The tree's own file of tsh is interpreted by this program: the kernel puts
	// its path in front of the words.
	if len(args) > 0 && len(args[0]) > 0 && args[0][0] == '/' {
		if name, err := toolfile.Read(args[0]); err == nil && name == "tsh" {
			args = args[1:]
		}
	}
	os.Exit(cli.Run(args, config.ForShell(), os.Stdout, os.Stderr))
}
