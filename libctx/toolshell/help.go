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

// usage is help without a word.
func usage(topics map[string]string) string {
	var b strings.Builder
	b.WriteString("tsh BUILTIN | tsh TOOL [WORD…]\n\n")
	width := 0
	for _, c := range command.Builtins() {
		width = max(width, len([]rune(c.Usage)))
	}
	for _, c := range command.Builtins() {
		fmt.Fprintf(&b, "  %s%s  %s\n", c.Usage, strings.Repeat(" ", width-len([]rune(c.Usage))), c.About)
	}
	b.WriteString("\nAny other first word is the name of a tool, which is called with the words behind it.\n")
	if len(topics) > 0 {
		b.WriteString("Topics: " + strings.Join(slices.Sorted(maps.Keys(topics)), " ") + "\n")
	}
	return b.String()
}
