// Command tsh is the tool shell: it finds tools on CTX_PATH and explains them, and
// in the terminal of an agent it runs them.
package main

import (
	"os"

	"cortexfs.org/tsh/internal/cli"
	"cortexfs.org/tsh/internal/config"
	"cortexfs.org/tsh/internal/inside"
	"cortexfs.org/tsh/internal/toolfile"
	"golang.org/x/sys/unix"
)

func main() {
	told := inside.Told()
	args := os.Args[1:]
	// The tree's own file of tsh is interpreted by this program: the kernel puts
	// its path in front of the words.
	if len(args) > 0 && len(args[0]) > 0 && args[0][0] == '/' {
		if name, err := toolfile.Read(args[0]); err == nil && name == "tsh" {
			args = args[1:]
		}
	}
	os.Exit(cli.Run(args, config.ForShell(), cli.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal: isTerminal(0), OutTerminal: isTerminal(1), ErrTerminal: isTerminal(2),
		Told: told,
	}))
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}
