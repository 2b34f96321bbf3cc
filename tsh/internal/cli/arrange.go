package cli

import "cortexfs.org/libctx/toolshell/command"

// arrange puts the program's own flags in front, so that a person may write them
// behind a builtin too. Words behind the name of a tool, and behind "--", are
// left alone; flags of a builtin stay with it.
func arrange(args []string) []string {
	var global, words []string
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case w == "--" && len(words) == 0:
			return put(global, args[i+1:])
		case w == "--":
			return put(global, append(words, args[i:]...))
		case w == "--root", w == "-root", w == "-r":
			global = append(global, w)
			if i++; i < len(args) {
				global = append(global, args[i])
			}
		case isGlobal(w), len(words) == 0 && len(w) > 1 && w[0] == '-':
			global = append(global, w)
		case len(words) == 0 && !command.Is(w):
			return put(global, args[i:])
		default:
			words = append(words, w)
		}
	}
	return put(global, words)
}

// isGlobal recognises the flags that mean the same behind a builtin.
func isGlobal(w string) bool {
	switch w {
	case "--version", "--list":
		return true
	}
	return len(w) > 7 && w[:7] == "--root=" || len(w) > 3 && w[:3] == "-r="
}

func put(global, words []string) []string {
	all := append([]string(nil), global...)
	if len(words) == 0 {
		return all
	}
	return append(append(all, "--"), words...)
}
