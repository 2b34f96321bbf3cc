package shellsafe

import (
	"regexp"
	"slices"
	"strings"
)

// anyArguments are the programs that only look, whatever their arguments are.
var anyArguments = []string{
	"cat", "cd", "cut", "echo", "expr", "false", "grep", "head", "id", "ls", "nl", "numfmt", "paste", "pwd", "rev", "seq",
	"stat", "tac", "tail", "tr", "true", "uname", "wc", "which", "whoami",
}

// rules are the programs that only look if their arguments, the words behind the
// name, pass. git is none of them: it runs what the configuration of the
// repository names, and whoever can write to a workspace can make one.
var rules = map[string]func(args []string) bool{
	"base64": without("-o", "--output"),
	"find":   without("-exec", "-ok", "-delete", "-fprint", "-fls"),
	"rg": func(args []string) bool {
		return without("--pre", "--hostname-bin", "--search-zip")(args) && !slices.ContainsFunc(args, func(a string) bool {
			return strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "z")
		})
	},
	"sed":  sed,
	"uniq": uniq,
}

// known reports whether a command of these words is known to be safe.
func known(words []string, depth int) bool {
	if len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return strings.ContainsRune(w, 0) }) {
		return false
	}
	name, args := words[0], words[1:]
	switch name {
	case "bash", "sh":
		return shell(args, depth)
	}
	if rule, ok := rules[name]; ok {
		return rule(args)
	}
	return slices.Contains(anyArguments, name)
}

// shell: a script and nothing else. With -l a shell reads files of the home, which
// the agent writes; zsh does without it.
func shell(args []string, depth int) bool {
	if len(args) == 3 && args[1] == "--" {
		args = []string{args[0], args[2]}
	}
	return len(args) == 2 && args[0] == "-c" && !strings.HasPrefix(args[1], "-") && script(args[1], depth+1)
}

// without passes arguments none of which begins with one of these, wherever it
// stands.
func without(prefixes ...string) func([]string) bool {
	return func(args []string) bool {
		return !slices.ContainsFunc(args, func(a string) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(a, p) })
		})
	}
}

var printLines = regexp.MustCompile(`^[0-9]{1,9}(,[0-9]{1,9})?p$`)

// sed prints lines: -n N[,M]p and at most one file. Its other commands write
// files and run programs.
func sed(args []string) bool {
	if len(args) < 2 || len(args) > 3 || args[0] != "-n" || !printLines.MatchString(args[1]) {
		return false
	}
	return len(args) == 2 || !strings.HasPrefix(args[2], "-")
}

// uniq writes to its second operand, so it gets one: options whose value is a word
// of its own are not told from operands.
func uniq(args []string) bool {
	operands := 0
	for _, a := range args {
		if !strings.HasPrefix(a, "-") || a == "-" || a == "--" {
			operands++
		}
	}
	return operands <= 1
}
