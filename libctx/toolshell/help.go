package toolshell

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cortexfs.org/libctx/toolshell/command"
)

// Topics explains what is neither builtin nor tool. Callers may add their own.
func Topics() map[string]string {
	return map[string]string{
		"path": "The directories of CTX_PATH are tried in order; the first file of a tool's name that is\n" +
			"regular and executable is the tool. PATH and the current directory have no part in it.\n",
		"loading": "load keeps a tool's name, description and arguments in the session, where the agent sees\n" +
			"them with every step. pin keeps them from being dropped when there are too many. Neither\n" +
			"gives a right: every call is decided about anew.\n",
	}
}

// TerminalTopics are the topics of a shell on a terminal.
func TerminalTopics() map[string]string {
	all := Topics()
	all["lines"] = "Blanks divide words; quotes and backslashes keep characters together, as in a POSIX shell.\n" +
		"Nothing is expanded: $, *, ; and | are characters. A # where a word could begin starts a\n" +
		"remark. A backslash at the end of a line, and a quote that is open there, go on in the next.\n"
	all["running"] = "A tool that is typed is admitted as a call of the agent would be, from the agent's files at\n" +
		"this moment, and then has the terminal; approval does not apply. Programs of the host that\n" +
		"are no tools are never run: where bash is allowed, it runs them.\n"
	all["keys"] = "Ctrl+Z stops what runs, fg and bg go on with it. A last word & runs a tool in the background.\n" +
		"Ctrl+C and Ctrl+\\ reach what runs in the foreground alone. The prompt shows an exit code\n" +
		"that is not 0, and status prints the last one; 128+N is death by signal N. When the shell\n" +
		"ends, jobs get SIGHUP.\n"
	return all
}

// usage is help without a word.
func (sh *Shell) usage() string {
	all := command.Builtins()
	if sh.Terminal {
		all = append(all, command.Terminal()...)
	}
	var b strings.Builder
	b.WriteString("tsh BUILTIN | tsh TOOL [WORD…]\n\n")
	width := 0
	for _, c := range all {
		width = max(width, len([]rune(c.Usage)))
	}
	for _, c := range all {
		fmt.Fprintf(&b, "  %s%s  %s\n", c.Usage, strings.Repeat(" ", width-len([]rune(c.Usage))), c.About)
	}
	b.WriteString("\nAny other first word is the name of a tool, which is called with the words behind it.\n")
	if len(sh.Topics) > 0 {
		b.WriteString("Topics: " + strings.Join(slices.Sorted(maps.Keys(sh.Topics)), " ") + "\n")
	}
	return b.String()
}
