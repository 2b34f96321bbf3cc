package cli

// arrange puts flags where the flag parser wants them, so that a person may
// write them before or after names: flags of the program, builtin, its flags,
// operands. Words behind the name of a tool, and behind "--", are left alone.
func arrange(args []string) []string {
	var global, own, operands []string
	builtin := ""
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case w == "--":
			return put(global, builtin, own, operands, args[i:])
		case w == "--root", w == "-root", w == "-r":
			global = append(global, w)
			if i++; i < len(args) {
				global = append(global, args[i])
			}
		case len(w) > 1 && w[0] == '-' && builtin != "" && !isGlobal(w):
			own = append(own, w)
		case len(w) > 1 && w[0] == '-':
			global = append(global, w)
		case builtin == "" && builtins[w]:
			builtin = w
		case builtin == "":
			return put(global, "", nil, nil, append([]string{"--"}, args[i:]...))
		default:
			operands = append(operands, w)
		}
	}
	return put(global, builtin, own, operands, nil)
}

// isGlobal recognises the flags that mean the same behind a builtin.
func isGlobal(w string) bool {
	switch w {
	case "--version", "--list":
		return true
	}
	return len(w) > 7 && w[:7] == "--root=" || len(w) > 3 && w[:3] == "-r="
}

func put(global []string, builtin string, own, operands, rest []string) []string {
	all := append([]string(nil), global...)
	if builtin != "" {
		all = append(append(all, builtin), own...)
	}
	all = append(all, operands...)
	return append(all, rest...)
}
