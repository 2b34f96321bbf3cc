package cli

import (
	"slices"
	"strings"
)

// valued are the flags that take a value; those of the program come first, the
// rest belong to the commands.
var valued = []string{
	"root", "log-level", "idle", "approval-timeout",
	"session", "workspace", "mount", "cwd", "size", "supervisor", "report",
}

// arrange moves flags to where the flag parser looks for them, so that they may
// stand anywhere: flags of the program, the command, its flags, its arguments.
// Words behind "--" are arguments whatever they look like.
func arrange(args []string) []string {
	var program, command, words, data []string
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "--" {
			data = args[i+1:]
			break
		}
		name, _, given := strings.Cut(strings.TrimLeft(word, "-"), "=")
		at := slices.Index(valued, name)
		switch {
		case !strings.HasPrefix(word, "-"):
			words = append(words, word)
			continue
		case at >= 0 && !given && i+1 < len(args):
			i++
			word += "=" + args[i]
		}
		if at == 0 || at == 1 {
			program = append(program, word)
		} else {
			command = append(command, word) // an unknown one is refused there
		}
	}
	out := program
	if len(words) > 0 {
		out = append(out, words[0])
		words = words[1:]
	}
	out = append(out, command...)
	return append(append(append(out, "--"), words...), data...)
}
