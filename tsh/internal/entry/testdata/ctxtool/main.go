// Command ctxtool, as far as a sandbox needs it to start: the entry step alone.
package main

import (
	"os"

	"cortexfs.org/tsh/internal/entry"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "entry" {
		os.Exit(entry.Main(os.Args[2:], func([]string) func() int { return nil }))
	}
	os.Exit(2)
}
